// Package qrcode makes the modules of a QR code (ISO/IEC 18004) from text, and reads the code of an image.
//
// What the standard says of codes is a library's; what is ours is to find the modules in an image that a program drew:
// the libraries that read photos fill their tables at every start of a process, which takes as long as all else does.
// An image from a connector is hostile input. It never writes a file and never draws: what a module looks like is the caller's.
package qrcode

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // decoders of what connectors send
	_ "image/jpeg" // the same
	_ "image/png"  // the same

	"rsc.io/qr"
)

const (
	// imageLimit bounds an image in bytes: a code of 177 modules is under 20 KB as a PNG, with a logo some 100 KB.
	imageLimit = 1 << 20
	// sideLimit bounds the sides of an image in pixels, so that some bytes cannot unpack to gigabytes.
	sideLimit = 2048
	// scansLimit bounds the passes over a JPEG: each costs the decoder a walk over the whole picture, and takes 20 bytes.
	// Encoders make one, or some ten where the picture is to appear by degrees.
	scansLimit = 32
	// pngScale is the pixels of one module in PNG; a phone reads that from any screen.
	pngScale = 8
)

// A Code is a QR code without its quiet zone. It is not changed after it was made.
type Code struct {
	text string
	code *qr.Code
}

// Encode makes the smallest code of text, with the lowest error correction (L): a screen is clean, and fewer modules
// are larger ones. The error says that there is no text, or more than fits (2953 bytes).
func Encode(text string) (*Code, error) {
	if text == "" {
		return nil, errors.New("making a QR code: there is no text")
	}
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return nil, fmt.Errorf("making a QR code of %d bytes: it is too long", len(text))
	}
	return &Code{text: text, code: code}, nil
}

// Read reads the one code of an image (PNG, JPEG or GIF, at most 1 MiB and 2048 pixels a side), drawn by a program and
// not photographed, and makes it anew from its text: with less correction it is smaller. Where its text cannot be read,
// such as under a logo, the code is as it was drawn.
func Read(data []byte) (*Code, error) {
	img, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("reading the image of a QR code: %w", err)
	}
	c, err := scan(img)
	if err != nil {
		return nil, fmt.Errorf("reading the image of a QR code: %w", err)
	}
	return c, nil
}

func decode(data []byte) (image.Image, error) {
	if len(data) > imageLimit {
		return nil, fmt.Errorf("it has more than %d bytes", imageLimit)
	}
	head, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, errors.New("it is no PNG, JPEG or GIF")
	}
	if head.Width > sideLimit || head.Height > sideLimit {
		return nil, fmt.Errorf("it has %d by %d pixels", head.Width, head.Height)
	}
	if format == "jpeg" && bytes.Count(data, []byte("\xff\xda")) > scansLimit { // the mark of a pass, which its data cannot hold
		return nil, errors.New("it is drawn in too many passes")
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, errors.New("it is damaged")
	}
	return img, nil
}

// Text is what the code says; "" for one whose text cannot be read.
func (c *Code) Text() string { return c.text }

// Size is the number of modules of a side, 21 to 177.
func (c *Code) Size() int { return c.code.Size }

// Dark tells the colour of a module; outside of the code everything is light.
func (c *Code) Dark(x, y int) bool { return c.code.Black(x, y) }

// PNG is a picture of the code with its quiet zone.
func (c *Code) PNG() []byte {
	large := *c.code
	large.Scale = pngScale
	return large.PNG()
}

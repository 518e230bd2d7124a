package qrcode

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	zxing "github.com/makiuchi-d/gozxing/qrcode"
)

// linkText has the shape and length of what a messenger asks a phone to read.
const linkText = "2@Zk3wQ9vT7uYbN1mX5cR8sP0aL6dF4gH2jKpO4iU6yT8rE0wQ2lK4jH6gF8dS0aZ2xC4vB6nM8mN0bV2cX4zL6k==,q8W7e6R5t4Y3u2I1o0P9a8S7d6F5g4H3j2K1l0Z9x8C=,m7N6b5V4c3X2z1L0k9J8h7G6f5D4s3A2p1O0i9U8y7T=,r6E5w4Q3m2N1b0V9c8X7z6L5k4J3h2G1f0D9s8A7p6O=,1"

func TestTextIsReadBack(t *testing.T) {
	for _, text := range []string{"a", "https://example.org/pair?x=1", "12345", "grüße 漢字 🙂", linkText, strings.Repeat("x", 2953)} {
		c, err := Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read(c.PNG())
		if err != nil {
			t.Errorf("%.20q: %v", text, err)
			continue
		}
		if again.Text() != text || again.Size() != c.Size() || c.Size() < 21 || (c.Size()-17)%4 != 0 {
			t.Errorf("%.20q came back as %.20q, %d modules of %d", text, again.Text(), again.Size(), c.Size())
		}
		if c.Dark(-1, 0) || c.Dark(0, c.Size()) || !c.Dark(0, 0) || !c.Dark(c.Size()-1, 0) || !c.Dark(0, c.Size()-1) {
			t.Errorf("%.20q: the corners are not those of a code", text)
		}
	}
}

// foreign is a code as another program would draw it: higher correction, other size, other format.
func foreign(t *testing.T, text string, side int, write func(*bytes.Buffer, image.Image) error) []byte {
	t.Helper()
	m, err := zxing.NewQRCodeWriter().Encode(text, gozxing.BarcodeFormat_QR_CODE, side, side, map[gozxing.EncodeHintType]any{gozxing.EncodeHintType_ERROR_CORRECTION: "H"})
	if err != nil {
		t.Fatal(err)
	}
	img := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.White, color.Black})
	for y := range side {
		for x := range side {
			if m.Get(x, y) {
				img.SetColorIndex(x, y, 1)
			}
		}
	}
	var b bytes.Buffer
	if err := write(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadsCodesOfOthers(t *testing.T) {
	for name, write := range map[string]func(*bytes.Buffer, image.Image) error{
		"png":  func(b *bytes.Buffer, i image.Image) error { return png.Encode(b, i) },
		"jpeg": func(b *bytes.Buffer, i image.Image) error { return jpeg.Encode(b, i, nil) },
		"gif":  func(b *bytes.Buffer, i image.Image) error { return gif.Encode(b, i, nil) },
	} {
		c, err := Read(foreign(t, linkText, 500, write))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Text() != linkText || c.Size() != 53 {
			t.Errorf("%s: %q with %d modules", name, c.Text(), c.Size())
		}
	}
}

func TestRefuses(t *testing.T) {
	var large, blank bytes.Buffer
	if err := png.Encode(&large, image.NewGray(image.Rect(0, 0, sideLimit+1, 4))); err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(&blank, image.NewGray(image.Rect(0, 0, 64, 64))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":   {nil, "reading the image of a QR code: it is no PNG, JPEG or GIF"},
		"text":      {[]byte("<svg/>"), "reading the image of a QR code: it is no PNG, JPEG or GIF"},
		"too large": {make([]byte, imageLimit+1), "reading the image of a QR code: it has more than 1048576 bytes"},
		"too wide":  {large.Bytes(), "reading the image of a QR code: it has 2049 by 4 pixels"},
		"cut off":   {blank.Bytes()[:60], "reading the image of a QR code: it is damaged"},
		"no code":   {blank.Bytes(), "reading the image of a QR code: no code was found in it"},
	} {
		if _, err := Read(c.data); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Encode(""); err == nil || err.Error() != "making a QR code: there is no text" {
		t.Errorf("no text: %v", err)
	}
	if _, err := Encode(strings.Repeat("x", 2954)); err == nil || err.Error() != "making a QR code of 2954 bytes: it is too long" {
		t.Errorf("too much text: %v", err)
	}
}

// FuzzRead: whatever comes as an image, reading it ends, and what is read can be drawn.
func FuzzRead(f *testing.F) {
	c, err := Encode("https://example.org/pair")
	if err != nil {
		f.Fatal(err)
	}
	whole := c.PNG()
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("GIF89a\x01\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Read(data)
		if err == nil && (c.Size() < 21 || c.Size() > 177 || len(c.PNG()) == 0) {
			t.Errorf("a code of %d modules", c.Size())
		}
	})
}

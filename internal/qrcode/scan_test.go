package qrcode

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	zxing "github.com/makiuchi-d/gozxing/qrcode"
	"rsc.io/qr"
	"rsc.io/qr/coding"
)

// drawn is a code as a program draws it: scale pixels a module, a quiet zone, two colours.
func drawn(c *qr.Code, scale, quiet int, dark, light color.Color) image.Image {
	n := (c.Size + 2*quiet) * scale
	img := image.NewNRGBA(image.Rect(0, 0, n, n))
	for y := range n {
		for x := range n {
			img.Set(x, y, light)
			if c.Black(x/scale-quiet, y/scale-quiet) {
				img.Set(x, y, dark)
			}
		}
	}
	return img
}

func asPNG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// readByOthers is what a library of another origin reads in a picture.
func readByOthers(t *testing.T, data []byte) string {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	bits, err := gozxing.NewBinaryBitmapFromImage(img)
	if err != nil {
		t.Fatal(err)
	}
	found, err := zxing.NewQRCodeReader().Decode(bits, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_CHARACTER_SET: "UTF-8"})
	if err != nil {
		t.Fatal(err)
	}
	return found.GetText()
}

func TestEveryVersionLevelAndMaskIsRead(t *testing.T) {
	for v := coding.Version(coding.MinVersion); v <= coding.MaxVersion; v += 3 {
		for level := coding.L; level <= coding.H; level++ {
			mask := coding.Mask((int(v) + int(level)) % 8)
			plan, err := coding.NewPlan(v, level, mask)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Repeat("link/", plan.DataBytes/5+1)[:plan.DataBytes-3]
			made, err := plan.Encode(coding.String(text))
			if err != nil {
				t.Fatal(err)
			}
			img := drawn(&qr.Code{Bitmap: made.Bitmap, Size: made.Size, Stride: made.Stride}, 2, 4, color.Black, color.White)
			c, err := Read(asPNG(t, img))
			if err != nil || c.Text() != text {
				t.Errorf("version %d, level %s, mask %d: %v", v, level, mask, err)
			}
		}
	}
}

func TestHowCodesAreDrawn(t *testing.T) {
	code, err := qr.Encode(linkText, qr.M)
	if err != nil {
		t.Fatal(err)
	}
	night, clear := color.NRGBA{20, 20, 60, 255}, color.NRGBA{}
	for name, img := range map[string]image.Image{
		"one pixel a module":   drawn(code, 1, 4, color.Black, color.White),
		"without a quiet zone": drawn(code, 5, 0, color.Black, color.White),
		"large":                drawn(code, 12, 4, color.Black, color.White),
		"coloured":             drawn(code, 3, 2, color.NRGBA{0, 90, 60, 255}, color.NRGBA{230, 255, 240, 255}),
		"light on dark":        drawn(code, 4, 4, color.White, night),
		"transparent paper":    drawn(code, 4, 4, color.Black, clear),
	} {
		if c, err := Read(asPNG(t, img)); err != nil || c.Text() != linkText {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnderALogo: what cannot be read stays as it was drawn, for the phone to correct.
func TestUnderALogo(t *testing.T) {
	code, err := qr.Encode("https://example.org/pair?x=1", qr.H)
	if err != nil {
		t.Fatal(err)
	}
	img := drawn(code, 6, 4, color.Black, color.White).(*image.NRGBA)
	middle := img.Bounds().Dx() / 2
	for y := middle - 18; y < middle+18; y++ {
		for x := middle - 18; x < middle+18; x++ {
			img.Set(x, y, color.NRGBA{200, 0, 0, 255})
		}
	}
	c, err := Read(asPNG(t, img))
	if err != nil || c.Text() != "" || c.Size() != code.Size {
		t.Fatalf("%v, %v", c, err)
	}
	if got := readByOthers(t, c.PNG()); got != "https://example.org/pair?x=1" {
		t.Errorf("drawn anew it says %q", got)
	}
}

// passes is a JPEG of 2048 by 2048 pixels that is refined n times, in 19 bytes each.
func passes(n int) []byte {
	var b bytes.Buffer
	b.WriteString("\xff\xd8\xff\xdb\x00\x43\x00" + strings.Repeat("\x01", 64))
	b.WriteString("\xff\xc2\x00\x0b\x08\x08\x00\x08\x00\x01\x01\x11\x00")
	b.WriteString("\xff\xc4\x00\x14\x10\x01" + strings.Repeat("\x00", 15) + "\xe0") // the one code: some 32767 blocks stay as they are
	for range n {
		b.WriteString("\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x10\x7f\xfe\xff\x00\xfd\xff\x00\xff\x00")
	}
	b.WriteString("\xff\xd9")
	return b.Bytes()
}

// TestAPictureOfManyPasses: a megabyte of them would keep the decoder busy for ten minutes.
func TestAPictureOfManyPasses(t *testing.T) {
	if _, err := Read(passes(scansLimit + 1)); err == nil || !strings.Contains(err.Error(), "too many passes") {
		t.Errorf("%v", err)
	}
	if _, err := Read(passes(2)); err == nil || strings.Contains(err.Error(), "passes") {
		t.Errorf("two passes: %v", err)
	}
	var b bytes.Buffer
	code, err := qr.Encode(linkText, qr.L)
	if err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&b, drawn(code, 6, 4, color.Black, color.White), nil); err != nil {
		t.Fatal(err)
	}
	if c, err := Read(b.Bytes()); err != nil || c.Text() != linkText {
		t.Errorf("one pass: %v", err)
	}
}

// TestMoreThanOneSegmentHolds: a text of digits and some letters that fits only as it was written stays as it was drawn.
func TestMoreThanOneSegmentHolds(t *testing.T) {
	plan, err := coding.NewPlan(coding.MaxVersion, coding.L, 0)
	if err != nil {
		t.Fatal(err)
	}
	made, err := plan.Encode(coding.String("pair:"), coding.Num(strings.Repeat("7", 6000)))
	if err != nil {
		t.Fatal(err)
	}
	img := drawn(&qr.Code{Bitmap: made.Bitmap, Size: made.Size, Stride: made.Stride}, 3, 4, color.Black, color.White)
	if c, err := Read(asPNG(t, img)); err != nil || c.Size() != made.Size {
		t.Errorf("%v, %v", c, err)
	}
}

func TestSegments(t *testing.T) {
	utf8Mark := func(b *coding.Bits) { b.Write(7, 4); b.Write(26, 8) }
	for name, c := range map[string]struct {
		version coding.Version
		write   func(b *coding.Bits, v coding.Version)
		want    string
		ok      bool
	}{
		"digits":       {1, func(b *coding.Bits, v coding.Version) { coding.Num("0123456789").Encode(b, v) }, "0123456789", true},
		"many digits":  {30, func(b *coding.Bits, v coding.Version) { coding.Num("00700").Encode(b, v) }, "00700", true},
		"letters":      {10, func(b *coding.Bits, v coding.Version) { coding.Alpha("HTTP://A.B/9").Encode(b, v) }, "HTTP://A.B/9", true},
		"odd letters":  {27, func(b *coding.Bits, v coding.Version) { coding.Alpha("ABC").Encode(b, v) }, "ABC", true},
		"bytes":        {9, func(b *coding.Bits, v coding.Version) { coding.String("grüße").Encode(b, v) }, "grüße", true},
		"called UTF-8": {5, func(b *coding.Bits, v coding.Version) { utf8Mark(b); coding.String("漢").Encode(b, v) }, "漢", true},
		"mixed": {5, func(b *coding.Bits, v coding.Version) {
			coding.Alpha("A:").Encode(b, v)
			coding.Num("42").Encode(b, v)
			coding.String("é").Encode(b, v)
		}, "A:42é", true},
		"another charset": {5, func(b *coding.Bits, v coding.Version) { b.Write(7, 4); b.Write(3, 8); coding.String("a").Encode(b, v) }, "", false},
		"Latin-1":         {5, func(b *coding.Bits, v coding.Version) { coding.String("\xe9t\xe9").Encode(b, v) }, "", false},
		"Kanji":           {5, func(b *coding.Bits, _ coding.Version) { b.Write(8, 4); b.Write(1, 8); b.Write(0x1aaa, 13) }, "", false},
		"cut":             {5, func(b *coding.Bits, _ coding.Version) { b.Write(4, 4); b.Write(200, 8) }, "", false},
		"nothing":         {5, func(*coding.Bits, coding.Version) {}, "", false},
	} {
		var b coding.Bits
		c.write(&b, c.version)
		b.Pad(8*c.version.DataBytes(coding.L) - b.Bits())
		if name == "cut" {
			b.Reset()
			c.write(&b, c.version)
			b.Write(0, 4)
		}
		if got, ok := readSegments(b.Bytes(), c.version); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
}

// FuzzSegments: any content is read to an end, and text is UTF-8 that can be made a code again.
func FuzzSegments(f *testing.F) {
	f.Add([]byte{0x41, 0x26, 0x10}, 1)
	f.Add([]byte{0x10, 0x00, 0xff}, 30)
	f.Add([]byte{0x72, 0x64, 0x02, 0xc3, 0xa9}, 12)
	f.Fuzz(func(t *testing.T, data []byte, version int) {
		v := coding.Version(1 + uint(version)%40)
		text, ok := readSegments(data, v)
		if ok && len(text) > 4*len(data) {
			t.Errorf("%d bytes said %d", len(data), len(text))
		}
	})
}

package qrcode

import (
	"errors"
	"image"
	"image/color"
	"math"

	"rsc.io/qr"
	"rsc.io/qr/coding"
)

// errNoCode says that an image is not a code as a program draws one: squares of one size, upright, nothing else dark
// around them. A photo is none.
var errNoCode = errors.New("no code was found in it")

// A picture tells which pixels are dark.
type picture struct {
	dark   []bool
	width  int
	bounds image.Rectangle // of what is dark
}

// newPicture cuts the image at the middle between its darkest and its lightest pixel; what is transparent is paper.
func newPicture(img image.Image) picture {
	b := img.Bounds()
	p := picture{dark: make([]bool, b.Dx()*b.Dy()), width: b.Dx()}
	grey, lo, hi := make([]uint8, len(p.dark)), uint8(255), uint8(0)
	for i := range grey {
		c := color.NRGBAModel.Convert(img.At(b.Min.X+i%p.width, b.Min.Y+i/p.width)).(color.NRGBA)
		paper := 255 - uint32(c.A)
		y := (299*uint32(c.R) + 587*uint32(c.G) + 114*uint32(c.B)) / 1000
		grey[i] = uint8((y*uint32(c.A) + 255*paper) / 255)
		lo, hi = min(lo, grey[i]), max(hi, grey[i])
	}
	middle := uint8((uint(lo) + uint(hi) + 1) / 2)
	for i, g := range grey {
		p.dark[i] = g < middle
	}
	p.bound()
	return p
}

// invert makes ink of what is paper.
func (p *picture) invert() {
	for i := range p.dark {
		p.dark[i] = !p.dark[i]
	}
	p.bound()
}

func (p *picture) bound() {
	p.bounds = image.Rectangle{}
	for i, dark := range p.dark {
		if dark {
			p.bounds = p.bounds.Union(image.Rect(i%p.width, i/p.width, i%p.width+1, i/p.width+1))
		}
	}
}

// modules reads the modules at their middles. The corner square is seven modules wide, and its edge is dark.
func (p picture) modules() (*qr.Code, error) {
	run := 0
	for run < p.bounds.Dx() && p.dark[p.bounds.Min.Y*p.width+p.bounds.Min.X+run] {
		run++
	}
	if run < 7 {
		return nil, errNoCode
	}
	module := float64(run) / 7
	version := int(math.Round((float64(p.bounds.Dx())/module - 17) / 4))
	if version < int(coding.MinVersion) || version > int(coding.MaxVersion) || math.Abs(float64(p.bounds.Dx()-p.bounds.Dy())) > module {
		return nil, errNoCode
	}
	n := 17 + 4*version
	c := &qr.Code{Size: n, Stride: (n + 7) / 8, Scale: pngScale}
	c.Bitmap = make([]byte, c.Stride*n)
	for y := range n {
		py := p.bounds.Min.Y + (2*y+1)*p.bounds.Dy()/(2*n)
		for x := range n {
			if p.dark[py*p.width+p.bounds.Min.X+(2*x+1)*p.bounds.Dx()/(2*n)] {
				c.Bitmap[y*c.Stride+x/8] |= 1 << (7 - x%8)
			}
		}
	}
	return c, nil
}

// planOf finds how a code was made: by the format bits, of which every level and mask has its own, and holds all that
// does not depend on the content to it.
func planOf(c *qr.Code) (*coding.Plan, error) {
	for level := coding.L; level <= coding.H; level++ {
		for mask := range coding.Mask(8) {
			small, err := coding.NewPlan(coding.MinVersion, level, mask) // the bits around the first square are the same in all
			if err != nil || !agrees(c, small.Pixel[:9], 9, coding.Format) {
				continue
			}
			plan, err := coding.NewPlan(coding.Version((c.Size-17)/4), level, mask)
			if err != nil || !agrees(c, plan.Pixel, c.Size, coding.Format, coding.Position, coding.Timing) {
				return nil, errNoCode
			}
			return plan, nil
		}
	}
	return nil, errNoCode
}

// agrees holds the modules of some roles to what a plan says of them.
func agrees(c *qr.Code, rows [][]coding.Pixel, width int, roles ...coding.PixelRole) bool {
	for y, row := range rows {
		for x, pixel := range row[:width] {
			for _, r := range roles {
				if pixel.Role() == r && c.Black(x, y) != (pixel&coding.Black != 0) {
					return false
				}
			}
		}
	}
	return true
}

// textOf reads the text of a code. ok is false where a module is not as it was made, such as under a logo, and for
// kinds of text that are rare.
func textOf(c *qr.Code, plan *coding.Plan) (text string, ok bool) {
	all := make([]byte, plan.DataBytes+plan.CheckBytes)
	for y, row := range plan.Pixel {
		for x, pixel := range row {
			if r := pixel.Role(); (r == coding.Data || r == coding.Check) && c.Black(x, y) != (pixel&coding.Black != 0) {
				all[pixel.Offset()/8] |= 1 << (7 - pixel.Offset()%8)
			}
		}
	}
	var again coding.Bits
	again.Append(all[:plan.DataBytes])
	again.AddCheckBytes(plan.Version, plan.Level)
	if string(again.Bytes()) != string(all) {
		return "", false
	}
	return readSegments(all[:plan.DataBytes], plan.Version)
}

// scan reads the code of an image: with its text, where that can be read, else as it is.
func scan(img image.Image) (*Code, error) {
	p := newPicture(img)
	for _, inverted := range []bool{false, true} {
		if inverted {
			p.invert()
		}
		c, err := p.modules()
		if err != nil {
			continue
		}
		plan, err := planOf(c)
		if err != nil {
			continue
		}
		if text, ok := textOf(c, plan); ok {
			if again, err := Encode(text); err == nil { // several segments can hold more than the one that we make
				return again, nil
			}
		}
		return &Code{code: c}, nil
	}
	return nil, errNoCode
}

package tooldef

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// appendNumber writes a JSON number as ECMAScript's Number::toString does,
// which is what RFC 8785 section 3.2.2.3 asks for: the shortest digits that
// read back as the same double, plain between 1e-6 and 1e21, else exponent.
func appendNumber(out []byte, text string) ([]byte, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the number %.40s has no canonical form", text)
	}
	if f == 0 {
		return append(out, '0'), nil // also for -0
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(out, f, 'f', -1, 64), nil
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	sign := exponent[:1]
	digits := strings.TrimLeft(exponent[1:], "0")
	return append(out, mantissa+"e"+sign+digits...), nil
}

package keystore

import (
	"strings"
	"testing"
)

// TestRedactLiterals: an error message shows a value as its language quotes it.
func TestRedactLiterals(t *testing.T) {
	const value = `tRo'ub"4\dor é` + "\t𝄞 97"
	r := NewRedactor([]Handle{{Name: "K", Value: NewSecret(value), Secret: true}})
	for name, text := range map[string]string{
		"Python repr":             `tRo\'ub"4\\dor é\t𝄞 97`,
		"Python repr, no quotes":  `tRo'ub"4\\dor é\t𝄞 97`,
		"Python ascii":            `tRo\'ub"4\\dor \xe9\t\U0001d11e 97`,
		"Python bytes":            `tRo\'ub"4\\dor \xc3\xa9\t\xf0\x9d\x84\x9e 97`,
		"Ruby inspect":            `tRo'ub\"4\\dor é\t𝄞 97`,
		"JavaScript util.inspect": `tRo\'ub"4\\dor é\t𝄞 97`,
	} {
		if got := r.String("KeyError: '" + text + "'"); strings.Contains(got, "tRo") || strings.Contains(got, " 97") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

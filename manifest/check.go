package manifest

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	// maxValueBytes keeps NAME=value well under the 128 KiB that one string of
	// an environment may have.
	maxValueBytes = 64 << 10
	// shortSecretBytes is the length below which a secret occurs in honest
	// text by chance: keystore.Redactor leaves it there.
	shortSecretBytes = 8
)

// Check cleans and judges a typed value (format.md, section 4). One line end at
// the end of a single-line value is removed; nothing else is changed, nothing
// is interpolated. notes are things to ask or say before the value is taken:
// white space at an edge, invisible characters, a secret that is very short.
//
// An error says which rule the value breaks and never quotes the value.
func (f Field) Check(value string) (clean string, notes []string, err error) {
	switch {
	case len(value) > maxValueBytes:
		return "", nil, fmt.Errorf("%d bytes; at most %d", len(value), maxValueBytes)
	case strings.ContainsRune(value, 0):
		return "", nil, errors.New("a NUL character")
	case !utf8.ValidString(value):
		return "", nil, errors.New("not valid UTF-8")
	}
	clean = value
	if f.Type != "multiline" {
		clean = trimLineEnd(value)
		if strings.ContainsAny(clean, "\r\n\u2028\u2029\u0085") {
			return "", nil, errors.New("a line end inside; one line is expected")
		}
	}
	if strings.TrimSpace(clean) == "" {
		if f.Required {
			return "", nil, errors.New("a value is required")
		}
		if f.Type == "multiline" && clean != "" {
			return clean, f.notes(clean), nil
		}
		return "", nil, nil
	}
	if err := f.checkType(clean); err != nil {
		return "", nil, err
	}
	if err := f.checkRules(clean); err != nil {
		return "", nil, err
	}
	if f.Type == "boolean" {
		clean = strconv.FormatBool(truth[strings.ToLower(clean)])
	}
	return clean, f.notes(clean), nil
}

func trimLineEnd(s string) string {
	for _, end := range []string{"\r\n", "\n", "\r"} {
		if cut, ok := strings.CutSuffix(s, end); ok {
			return cut
		}
	}
	return s
}

// truth are the accepted spellings of a boolean; the value becomes true or false.
var truth = map[string]bool{"true": true, "yes": true, "on": true, "1": true, "false": false, "no": false, "off": false, "0": false}

var numberShape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
})

func (f Field) checkType(value string) error {
	switch f.Type {
	case "number":
		if !numberShape().MatchString(value) {
			return errors.New("not a number")
		}
	case "boolean":
		if _, ok := truth[strings.ToLower(value)]; !ok {
			return errors.New("not true or false")
		}
	case "url":
		u, err := url.Parse(value)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsAny(value, " \t") {
			return errors.New("not a URL such as https://example.org")
		}
	case "email":
		if a, err := mail.ParseAddress(value); err != nil || a.Address != value {
			return errors.New("not an e-mail address")
		}
	case "choice":
		if !slices.Contains(f.Choices, value) {
			return fmt.Errorf("not one of %s", strings.Join(f.Choices, ", "))
		}
	}
	return nil
}

// checkRules holds a value to choices, pattern, min and max. min and max bound
// a number by its value and a text by its length in characters.
func (f Field) checkRules(value string) error {
	if f.Type != "choice" && len(f.Choices) > 0 && !slices.Contains(f.Choices, value) {
		return fmt.Errorf("not one of %s", strings.Join(f.Choices, ", "))
	}
	if f.Pattern != "" {
		p, err := regexp.Compile(f.Pattern)
		if err != nil {
			return fmt.Errorf("the pattern %q cannot be read", f.Pattern)
		}
		if !p.MatchString(value) {
			return fmt.Errorf("it does not match the pattern %s", f.Pattern)
		}
	}
	size, unit := float64(utf8.RuneCountInString(value)), " characters"
	if f.Type == "number" {
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return errors.New("a number out of range")
		}
		size, unit = n, ""
	}
	if f.Type == "boolean" || f.Type == "choice" {
		return nil
	}
	if f.Min != nil && size < *f.Min {
		return fmt.Errorf("less than %s%s", strconv.FormatFloat(*f.Min, 'f', -1, 64), unit)
	}
	if f.Max != nil && size > *f.Max {
		return fmt.Errorf("more than %s%s", strconv.FormatFloat(*f.Max, 'f', -1, 64), unit)
	}
	return nil
}

func (f Field) notes(value string) []string {
	var notes []string
	if f.Type != "multiline" {
		if strings.TrimLeftFunc(value, unicode.IsSpace) != value {
			notes = append(notes, "white space at the start")
		}
		if strings.TrimRightFunc(value, unicode.IsSpace) != value {
			notes = append(notes, "white space at the end")
		}
	}
	at := 0
	for _, r := range value {
		at++
		if invisible(r, f.Type == "multiline") {
			notes = append(notes, fmt.Sprintf("an invisible character (%U) at position %d", r, at))
			break
		}
	}
	if f.Secret && len(value) < shortSecretBytes {
		notes = append(notes, fmt.Sprintf("fewer than %d characters, too short to be struck out of what the connector prints", shortSecretBytes))
	}
	return notes
}

// invisible tells whether a person cannot see the character, spaces between
// words and the layout of several lines left aside.
func invisible(r rune, multiline bool) bool {
	switch {
	case r == ' ':
		return false
	case multiline && (r == '\n' || r == '\r' || r == '\t'):
		return false
	}
	return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) ||
		r == '\u3164' || r == '\uffa0' || r == '\u115f' || r == '\u1160' || r == '\u2800' || r >= 0xfe00 && r <= 0xfe0f
}

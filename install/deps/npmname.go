package deps

import (
	"errors"
	"strings"

	"github.com/Masterminds/semver/v3"

	"skald-connectors/internal/lazyre"
)

// The grammar of names and ranges that npm is given. It is narrower than npm's own:
// whatever names a file, a folder, an address or a repository has no place in it.
var (
	// npmName also takes the upper case of old packages. No part may begin with a
	// dot, so no name is a path.
	npmName = lazyre.New(`^(?:@[A-Za-z0-9~_-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*$`)
	// npmRange takes versions, ranges and the joints between them.
	npmRange = lazyre.New(`^[0-9A-Za-z.*^~<>=| +-]*$`)
	// npmTag is a name such as latest.
	npmTag = lazyre.New(`^[A-Za-z][A-Za-z0-9._-]*$`)
	npmBin = lazyre.New(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	// sha512 is the only digest that is taken: 64 bytes in base64.
	sha512 = lazyre.New(`^sha512-[A-Za-z0-9+/]{86}==$`)
)

// npmNameLimit is the registry's own limit.
const npmNameLimit = 214

var errRange = errors.New("it is neither a version nor a range of versions nor a tag; addresses, repositories, files, folders and workspaces are not taken")

func validNPMName(name string) bool {
	return len(name) <= npmNameLimit && npmName.MatchString(name) && !strings.HasSuffix(name, "/node_modules") && name != "node_modules" && name != "favicon.ico"
}

// validNPMRange holds the right side of a dependency against the grammar.
func validNPMRange(s string) error {
	if alias, ok := strings.CutPrefix(s, "npm:"); ok {
		at := strings.LastIndex(alias, "@")
		if at > 0 {
			s = alias[at+1:]
			alias = alias[:at]
		} else {
			s = ""
		}
		if !validNPMName(alias) {
			return errRange
		}
	}
	if len(s) > 256 || !npmRange.MatchString(s) {
		return errRange
	}
	for part := range strings.SplitSeq(s, "||") {
		for word := range strings.FieldsSeq(part) {
			if !validRangeWord(word) {
				return errRange
			}
		}
	}
	return nil
}

// validRangeWord takes "1.2", "^1.2.3", ">=1", "-", "*", "x" and a lone tag.
func validRangeWord(word string) bool {
	bare := strings.TrimLeft(word, "^~<>=v")
	if bare == "" || bare == "-" {
		return true
	}
	if bare[0] >= '0' && bare[0] <= '9' || bare[0] == '*' || bare == "x" || bare == "X" {
		return true
	}
	return npmTag.MatchString(word)
}

func exactVersion(s string) bool {
	_, err := semver.StrictNewVersion(s)
	return err == nil
}

// pickSHA512 takes the sha512 digest out of an integrity text; "" when there is none.
func pickSHA512(integrity string) string {
	for word := range strings.FieldsSeq(integrity) {
		word, _, _ = strings.Cut(word, "?")
		if sha512.MatchString(word) {
			return word
		}
	}
	return ""
}

// splitSpec takes "name@range" apart; the "@" of a scope is part of the name.
func splitSpec(spec string) (name, want string) {
	if at := strings.LastIndex(spec, "@"); at > 0 {
		return spec[:at], spec[at+1:]
	}
	return spec, ""
}

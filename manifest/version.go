package manifest

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"skald-connectors/internal/exactjson"
)

// readVersion reads the integer by which updates are decided. Everything that
// is not a positive integer, or the same in a string, is unknown and told.
func (r *reader) readVersion(obj exactjson.Value) Version {
	v, ok := get(obj, "version")
	if !ok {
		r.sayMissing(obj, "version", Warning, "version-missing", "no version, expected an integer of 1 or more; taken as unknown")
		return 0
	}
	if v.Kind == exactjson.Number || v.Kind == exactjson.String {
		if n, err := strconv.ParseInt(v.Str, 10, 64); err == nil && n >= 1 && v.Str[0] != '+' {
			if v.Kind == exactjson.String {
				r.say(v, Warning, "version-string", "found the string %q, expected an integer; taken as %d", v.Str, n)
			}
			return Version(n)
		}
		r.say(v, Error, "version-not-integer", "found %q, expected an integer of 1 or more; taken as unknown", v.Str)
		return 0
	}
	r.say(v, Error, "version-not-integer", "found %s, expected an integer of 1 or more; taken as unknown", v.Kind)
	return 0
}

// versionTexts reads the two members that are only for display.
func (r *reader) versionTexts(obj exactjson.Value) (version, date string) {
	version, date = r.text(obj, "version_string"), r.text(obj, "version_release_date")
	if v, _ := obj.Get("version_string"); version != "" && !isSemver(version) {
		r.say(v, Warning, "version-string-not-semver", "found %q, expected a semantic version such as 1.2.3", version)
	}
	if v, _ := obj.Get("version_release_date"); date != "" {
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			r.say(v, Warning, "release-date-not-iso", "found %q, expected a date such as 2026-07-19", date)
		}
	}
	return version, date
}

func isSemver(s string) bool {
	if isPlainVersion(s) {
		return true
	}
	_, err := semver.StrictNewVersion(strings.TrimPrefix(s, "v"))
	return err == nil
}

// isPlainVersion knows 1.2.3 without an allocation, which is what nearly every
// entry of an index holds.
func isPlainVersion(s string) bool {
	digits, dots := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.' && digits > 0:
			dots, digits = dots+1, 0
		case c >= '0' && c <= '9' && digits < 9 && (digits == 0 || s[i-digits] != '0'):
			digits++
		default:
			return false
		}
	}
	return dots == 2 && digits > 0
}

// DisplayVersion gives the text that stands for an entry's version: its
// version_string, normalised when it is a semantic version, else the integer,
// else "unknown". It decides nothing.
func DisplayVersion(e Entry) string {
	if e.VersionString != "" {
		if v, err := semver.NewVersion(e.VersionString); err == nil {
			return v.String()
		}
		return e.VersionString
	}
	if e.Version > 0 {
		return strconv.FormatInt(int64(e.Version), 10)
	}
	return "unknown"
}

// CompareDisplay orders two display versions among equal integer versions:
// semantic versions by their precedence, other texts before them, by bytes.
func CompareDisplay(a, b string) int {
	va, errA := semver.NewVersion(a)
	vb, errB := semver.NewVersion(b)
	switch {
	case errA == nil && errB == nil:
		return cmp.Or(va.Compare(vb), strings.Compare(a, b))
	case errA == nil:
		return 1
	case errB == nil:
		return -1
	}
	return strings.Compare(a, b)
}

// runtimeNames are the spellings of a runtime in requires[] and engines{}.
var runtimeNames = map[string][]string{
	"node":    {"node", "nodejs"},
	"python3": {"python3", "python"},
}

// RuntimeRange gives the semver range that a manifest asks of a runtime ("node"
// or "python3"), from engines{} or from a requires[] item such as "NODE>=20".
// "" means that any version will do.
func RuntimeRange(m *Manifest, runtime string) string {
	names, ok := runtimeNames[runtime]
	if !ok {
		names = []string{runtime}
	}
	for _, name := range names {
		if c, ok := constraint(m.Engines[name]); ok {
			return c
		}
	}
	for _, item := range m.Requires {
		for _, name := range names {
			if rest, ok := cutPrefixFold(strings.TrimSpace(item), name); ok {
				if c, ok := constraint(rest); ok {
					return c
				}
			}
		}
	}
	return ""
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return strings.TrimSpace(s[len(prefix):]), true
}

// constraint normalises a range to what Masterminds reads; "~=" is Python's
// compatible release.
func constraint(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if s == "" || s == "*" {
		return "", false
	}
	s = strings.ReplaceAll(s, "==", "=")
	var parts []string
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if base, ok := strings.CutPrefix(part, "~="); ok {
			part = compatible(strings.TrimSpace(base))
		}
		parts = append(parts, part)
	}
	s = strings.Join(parts, ", ")
	if _, err := semver.NewConstraint(s); err != nil {
		return "", false
	}
	return s, true
}

// compatible turns "~=3.10" into ">=3.10, <4" and "~=3.10.2" into ">=3.10.2, <3.11".
func compatible(base string) string {
	numbers := strings.Split(base, ".")
	if len(numbers) < 2 {
		return ">=" + base
	}
	keep := numbers[:len(numbers)-1]
	last, err := strconv.Atoi(keep[len(keep)-1])
	if err != nil {
		return ">=" + base
	}
	upper := append(append([]string(nil), keep[:len(keep)-1]...), strconv.Itoa(last+1))
	return ">=" + base + ", <" + strings.Join(upper, ".")
}

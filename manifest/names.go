package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

const (
	maxIDBytes   = 64  // an id is a folder, a record and a server name in clients
	maxPathBytes = 255 // one name of the common file systems, and room for our own prefix on Windows
	maxPathParts = 8   // honest connectors nest two or three deep
	maxFolder    = 3   // whatsapp/3 and one more
	maxEnvName   = 64
)

// ValidID checks a connector id, which is also a folder name everywhere:
// ^[a-z0-9][a-z0-9._-]{0,63}$, no "__", no "..", no trailing dot, no Windows
// device name (format.md, section 2).
func ValidID(id string) error {
	switch {
	case id == "":
		return errors.New("an empty id")
	case len(id) > maxIDBytes:
		return fmt.Errorf("an id of %d bytes; at most %d", len(id), maxIDBytes)
	case !isLowerAlnum(id[0]):
		return fmt.Errorf("id %q does not begin with a-z or 0-9", id)
	}
	for i := range len(id) {
		if c := id[i]; !isLowerAlnum(c) && c != '.' && c != '_' && c != '-' {
			return fmt.Errorf("id %q holds something other than a-z, 0-9, dot, underscore and hyphen", id)
		}
	}
	switch {
	case strings.Contains(id, "__") || strings.Contains(id, ".."):
		return fmt.Errorf("id %q holds a double underscore or a double dot", id)
	case strings.HasSuffix(id, "."):
		return fmt.Errorf("id %q ends in a dot", id)
	case isDeviceName(id):
		return fmt.Errorf("id %q is a Windows device name", id)
	}
	return nil
}

func isLowerAlnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// ValidPath checks the path of one shipped file: relative, "/"-separated,
// normal parts only, NFC, and none of the names that are reserved for what is
// installed beside the files or that steer npm, pip or Python (format.md,
// section 2).
func ValidPath(p string) error {
	if err := validParts(p, maxPathParts); err != nil {
		return err
	}
	if why := reserved(foldPath(p)); why != "" {
		return fmt.Errorf("path %q: %s", p, why)
	}
	return nil
}

// validFolder checks an entry's folder below the marketplace's base.
func validFolder(folder string) error { return validParts(folder, maxFolder) }

func validParts(p string, most int) error {
	if len(p) > maxPathBytes {
		return fmt.Errorf("a path of %d bytes; at most %d", len(p), maxPathBytes)
	}
	if n := strings.Count(p, "/") + 1; n > most {
		return fmt.Errorf("path %q has %d parts; at most %d", p, n, most)
	}
	for part := range strings.SplitSeq(p, "/") {
		if why := badPart(part); why != "" {
			return fmt.Errorf("path %q: %s", p, why)
		}
	}
	if !isNormal(p) {
		return fmt.Errorf("path %q is not in Unicode normal form C", p)
	}
	return nil
}

// badPart says what is wrong with one part of a path, or "".
func badPart(part string) string {
	switch {
	case part == "":
		return "an empty part (a leading, trailing or double slash)"
	case part == "." || part == "..":
		return `a part that is "." or ".."`
	case strings.ContainsAny(part, `\:`):
		return "a backslash or a colon"
	case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
		return "a part that ends in a dot or a space"
	case isDeviceName(part):
		return "a Windows device name"
	case !utf8.ValidString(part):
		return "invalid UTF-8"
	}
	for _, r := range part {
		if r >= ' ' && r < 0x7f {
			continue
		}
		// Format characters (bidi overrides, zero-width ones) make two paths
		// look the same; U+FFFD stands for bytes that were never a name.
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return "a control or invisible character"
		}
	}
	return ""
}

// isDeviceName tells whether Windows would open a device: the name up to its
// first dot decides, spaces before it do not count.
func isDeviceName(part string) bool {
	base, _, _ := strings.Cut(part, ".")
	base = strings.TrimRight(base, " ")
	if len(base) < 3 || len(base) > len("CONOUT$") {
		return false
	}
	for _, name := range deviceNames {
		if strings.EqualFold(base, name) {
			return true
		}
	}
	number := base[3:]
	return (strings.EqualFold(base[:3], "COM") || strings.EqualFold(base[:3], "LPT")) &&
		utf8.RuneCountInString(number) == 1 && strings.ContainsAny(number, "0123456789¹²³")
}

var deviceNames = [...]string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"}

// reserved says why a folded path may not be shipped, or "".
func reserved(folded string) string {
	first, rest, nested := strings.Cut(folded, "/")
	switch first {
	case ".skald-install.lock", "node_modules", ".pydeps", "auth", "state":
		return "a name that is reserved for what is installed beside the files"
	case "pip", "pip.py":
		return "a name that would stand before pip itself"
	}
	if strings.HasPrefix(first, ".git") {
		return "a name that is reserved for git"
	}
	for nested {
		if why := steering(first); why != "" {
			return why
		}
		first, rest, nested = strings.Cut(rest, "/")
	}
	return steering(first)
}

// steering says why a folded name is refused at any depth, or "".
func steering(name string) string {
	switch name {
	case ".npmrc", ".pnpmrc", "pip.conf":
		return "a file that steers the installation of dependencies"
	case "sitecustomize.py", "usercustomize.py":
		return "a file that Python runs by itself at every start"
	}
	if strings.HasPrefix(name, ".yarnrc") {
		return "a file that steers the installation of dependencies"
	}
	return ""
}

// ValidPaths checks the whole set: every path for itself, unique after case
// folding, and no file where another one needs a folder. Sizes and their sum
// are held to the limits. An error names the first offender.
func ValidPaths(files []File) error {
	for _, f := range files {
		if err := ValidPath(f.Path); err != nil {
			return err
		}
	}
	return validSet(files)
}

// validSet checks what ValidPaths does beyond each path.
func validSet(files []File) error {
	if len(files) > MaxFiles {
		return fmt.Errorf("%d files; at most %d", len(files), MaxFiles)
	}
	var sum int64
	for _, f := range files {
		if f.Size > MaxFileBytes {
			return fmt.Errorf("path %q: %d bytes; at most %d", f.Path, f.Size, MaxFileBytes)
		}
		if sum += max(f.Size, 0); sum > MaxBundleBytes {
			return fmt.Errorf("more than %d bytes in all", MaxBundleBytes)
		}
	}
	return noConflicts(files)
}

// noConflicts sorts the folded paths with the slash before every other
// character: what is equal, and a file and what lies below it, are neighbours.
func noConflicts(files []File) error {
	type folded struct{ key, path string }
	list := make([]folded, len(files))
	for i, f := range files {
		list[i] = folded{strings.ReplaceAll(foldPath(f.Path), "/", "\x00"), f.Path}
	}
	slices.SortStableFunc(list, func(a, b folded) int { return strings.Compare(a.key, b.key) })
	for i := 1; i < len(list); i++ {
		before, this := list[i-1], list[i]
		if before.key == this.key {
			return fmt.Errorf("path %q is the same as %q where case does not count", this.path, before.path)
		}
		if strings.HasPrefix(this.key, before.key) && this.key[len(before.key)] == 0 {
			return fmt.Errorf("path %q is a file, and %q needs a folder there", before.path, this.path)
		}
	}
	return nil
}

// foldPath gives the form that two paths share when a file system that ignores
// case or composition would take them for one.
func foldPath(p string) string {
	if isASCII(p) {
		return strings.ToLower(p)
	}
	return norm.NFC.String(cases.Fold().String(norm.NFD.String(p)))
}

func isNormal(s string) bool { return isASCII(s) || norm.NFC.IsNormalString(s) }

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

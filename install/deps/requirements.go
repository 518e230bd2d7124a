package deps

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"skald-connectors/internal/lazyre"
)

const (
	// requiredBytes bounds a requirements.txt: a package with twenty hashes takes
	// two thousand.
	requiredBytes = 2 << 20
	// hashesLimit bounds the files of one release.
	hashesLimit = 500
)

// The grammar of one requirement (PEP 508, less what names an address or a file).
var (
	pipName    = lazyre.New(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`)
	pipExtras  = lazyre.New(`^\s*\[\s*([A-Za-z0-9][A-Za-z0-9._-]*(?:\s*,\s*[A-Za-z0-9][A-Za-z0-9._-]*)*)\s*\]`)
	pipVersion = lazyre.New(`^\s*(===|==|~=|!=|<=|>=|<|>)\s*([A-Za-z0-9][A-Za-z0-9.*+!_-]*)\s*$`)
	pipHash    = lazyre.New(`^--hash=sha256:([0-9a-f]{64})$`)
	pipComment = lazyre.New(`(^|\s)#.*$`)
	// pipSeparators are the same in a name for pip.
	pipSeparators = lazyre.New(`[-_.]+`)
)

// A requirement is one line that survived.
type requirement struct {
	name, extras string
	version      string // comparisons, "" = any
	exact        string // the one version, "" = a range
	marker       string
	hashes       []string // sha256, ascending
	line         int
}

// String is the line that pip is given.
func (r requirement) String() string {
	s := r.name
	if r.extras != "" {
		s += "[" + r.extras + "]"
	}
	s += r.version
	if r.marker != "" {
		s += " ; " + r.marker
	}
	for _, h := range r.hashes {
		s += " \\\n    --hash=sha256:" + h
	}
	return s
}

// readRequirements reads a requirements.txt. A line that is not a requirement of the
// narrow grammar is refused by its number.
func readRequirements(file string, src []byte) ([]requirement, error) {
	switch {
	case len(src) > requiredBytes:
		return nil, &RefusedError{File: file, What: fmt.Sprintf("it is larger than %d MiB", requiredBytes>>20)}
	case !utf8.Valid(src) || bytes.IndexByte(src, 0) >= 0:
		return nil, &RefusedError{File: file, What: "it is not UTF-8 text"}
	}
	text := strings.TrimPrefix(string(src), "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var out []requirement
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		first, whole := i, lines[i]
		// pip joins lines that end with a backslash, unless they are comments.
		for strings.HasSuffix(whole, `\`) && !strings.HasPrefix(strings.TrimSpace(whole), "#") {
			whole = strings.TrimSuffix(whole, `\`) + " "
			if i++; i == len(lines) {
				break
			}
			whole += lines[i]
		}
		whole = strings.TrimSpace(pipComment.ReplaceAllString(whole, ""))
		if whole == "" {
			continue
		}
		r, why := readRequirement(whole)
		if why != "" {
			return nil, &RefusedError{File: file, Line: first + 1, What: why}
		}
		r.line = first + 1
		out = append(out, r)
	}
	return out, checkRequirements(file, out)
}

// checkRequirements looks at the lines together.
func checkRequirements(file string, list []requirement) error {
	if len(list) > directLimit*4 {
		return &RefusedError{File: file, What: fmt.Sprintf("more than %d packages", directLimit*4)}
	}
	hashed := 0
	for _, r := range list {
		if len(r.hashes) > 0 {
			hashed++
		}
	}
	for _, r := range list {
		switch {
		case hashed > 0 && len(r.hashes) == 0:
			return &RefusedError{File: file, Line: r.line, What: "it has no --hash and other lines have one"}
		case len(r.hashes) > 0 && r.exact == "":
			return &RefusedError{File: file, Line: r.line, What: "it has a --hash and no exact version (==)"}
		}
	}
	return nil
}

// readRequirement reads "name[extras]==version ; marker --hash=sha256:…".
func readRequirement(line string) (r requirement, why string) {
	head, options := line, ""
	if i := strings.Index(" "+line, " -"); i >= 0 {
		head, options = strings.TrimSpace(line[:i]), line[i:]
	}
	if i := strings.Index(line, "\t-"); i >= 0 && i < len(head) {
		head, options = strings.TrimSpace(line[:i]), line[i:]
	}
	if head == "" {
		return r, "an option in place of a package"
	}
	for option := range strings.FieldsSeq(options) {
		m := pipHash.FindStringSubmatch(option)
		if m == nil {
			return r, "an option that is not --hash=sha256:…"
		}
		r.hashes = append(r.hashes, m[1])
	}
	slices.Sort(r.hashes)
	if r.hashes = slices.Compact(r.hashes); len(r.hashes) > hashesLimit {
		return r, fmt.Sprintf("more than %d hashes", hashesLimit)
	}
	head, marker, hasMarker := strings.Cut(head, ";")
	if hasMarker {
		if r.marker = cleanMarker(marker); r.marker == "" {
			return r, "a condition that cannot be read"
		}
	}
	return r, r.readHead(strings.TrimSpace(head))
}

// readHead reads "name[extras] versions".
func (r *requirement) readHead(head string) (why string) {
	name := pipName.FindString(head)
	if name == "" {
		return "it is not the name of a package"
	}
	r.name = name
	rest := head[len(name):]
	if m := pipExtras.FindStringSubmatch(rest); m != nil {
		extras := strings.Split(m[1], ",")
		for i := range extras {
			extras[i] = strings.TrimSpace(extras[i])
		}
		r.extras, rest = strings.Join(extras, ","), rest[len(m[0]):]
	}
	rest = strings.TrimSpace(rest)
	if inner, ok := strings.CutPrefix(rest, "("); ok && strings.HasSuffix(inner, ")") {
		rest = strings.TrimSuffix(inner, ")")
	}
	if rest == "" {
		return ""
	}
	var parts []string
	for part := range strings.SplitSeq(rest, ",") {
		m := pipVersion.FindStringSubmatch(part)
		if m == nil {
			return "it is not a package with versions; addresses, files, folders and editable installs are not taken"
		}
		parts = append(parts, m[1]+m[2])
		if (m[1] == "==" || m[1] == "===") && !strings.Contains(m[2], "*") {
			r.exact = m[2]
		}
	}
	if r.version = strings.Join(parts, ","); len(parts) > 1 {
		r.exact = ""
	}
	return ""
}

// normalName is a name as an index compares it.
func normalName(name string) string {
	return strings.ToLower(pipSeparators.ReplaceAllString(name, "-"))
}

// The words of a condition (PEP 508). What stands in quotes has no white space, so
// that no part of it can begin an option of pip.
var (
	markerToken = lazyre.New(`^\s*(?:(\(|\))|(and|or|not|in)\b|(===|==|~=|!=|<=|>=|<|>)|('[A-Za-z0-9._+*-]*'|"[A-Za-z0-9._+*-]*")|([a-z_.]+))\s*`)
	markerNames = []string{"python_version", "python_full_version", "os_name", "sys_platform", "platform_release", "platform_system",
		"platform_version", "platform_machine", "platform_python_implementation", "implementation_name", "implementation_version", "extra"}
)

// cleanMarker writes a condition anew from its words; "" when it is none.
func cleanMarker(s string) string {
	var out []string
	for s = strings.TrimSpace(s); s != ""; {
		m := markerToken.FindStringSubmatch(s)
		if m == nil || m[5] != "" && !slices.Contains(markerNames, m[5]) {
			return ""
		}
		out = append(out, strings.TrimSpace(m[0]))
		s = s[len(m[0]):]
	}
	return strings.Join(out, " ")
}

// readPip reads what is wanted from pip; nil = nothing.
func readPip(in Input) (*Set, error) {
	var list []requirement
	var err error
	set := &Set{Ecosystem: Pip, files: map[string][]byte{}}
	src, shipped := in.Files[requiredFile]
	switch command := base(in.Command); {
	case shipped:
		set.From = requiredFile
		list, err = readRequirements(requiredFile, src)
	case len(in.Listed) > 0 && (command == "python3" || command == "python"):
		set.From = "the manifest's list of dependencies"
		list, err = listedPip(in.Listed)
	}
	if err != nil || len(list) == 0 {
		return nil, err
	}
	set.describe(list)
	var b strings.Builder
	for _, r := range list {
		b.WriteString(r.String() + "\n")
	}
	set.files[requiredFile] = []byte(b.String())
	return set, nil
}

func listedPip(list []string) ([]requirement, error) {
	var out []requirement
	for i, item := range list {
		r, why := readRequirement(strings.TrimSpace(pipComment.ReplaceAllString(item, "")))
		if strings.ContainsAny(item, "\r\n\\") {
			why = "it holds a line end"
		}
		if why != "" {
			return nil, &RefusedError{File: "connector.json", Path: fmt.Sprintf("dependencies[%d]", i), What: why}
		}
		out = append(out, r)
	}
	return out, checkRequirements("connector.json", out)
}

// describe fills in what a person is told.
func (s *Set) describe(list []requirement) {
	s.Locked = true
	for _, r := range list {
		s.Asked = append(s.Asked, strings.TrimSpace(r.name+" "+r.version))
		if len(r.hashes) == 0 {
			s.Locked = false
			continue
		}
		p := Package{Name: normalName(r.name), Version: r.exact}
		if len(r.hashes) == 1 {
			p.Integrity = "sha256:" + r.hashes[0]
		}
		s.Packages = append(s.Packages, p)
	}
	slices.Sort(s.Asked)
	if sortPackages(s.Packages); !s.Locked {
		s.Packages = nil
		s.Why = "its lines have no hashes: the index decides what comes, and that is recorded with its digests"
	}
}

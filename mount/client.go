package mount

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Client is one MCP client as it is found on this machine.
type Client struct {
	ID, Name string
	// Detected tells whether the client seems to be here: its file, its folder or its
	// program in PATH.
	Detected bool
	// Files are those to mount into, each of them, the preferred one first; they need
	// not exist. More than one when several builds of the client read different files.
	// Never empty, unless Problem says why.
	Files []string
	// Problem says why its place cannot be told: a variable that is not an absolute path.
	Problem string
	// Grade says how sure the facts are: "A", "B", or "C", which is never created.
	Grade string
	// Restart says that it reads its file at its start only.
	Restart bool
}

// Clients lists all clients of the table, with what of them is here. The engine is
// not among them: its folder is given, not found.
func (m *Mounter) Clients() []Client {
	rows := table()
	out := make([]Client, len(rows))
	for i := range rows {
		out[i] = m.client(&rows[i])
	}
	return out
}

// candidate is one place of a row, made absolute.
type candidate struct {
	path   string
	sign   string // what exists when the client is here
	beside bool
	exists bool
}

func (m *Mounter) client(r *row) Client {
	c := Client{ID: r.id, Name: r.name, Grade: string(r.grade), Restart: r.restart}
	all, decided, err := m.candidates(r)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("the folder for its file is not known: %s is not set to an absolute path", m.homeVariable())
	}
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	home := m.base("~")
	for _, a := range all {
		c.Detected = c.Detected || a.exists || a.sign != home && exists(a.sign)
	}
	for _, place := range r.here {
		if p, ok, _ := m.expand(place); ok {
			c.Detected = c.Detected || exists(p)
		}
	}
	c.Detected = c.Detected || decided || slices.ContainsFunc(r.programs, m.inPath)
	for _, a := range chosen(r, all) {
		c.Files = append(c.Files, a.path)
	}
	return c
}

// chosen picks the files to write: those that exist, the first of them or each, or
// the first place of all.
func chosen(r *row, all []candidate) []candidate {
	var out, beside []candidate
	for _, a := range all {
		switch {
		case a.beside && exists(a.sign):
			beside = append(beside, a)
		case a.beside:
		case a.exists && (r.every || len(out) == 0):
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		out = all[:1]
		if len(beside) > 0 && !exists(out[0].sign) {
			out = nil
		}
	}
	return append(out, beside...)
}

// candidates expands the places of a row. decided says that a variable of the
// client named the only one.
func (m *Mounter) candidates(r *row) (all []candidate, decided bool, err error) {
	places := r.all
	if places == nil {
		places = map[string][]string{"darwin": r.darwin, "windows": r.windows}[m.o.OS]
		if m.o.OS != "darwin" && m.o.OS != "windows" {
			places = r.linux
		}
	}
	for _, p := range places {
		p, beside := strings.CutPrefix(p, "+")
		p, mayDecide := strings.CutPrefix(p, "?")
		whole, known, err := m.expand(strings.Replace(p, "|", "", 1))
		if err != nil {
			return nil, false, err
		}
		if !known {
			continue
		}
		a := candidate{path: whole, sign: filepath.Dir(whole), beside: beside, exists: exists(whole)}
		if sign, _, ok := strings.Cut(p, "|"); ok {
			a.sign, _, _ = m.expand(sign)
		}
		if mayDecide && !a.exists {
			continue
		}
		if mayDecide || strings.HasPrefix(p, "$") {
			return []candidate{a}, true, nil
		}
		all = append(all, a)
	}
	return all, false, nil
}

// expand makes a place absolute; known is false when its base is not set.
func (m *Mounter) expand(place string) (path string, known bool, err error) {
	name, rest, _ := strings.Cut(place, "/")
	base := m.base(name)
	if variable, ok := strings.CutPrefix(name, "$"); ok && base != "" && !filepath.IsAbs(base) {
		return "", false, fmt.Errorf("%s is set to %q, which is not an absolute path", variable, base)
	}
	if !filepath.IsAbs(base) {
		return "", false, nil
	}
	return filepath.Join(base, filepath.FromSlash(rest)), true, nil
}

func (m *Mounter) homeVariable() string {
	if m.o.OS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

func (m *Mounter) base(name string) string {
	env := m.o.Env
	under := func(base string, parts ...string) string {
		if !filepath.IsAbs(base) {
			return ""
		}
		return filepath.Join(append([]string{base}, parts...)...)
	}
	home := env(m.homeVariable())
	switch name {
	case "~":
		return under(home)
	case "CFG", "XDG":
		if x := env("XDG_CONFIG_HOME"); filepath.IsAbs(x) {
			return x
		}
		return under(home, ".config")
	case "ASUP":
		return under(home, "Library", "Application Support")
	case "APPDATA", "LOCALAPPDATA":
		return under(env(name))
	}
	return env(strings.TrimPrefix(name, "$"))
}

// inPath tells whether a program of that name is in PATH.
func (m *Mounter) inPath(name string) bool {
	names := []string{name}
	if m.o.OS == "windows" {
		names = []string{name + ".exe", name + ".cmd"}
	}
	for _, dir := range filepath.SplitList(m.o.Env("PATH")) {
		for _, n := range names {
			if !filepath.IsAbs(dir) {
				continue
			}
			if fi, err := os.Stat(filepath.Join(dir, n)); err == nil && fi.Mode().IsRegular() {
				return true
			}
		}
	}
	return false
}

package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"skald-connectors/internal/lazyre"
)

// Entry is one server of a client's file, as the client reads it.
type Entry struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string
	// URL is set for a server that is reached, not started, with its Headers.
	URL     string
	Headers map[string]string
	Digest  string
	// Line is where the entry begins, 1-based.
	Line int
	// Activation is the name after `run` when the entry starts this program, else "".
	Activation string
	// Elsewhere tells that it does so for another home than the Mounter's: it is none of its entries.
	Elsewhere bool
	// Secrets names the members that hold a secret in plain text: "env GITHUB_TOKEN",
	// "argument 3", "header Authorization". Never their values; see Plain.
	Secrets []string
}

// Plain gives the values of the members that Secrets names, by those names, for
// whoever moves them to a safer place or strikes them out.
func (e Entry) Plain() map[string]string {
	out := map[string]string{}
	for _, where := range e.Secrets {
		kind, name, _ := strings.Cut(where, " ")
		switch kind {
		case "env":
			out[where] = e.Env[name]
		case "header":
			out[where] = e.Headers[name]
		default:
			if n, err := strconv.Atoi(name); err == nil && n <= len(e.Args) {
				out[where] = e.Args[n-1]
			}
		}
	}
	return out
}

// FileState is what one file of a client holds.
type FileState struct {
	Client, File string
	Exists       bool
	Entries      []Entry
	// Err is a *RefusedError when the file cannot be read.
	Err error
}

// Inspect reads the files of a client. An entry that starts a program can be adopted:
// its Command, Args and Env are what an activation needs, and Mount replaces it when
// its Digest is in Request.Digests.
func (m *Mounter) Inspect(client, configDir string) ([]FileState, error) {
	if client == Engine {
		t, err := m.engineTarget(Request{ConfigDir: configDir, Name: "any"})
		if err != nil {
			return nil, err
		}
		return []FileState{t.inspect()}, nil
	}
	w := rowOf(client)
	if w == nil {
		return nil, refusef(UnknownClient, "", "there is no client %q", client)
	}
	c := m.client(w)
	if c.Problem != "" {
		return nil, refusef(UnknownFile, "", "%s", c.Problem)
	}
	out := make([]FileState, len(c.Files))
	for i, file := range c.Files {
		out[i] = m.rowTarget(w, file).inspect()
	}
	return out, nil
}

// rowTarget is a target that is only read.
func (m *Mounter) rowTarget(w *row, file string) *target {
	t := &target{client: w.id, file: file, real: file, shape: w.shape, ed: editorOf(w.format), place: w.place(),
		command: m.o.Program, home: m.o.Home, settle: m.settle, restart: w.restart, mkdir: w.mkdirLck}
	if w.shape == opencodeV1 {
		t.adapt = adaptOpenCode
	}
	return t
}

func (t *target) inspect() FileState {
	s := FileState{Client: t.client, File: t.file}
	cur, fi, err := t.read()
	s.Exists = fi != nil || err != nil
	if err != nil || cur == nil {
		s.Err = err
		return s
	}
	e, tree, err := t.edit(cur)
	if err != nil {
		s.Err = err
		return s
	}
	for _, named := range e.place.entries(tree) {
		line, _ := e.line(cur, named.key)
		s.Entries = append(s.Entries, inspected(named, line, t.command, t.home))
	}
	return s
}

func inspected(named field, line int, program, home string) Entry {
	x := Entry{Name: named.key, Digest: digestOf(named.val), Line: line}
	st, _ := readStart(named.val)
	x.Command, x.Args, x.Env, x.URL, x.Headers = st.command, st.args, st.env, st.url, st.headers
	if isProgram(st.command, program) && len(st.args) > 1 && st.args[0] == "run" {
		x.Activation, x.Elsewhere = st.args[1], st.homeNamed() != home
	}
	x.Secrets = plainSecrets(st)
	return x
}

// entries lists the servers of a tree by name.
func (p place) entries(tree any) fields {
	switch c := p.container(tree).(type) {
	case map[string]any:
		if !p.list {
			out, _ := pairs(c)
			return out
		}
	case []any:
		var out fields
		for _, item := range c {
			if m, ok := item.(map[string]any); ok && p.list {
				name, _ := m["name"].(string)
				out = append(out, field{name, item})
			}
		}
		return out
	}
	return nil
}

var (
	// secretName is a variable or an option that holds a secret by its name.
	secretName = lazyre.New(`(?i)(token|secret|passw|passphrase|credential|api[_-]?key|private[_-]?key|access[_-]?key|(^|[_-])(key|pat|auth|pwd)$)`)
	// secretValue is one that is a secret by its form.
	secretValue = lazyre.New(`^(gh[pousr]_|github_pat_|glpat-|sk-|xox[a-z]-|AKIA[0-9A-Z]{16}|AIza|eyJ[A-Za-z0-9_-]{10,}\.|-----BEGIN )`)
	// reference is a value that names a secret elsewhere.
	reference = lazyre.New(`^(\$\{.*\}|\$[A-Za-z_][A-Za-z0-9_]*|\{(env|file|input):.*\}|op://.*)$`)
)

func plainSecrets(s start) []string {
	var out []string
	for name, value := range s.env {
		if value != "" && !reference.MatchString(value) && (secretName.MatchString(name) || secretValue.MatchString(value)) {
			out = append(out, "env "+name)
		}
	}
	for name, value := range s.headers {
		_, bare, scheme := strings.Cut(value, " ")
		if !scheme {
			bare = value
		}
		if value != "" && !reference.MatchString(bare) && (strings.EqualFold(name, "Authorization") || secretName.MatchString(name) || secretValue.MatchString(bare)) {
			out = append(out, "header "+name)
		}
	}
	slices.Sort(out)
	for i, a := range s.args {
		option, value, joined := strings.Cut(a, "=")
		if !joined {
			value = a
			if option = ""; i > 0 && strings.HasPrefix(s.args[i-1], "-") && !strings.HasPrefix(a, "-") {
				option = s.args[i-1]
			}
		}
		named := strings.HasPrefix(option, "-") && secretName.MatchString(option)
		if value != "" && !reference.MatchString(value) && (named || secretValue.MatchString(value)) {
			out = append(out, "argument "+strconv.Itoa(i+1))
		}
	}
	return out
}

// FindingKind says what is the matter with a mount.
type FindingKind string

// The kinds of a finding.
const (
	MountOK        FindingKind = "ok"              // as it was written
	EntryAbsent    FindingKind = "absent"          // it was taken out by somebody
	EntryEdited    FindingKind = "edited"          // it has other values
	ProgramGone    FindingKind = "program_gone"    // what it starts is not there
	ActivationGone FindingKind = "activation_gone" // it starts an activation that is not installed
	FileMoved      FindingKind = "file_moved"      // the client reads another file now
	FileUnreadable FindingKind = "unreadable"      // the file cannot be read
	NotRecorded    FindingKind = "not_recorded"    // it starts us, and no record knows it
	PlainSecret    FindingKind = "plain_secret"    // another entry holds a secret in plain text
)

// Finding is one thing to say about one entry of one file. Detail is a fact for a
// person; it never holds a secret.
type Finding struct {
	Kind               FindingKind
	Name, Client, File string
	Line               int
	Detail             string
}

// Drift compares what the records say (Client, Name, File, Digests, ConfigDir) with what
// the files of all detected clients hold. known tells whether an activation of a name
// is installed.
func (m *Mounter) Drift(recorded []Request, known func(name string) bool) []Finding {
	var out []Finding
	seen := map[string]bool{} // client, file and name of what a record explains
	for _, r := range recorded {
		seen[r.Client+"\x00"+r.File+"\x00"+r.Name] = true
		out = append(out, m.recordedDrift(r, known))
	}
	for _, c := range m.Clients() {
		if !c.Detected || c.Problem != "" {
			continue
		}
		states, _ := m.Inspect(c.ID, "")
		for _, s := range states {
			out = append(out, m.foreignDrift(s, seen, known)...)
		}
	}
	return out
}

func (m *Mounter) recordedDrift(r Request, known func(string) bool) Finding {
	f := Finding{Kind: MountOK, Name: r.Name, Client: r.Client, File: r.File}
	if r.Client == Engine && r.ConfigDir == "" && r.File != "" {
		r.ConfigDir = filepath.Dir(filepath.Dir(r.File))
	}
	states, err := m.Inspect(r.Client, r.ConfigDir)
	if err != nil {
		f.Kind, f.Detail = FileUnreadable, err.Error()
		return f
	}
	i := slices.IndexFunc(states, func(s FileState) bool { return s.File == r.File })
	if i < 0 {
		f.Kind, f.Detail = FileMoved, states[0].File
		return f
	}
	s := states[i]
	if s.Err != nil {
		f.Kind, f.Detail = FileUnreadable, s.Err.Error()
		return f
	}
	k := slices.IndexFunc(s.Entries, func(e Entry) bool { return e.Name == r.Name })
	if k < 0 {
		f.Kind = EntryAbsent
		return f
	}
	e := s.Entries[k]
	f.Line = e.Line
	switch gone := m.programGone(e.Command); {
	case !known(r.Name):
		f.Kind = ActivationGone
	case e.Activation != r.Name:
		f.Kind, f.Detail = EntryEdited, "it starts something else"
	case gone != "":
		f.Kind, f.Detail = ProgramGone, gone
	case len(r.Digests) > 0 && !slices.Contains(r.Digests, e.Digest):
		f.Kind = EntryEdited
	}
	return f
}

func (m *Mounter) foreignDrift(s FileState, seen map[string]bool, known func(string) bool) []Finding {
	var out []Finding
	if s.Err != nil {
		return []Finding{{Kind: FileUnreadable, Client: s.Client, File: s.File, Detail: s.Err.Error()}}
	}
	for _, e := range s.Entries {
		f := Finding{Name: e.Name, Client: s.Client, File: s.File, Line: e.Line}
		switch {
		case seen[s.Client+"\x00"+s.File+"\x00"+e.Name], e.Elsewhere:
			continue
		case e.Activation != "" && !known(e.Activation):
			f.Kind, f.Detail = ActivationGone, e.Activation
		case e.Activation != "":
			f.Kind, f.Detail = NotRecorded, e.Activation
		case len(e.Secrets) > 0:
			f.Kind, f.Detail = PlainSecret, strings.Join(e.Secrets, ", ")
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}

// programGone gives the path of a program that is not there, "" when it is.
func (m *Mounter) programGone(command string) string {
	if !filepath.IsAbs(command) {
		if m.inPath(command) {
			return ""
		}
		return command
	}
	fi, err := os.Stat(command)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.Mode().IsRegular() {
		return command
	}
	return ""
}

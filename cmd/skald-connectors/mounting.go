package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/form"
	"skald-connectors/keystore"
	"skald-connectors/mount"
)

// configDirVariable names the engine's configuration folder (mount.md).
const configDirVariable = "CONFIG_LOCAL_DIR"

// mounter edits the configurations of this user's MCP clients. lasting is false
// when the command that it writes is a path that will not stay.
func (a *app) mounter(home string) (m *mount.Mounter, command string, lasting bool, err error) {
	self, err := a.self()
	if err != nil {
		return nil, "", false, err
	}
	command, lasting = mount.StableProgram(self, a.getenv, runtime.GOOS)
	named := home
	if home == a.plainHome() {
		named = ""
	}
	o := mount.Options{Env: a.getenv, OS: runtime.GOOS, State: filepath.Join(home, "mounts"), Program: command, Home: named}
	if a.hooks.impatient {
		o.LockWait, o.Tries = 100*time.Millisecond, 3
	}
	return mount.New(o), command, lasting, nil
}

// withMounts gives an activator the clients of this user.
func (a *app) withMounts(act *activate.Activator) error {
	m, _, _, err := a.mounter(act.Home)
	act.Mounts = m
	return err
}

// noteTemporary says that the command that was written will not last. The engine's is a name.
func (a *app) noteTemporary(home string, report *mountReport) {
	if !slices.ContainsFunc(report.Results, func(o mountOutcome) bool { return o.Changed && o.Client != mount.Engine }) {
		return
	}
	if _, command, lasting, err := a.mounter(home); err == nil && !lasting {
		a.say("note: clients will start %s, which is in a temporary place; put the program into a folder of PATH and mount again", command)
	}
}

// clientFlags choose clients.
type clientFlags struct {
	clients   []string
	all       bool
	configDir string
}

func (f *clientFlags) register(a *app, c *cobra.Command) {
	c.Flags().StringSliceVar(&f.clients, "client", nil, "`CLIENT` to write to, such as cursor, or engine (repeatable)")
	c.Flags().BoolVar(&f.all, "all-clients", false, "every client that is found here")
	c.Flags().StringVar(&f.configDir, "config-dir", "", "configuration folder of the engine (`DIR`, else "+configDirVariable+")")
	_ = c.RegisterFlagCompletionFunc("client", a.completeClients)
}

// engineDir is the engine's configuration folder, "" where none is named.
func (f *clientFlags) engineDir(a *app) string {
	return orElse(f.configDir, a.getenv(configDirVariable))
}

// named tells which clients the flags name; an empty list leaves it open.
func (f *clientFlags) named(a *app, m *mount.Mounter) ([]string, error) {
	if f.all && len(f.clients) > 0 {
		return nil, usagef("--client and --all-clients exclude each other")
	}
	var ids []string
	for _, id := range f.clients {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 && f.configDir != "" && !f.all {
		ids = []string{mount.Engine}
	}
	return ids, checkClients(m, ids)
}

// checkClients refuses words that are no client.
func checkClients(m *mount.Mounter, ids []string) error {
	known := m.Clients()
	for _, id := range ids {
		if id == mount.Engine || slices.ContainsFunc(known, func(c mount.Client) bool { return c.ID == id }) {
			continue
		}
		said := fmt.Sprintf("there is no client %q", id)
		if near := nearClients(known, id); len(near) > 0 {
			said += "; similar: " + strings.Join(near, ", ")
		}
		return withHint(usagef("%s", said), "see them with %s clients --all", program)
	}
	return nil
}

// nearClients are the clients whose id a misspelt word may mean.
func nearClients(known []mount.Client, word string) []string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, c := range known {
		all.AddCommand(&cobra.Command{Use: c.ID, Run: func(*cobra.Command, []string) {}})
	}
	return all.SuggestionsFor(word)
}

// placesIn are the files of one client, as requests.
func placesIn(m *mount.Mounter, id, name, configDir string) ([]mount.Request, error) {
	if id == mount.Engine {
		return []mount.Request{{Client: id, Name: name, ConfigDir: configDir}}, nil
	}
	for _, c := range m.Clients() {
		if c.ID != id {
			continue
		}
		if c.Problem != "" {
			return nil, &mount.RefusedError{Reason: mount.UnknownFile, Message: c.Problem}
		}
		var out []mount.Request
		for _, file := range c.Files {
			out = append(out, mount.Request{Client: id, Name: name, File: file, Create: true})
		}
		return out, nil
	}
	return nil, nil
}

// mountOutcome is what came of one file, as the JSON documents have it.
type mountOutcome struct {
	Name    string `json:"name"`
	Client  string `json:"client"`
	File    string `json:"file"`
	Target  string `json:"target,omitempty"`
	Changed bool   `json:"changed"`
	Deleted bool   `json:"deleted,omitempty"`
	Diff    string `json:"diff,omitempty"`
	Backup  string `json:"backup,omitempty"`
	Restart bool   `json:"restart,omitempty"`
}

// mountRefusal is a file that was left as it was.
type mountRefusal struct {
	Name    string       `json:"name"`
	Client  string       `json:"client"`
	File    string       `json:"file,omitempty"`
	Line    int          `json:"line,omitempty"`
	Column  int          `json:"column,omitempty"`
	Reason  mount.Reason `json:"reason"`
	Message string       `json:"message"`

	err error
}

// mountReport gathers what one command did to clients.
type mountReport struct {
	Results []mountOutcome `json:"results"`
	Refused []mountRefusal `json:"refused"`
}

func newMountReport() *mountReport {
	return &mountReport{Results: []mountOutcome{}, Refused: []mountRefusal{}}
}

// add takes one outcome; what is no refusal of a file is returned.
func (r *mountReport) add(req mount.Request, res mount.Result, err error) error {
	var refused *mount.RefusedError
	switch {
	case err == nil:
		r.Results = append(r.Results, mountOutcome{req.Name, req.Client, res.File, res.Target, res.Changed, res.Deleted, res.Diff, res.Backup, res.Restart})
		return nil
	case !errors.As(err, &refused):
		return err
	}
	r.Refused = append(r.Refused, mountRefusal{req.Name, req.Client, refused.File, refused.Line, refused.Col, refused.Reason, refused.Message, err})
	return nil
}

// changed tells whether anything was written, or would be.
func (r *mountReport) changed() bool {
	return slices.ContainsFunc(r.Results, func(o mountOutcome) bool { return o.Changed })
}

// say shows the outcomes of mount ("mounted") or unmount, one line each.
func (a *app) sayMounts(r *mountReport, mounted, dryRun bool) {
	for _, o := range r.Results {
		switch {
		case dryRun && o.Changed:
			fmt.Fprint(a.stdout, cleanLines(o.Diff))
		case mounted:
			a.line("%s", a.mountedLine(o))
		case o.Changed:
			a.line("unmounted connector %s from %s%s", o.Name, o.File, restartWord(o))
		default:
			a.line("connector %s is not mounted in %s", o.Name, o.File)
		}
	}
	for _, f := range r.Refused {
		a.sayRefusal(f, mounted)
	}
}

func (a *app) mountedLine(o mountOutcome) string {
	if !o.Changed {
		return fmt.Sprintf("connector %s is already mounted in %s", o.Name, o.File)
	}
	return fmt.Sprintf("mounted connector %s in %s%s", o.Name, o.File, restartWord(o))
}

func restartWord(o mountOutcome) string {
	switch {
	case o.Client == mount.Engine:
		return "; restart the engine to apply"
	case o.Restart:
		return "; restart " + clientName(o.Client) + " to apply"
	}
	return ""
}

// clientName is how a client calls itself.
func clientName(id string) string {
	for _, c := range mount.New(mount.Options{Env: func(string) string { return "" }}).Clients() {
		if c.ID == id {
			return c.Name
		}
	}
	return id
}

// sayRefusal is the one line of a refusal on standard error (mount.md), with
// advice where it is not the engine that reads it.
func (a *app) sayRefusal(f mountRefusal, mounted bool) {
	a.clearProgress()
	verb := "mount"
	if !mounted {
		verb = "unmount"
	}
	fmt.Fprintln(a.stderr, a.wrapped(fmt.Sprintf("%s: %s refused (%s): %s", program, verb, f.Reason, words(f.err))))
	if hint := refusalHint(f); hint != "" && f.Client != mount.Engine {
		fmt.Fprintln(a.stderr, a.wrapped("hint: "+hint))
	}
}

func refusalHint(f mountRefusal) string {
	switch f.Reason {
	case mount.Conflict:
		return "rename or remove that entry, or move it into the key store with " + program + " mount --adopt " + f.Name
	case mount.Unreadable, mount.UnexpectedShape:
		return "nothing was written; mend the file at that place and run the command again"
	case mount.NotHere:
		return "start " + clientName(f.Client) + " once, so that it makes its folder"
	case mount.ChangedDuringWrite, mount.Locked:
		return "close " + clientName(f.Client) + " and run the command again"
	case mount.UnusableProgram:
		return "put a link to the program into a folder of PATH without a space and run the command again"
	}
	return ""
}

// ended is the exit of a command that mounts: all is said already.
func (r *mountReport) ended(dryRun bool) error {
	switch {
	case len(r.Refused) > 0:
		return &saidError{exitFailed}
	case dryRun && r.changed():
		return &saidError{exitToDo}
	}
	return nil
}

// cleanLines makes the lines of a difference safe to show.
func cleanLines(diff string) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		b.WriteString(strings.ReplaceAll(form.Clean(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "\x00")), `\x00`, "\t") + "\n")
	}
	return b.String()
}

// withoutSecrets strikes the secrets that other entries of a file hold out of a
// difference, which shows the lines around ours.
func withoutSecrets(m *mount.Mounter, req mount.Request, diff string) string {
	if diff == "" {
		return ""
	}
	states, err := m.Inspect(req.Client, req.ConfigDir)
	if err != nil {
		return diff
	}
	var hs []keystore.Handle
	for _, s := range states {
		for _, e := range s.Entries {
			for where, value := range e.Plain() {
				hs = append(hs, keystore.Handle{Name: where, Value: keystore.NewSecret(value), Secret: true})
			}
		}
	}
	return keystore.NewRedactor(hs).String(diff)
}

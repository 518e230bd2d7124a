package activate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/install"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/keystore"
	"skald-connectors/login"
	"skald-connectors/manifest"
	"skald-connectors/mount"
	"skald-connectors/sandbox"
)

// Person is who is asked. It is nil where nobody can be.
type Person interface {
	// Fill shows the fields of one connector and returns an answer for each.
	Fill(ctx context.Context, title string, qs []form.Question) (map[string]form.Answer, error)
	// Pair shows a QR code, and what becomes of it, while run goes on; Esc and Ctrl-C
	// end it with form.ErrLeft and form.ErrAborted.
	Pair(ctx context.Context, name string, run func(ctx context.Context, show func(form.QRView)) error) error
	// Decide is asked when the sign-in, verify or the probe failed.
	Decide(ctx context.Context, f Failure) (Decision, error)
}

// Decision is the answer to a failure.
type Decision int

const (
	GiveUp      Decision = iota // store nothing
	Edit                        // show the form again, with what was typed
	SignInAgain                 // sign in anew, perhaps with another account
	GrantAll                    // grant what the sandbox refused, and try again
	Retry                       // try the same values again
	SavePending                 // store them unverified, or not signed in; the session parks
)

// Failure is what a person decides about. Err is a *RefusedError, a
// *ProbeError, a *SignInError or what kept verify from running.
type Failure struct {
	Name     string
	Err      error
	CanEdit  bool     // there are fields to edit
	CanSign  bool     // it signs in, and can do so again
	CanKeep  bool     // what is there can be saved as pending
	KeepsOld bool     // giving up leaves the version that is here in force
	Grants   []Access // what would have allowed what the sandbox refused
}

// Activator holds what the flows work with. All fields but Person, Step and
// Say are required.
type Activator struct {
	Home  string
	Store *install.Store
	Keys  *keystore.Store
	// Single are the folders of Home in which files are replaced one by one: a killed writer leaves a temporary file there.
	Single []string
	// OpenSandbox gives the sandbox of a mode that a user asked for ("auto", "none",
	// …); *sandbox.UnenforceableError when it is not to be had here.
	OpenSandbox func(mode string) (*sandbox.Sandbox, error)
	Person      Person
	// Signer brings a person to a browser; nil where a sign-in is not possible.
	Signer *Signer
	// Environ is this program's own environment ("NAME=value"); connectors get
	// the listed part of it.
	Environ []string
	// HTTP asks remote servers; see HTTPClient.
	HTTP *http.Client
	Now  func() time.Time
	// Allowed says, before anything of an activation is started, whether its version
	// may still run: the error that it gives is why not. nil: nobody takes versions back.
	Allowed func(*record.Record) error
	// Mounts edits the configurations of MCP clients; nil leaves them alone.
	Mounts *mount.Mounter
	// UserHome is the person's home folder: npm and pip keep their settings there.
	UserHome string
	// Packages is told the progress of npm and pip: packages in place, of how many
	// (0 = unknown).
	Packages func(ecosystem string, done, total int)
	// Leaving are activations that the same command removes too: their sign-ins keep none from being revoked.
	Leaving []string
	// Step is told the name of each step that changes the disk, before it.
	Step func(string)
	// Say is told what is being done, in words for a person.
	Say func(string)
	// Busy is told that something begins that may take until the limit, and
	// returns what to call at its end. It may be nil.
	Busy func(what string, limit time.Duration) (done func())

	renewals  sync.RWMutex // held for reading while a credential is renewed; see Settle
	keyWanted bool         // the key of the vaults was made ready for what is going to be stored
	// asked holds what interpreters said of themselves, by the path that was looked up:
	// a version manager's shim takes a quarter of a second to answer, and several
	// connectors ask the same.
	asked sync.Map
}

// Records gives access to the records.
func (a *Activator) Records() record.Store { return record.Open(a.Home) }

func (a *Activator) definitions() record.Definitions { return record.OpenDefinitions(a.Home) }

// runnable reads the manifest of an activation that is to be started.
func (a *Activator) runnable(rec *record.Record) (*manifest.Manifest, error) {
	if err := a.allow(rec); err != nil {
		return nil, err
	}
	return a.Manifest(rec)
}

func (a *Activator) allow(rec *record.Record) error {
	if a.Allowed == nil {
		return nil
	}
	return a.Allowed(rec)
}

// startable is runnable for the starts of a client: the version folder is
// read-only to every connector, so what is noted of it counts.
func (a *Activator) startable(rec *record.Record) (*manifest.Manifest, error) {
	if err := a.allow(rec); err != nil {
		return nil, err
	}
	if err := a.Store.CheckNoted(rec.Ref(), rec.Pins(), a.Now()); err != nil {
		return nil, err
	}
	return a.checkedManifest(rec)
}

func (a *Activator) step(name string) {
	if a.Step != nil {
		a.Step(name)
	}
}

func (a *Activator) busy(what string, limit time.Duration) func() {
	if a.Busy == nil {
		return func() {}
	}
	return a.Busy(what, limit)
}

func (a *Activator) say(format string, args ...any) {
	if a.Say != nil {
		a.Say(fmt.Sprintf(format, args...))
	}
}

// lockName makes this process the only one that works on the activation.
func (a *Activator) lockName(ctx context.Context, name string) (func(), error) {
	return a.Store.LockName(ctx, name, func(holder string) {
		a.say("waiting for another skald-connectors that works on %q (%s)", name, holder)
	})
}

// lockCommit is held from the moment when something that no record names yet
// is put in place until the record is written, and by every sweep: so a sweep
// never takes away what another process is about to name.
func (a *Activator) lockCommit(ctx context.Context) (func(), error) {
	path, err := a.Store.OwnLock("commit")
	if err != nil {
		return nil, err
	}
	return atomicfile.Lock(ctx, path, func(holder string) {
		a.say("waiting for another skald-connectors to finish writing (%s)", holder)
	})
}

// trial is one set of values tried on one version in one folder.
type trial struct {
	name     string
	manifest *manifest.Manifest
	files    []manifest.File
	values   *values
	runtimes []record.Runtime
	trees    []*install.Tree  // its dependencies
	treeDirs []string         // where those are
	deps     []record.DepsRef // the same for the record
	release  func()           // lets a sweep at trees that no record names; nil = none
	dir      string           // where it runs
	box      *sandbox.Sandbox
	grants   []Access // by the user, beyond the manifest
	withheld []Access // by the user, from what the manifest asks for
	sign     signing  // of a qr connector
	paired   bool     // a phone has read its code
	live     func()   // lets another process have its upstream; nil = not held
	only     []string // the fields that the first form asks for; nil = all
	// keepSandbox leaves what the record says of the sandbox: nothing is started.
	keepSandbox bool
	replaces    bool               // another version, which stays when this one is given up
	signAnew    bool               // a new sign-in is wanted, also where there is one
	challenged  bool               // a remote server's own sign-in was tried
	obtained    []login.Credential // by this trial; not stored yet
	before      login.Credential   // what a new sign-in follows
	prepared    bool               // the key store was made ready for a sign-in
	held        bool               // the lock of the sign-in is held
	signedOut   bool               // whoever works on it gives back what it was signed in with; commit does not
}

// base is the environment before the manifest's own part. The connector's home
// is a folder of its own that outlives versions.
func (t *trial) base(a *Activator) *environ {
	e := baseEnviron(a.Environ, a.connectorHome(t.name), t.runtimes)
	if socket := t.policy(a).Agent; socket != "" {
		e.set(agentVariable, socket)
	}
	return e
}

// connectorHome is the HOME that an activation's processes see.
func (a *Activator) connectorHome(name string) string {
	return filepath.Join(a.Home, "state", name, "home")
}

// makeHome makes it. Each folder on the way has to be one: a link would have the
// connector's files elsewhere.
func (a *Activator) makeHome(name string) error {
	home := a.connectorHome(name)
	state := filepath.Dir(home)
	for _, dir := range []string{filepath.Dir(state), state, home} {
		if err := atomicfile.PrivateDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) expandAll(list []string) []string {
	var out []string
	for _, s := range list {
		value, _ := manifest.Expand(s, t.values.lookup, manifest.Plain)
		if value != "" && value != ":" {
			out = append(out, value)
		}
	}
	return out
}

// absolute keeps the paths that are filled in; an optional folder that the
// person left empty grants nothing.
func (t *trial) absolute(list []string) []string {
	var out []string
	for _, p := range t.expandAll(list) {
		if filepath.IsAbs(p) {
			out = append(out, filepath.Clean(p))
		}
	}
	return out
}

// fill shows the form: what was typed before is shown again, secrets only as
// kept.
func (a *Activator) fill(ctx context.Context, t *trial) error {
	var qs []form.Question
	for _, f := range t.values.fields {
		if t.only != nil && !slices.Contains(t.only, f.Name) {
			continue
		}
		current, ok := t.values.filled[f.Name]
		q := form.Question{Field: f, Kept: ok && f.Secret}
		switch {
		case f.Secret:
		case ok:
			q.Current = current
		case f.Default != "":
			q.Current = keystore.NewSecret(f.Default)
		}
		qs = append(qs, q)
	}
	t.only = nil // who edits afterwards sees all
	answers, err := a.Person.Fill(ctx, t.name, qs)
	if err != nil {
		return err
	}
	for _, f := range t.values.fields {
		answer, ok := answers[f.Name]
		if !ok || answer.Kept {
			continue
		}
		clean, _, err := f.Check(answer.Value.Reveal())
		if err != nil {
			return errors.New(f.Name + ": " + err.Error()) // the form checks with the same rule
		}
		t.values.set(f.Name, keystore.NewSecret(clean))
	}
	return nil
}

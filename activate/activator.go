package activate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/install"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/keystore"
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
	KeepsOld bool     // giving up leaves the version that is here in force
	Grants   []Access // what would have allowed what the sandbox refused
}

// Activator holds what the flows work with. All fields but Person, Step and
// Say are required.
type Activator struct {
	Home  string
	Store *install.Store
	Keys  *keystore.Store
	// OpenSandbox gives the sandbox of a mode that a user asked for ("auto", "none",
	// …); *sandbox.UnenforceableError when it is not to be had here.
	OpenSandbox func(mode string) (*sandbox.Sandbox, error)
	Person      Person
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
	// Step is told the name of each step that changes the disk, before it.
	Step func(string)
	// Say is told what is being done, in words for a person.
	Say func(string)
	// Busy is told that something begins that may take until the limit, and
	// returns what to call at its end. It may be nil.
	Busy func(what string, limit time.Duration) (done func())
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
	dir := filepath.Join(a.Home, "locks")
	if err := atomicfile.PrivateDir(dir); err != nil {
		return nil, err
	}
	return atomicfile.Lock(ctx, filepath.Join(dir, ".commit.lock"), func(holder string) {
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
	replaces    bool // another version, which stays when this one is given up
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

// proof is what prove found out.
type proof struct {
	state   record.State
	outcome Outcome
	failed  error             // why it is only pending
	left    bool              // the person left the sign-in with Ctrl-C
	probe   *record.Probe     // nil when saved without one
	verify  *record.VerifyRef // what the record keeps saying when nothing ran
}

// prove tries the values until they pass, or the person decides otherwise.
// Nothing is stored here.
func (a *Activator) prove(ctx context.Context, t *trial, ask, skipVerify bool) (proof, error) {
	for {
		if ask && a.Person != nil && len(t.values.fields) > 0 {
			if err := a.fill(ctx, t); err != nil {
				return proof{}, err
			}
		}
		t.values.applyDefaults()
		if missing := t.values.missing(); len(missing) > 0 {
			return proof{}, &MissingError{Name: t.name, Fields: missing}
		}
		a.noteShort(t)
		p, err := a.try(ctx, t, skipVerify)
		if err == nil {
			return p, nil
		}
		if ctx.Err() != nil {
			return proof{}, context.Cause(ctx)
		}
		if a.Person == nil || !isFailure(err) {
			return proof{}, err
		}
		if errors.Is(err, form.ErrAborted) { // Ctrl-C leaves it not signed in (format.md section 7)
			p.state, p.failed, p.left = record.Unauthorized, err, true
			return p, nil
		}
		decision, derr := a.Person.Decide(ctx, Failure{Name: t.name, Err: err, CanEdit: len(t.values.fields) > 0, KeepsOld: t.replaces, Grants: Relaxations(err)})
		if derr != nil {
			return proof{}, derr
		}
		switch decision {
		case Edit, Retry:
			ask = decision == Edit
		case GrantAll:
			ask = false
			t.grants = append(t.grants, Relaxations(err)...)
		case SavePending:
			p.state, p.failed = stateAfter(err), err
			return p, nil
		default:
			return proof{}, err
		}
	}
}

// isFailure tells what a person can decide about, the connector said no or did
// not come up, from what they cannot mend by other values.
func isFailure(err error) bool {
	var refused *RefusedError
	var probe *ProbeError
	var signIn *SignInError
	return errors.As(err, &refused) || errors.As(err, &probe) || errors.As(err, &signIn)
}

// stateAfter is the state of what is saved after a failure.
func stateAfter(err error) record.State {
	var signIn *SignInError
	if errors.As(err, &signIn) {
		return record.Unauthorized
	}
	return record.Pending
}

// shortSecret is the length below which keystore.Redactor leaves a value in
// running text: it would find it by chance (security.md, H27).
const shortSecret = 8

// noteShort names the secrets that a message of the connector may show.
func (a *Activator) noteShort(t *trial) {
	for _, h := range t.values.handles() {
		if n := h.Value.Len(); h.Secret && n > 0 && n < shortSecret {
			a.say("note: %s has fewer than %d characters, too short to be struck out of what the connector prints", h.Name, shortSecret)
		}
	}
}

// try signs in, where a connector does that, and runs verify and the probe once. On
// failure the proof holds what is known so far, for saving as pending.
func (a *Activator) try(ctx context.Context, t *trial, skipVerify bool) (proof, error) {
	p := proof{state: record.Ready}
	if err := atomicfile.PrivateDir(a.connectorHome(t.name)); err != nil {
		return p, err
	}
	if signsInByQR(t.manifest) {
		probe, signedIn, err := a.signIn(ctx, t)
		p.probe = probe
		if err != nil {
			return p, err
		}
		if !signedIn {
			p.state, p.outcome = record.Unauthorized, Outcome{Message: "not tested: nobody is signed in"}
			return p, nil
		}
	}
	if skipVerify {
		p.outcome = Outcome{Message: "verify was skipped by --no-verify"}
	} else {
		if t.manifest.Verify != nil {
			a.say("verifying (at most %d s): %s", int(t.manifest.Verify.Timeout.Seconds()), form.Clean(t.manifest.Verify.Command))
		}
		var err error
		if p.outcome, err = a.verify(ctx, t); err != nil {
			return p, err
		}
		if p.outcome.Ran && !p.outcome.OK {
			asked := slices.ContainsFunc(t.values.fields, func(f manifest.Field) bool { return f.Required })
			return p, &RefusedError{Name: t.name, Outcome: p.outcome, Asked: asked}
		}
	}
	if p.outcome.Ran {
		a.say("verified in %s: %s", roughly(p.outcome.Elapsed), strings.TrimSpace(p.outcome.Message))
	} else {
		a.say("%s", p.outcome.Message)
	}
	if p.probe != nil { // the sign-in has asked
		return p, nil
	}
	a.say("starting the server once, to list its tools")
	done := a.busy("starting", probeLimit)
	var err error
	p.probe, err = a.probe(ctx, t)
	done()
	return p, err
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

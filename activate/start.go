package activate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/keystore"
	"skald-connectors/sandbox"
)

// Start is an activation that is ready to be started, or the reason why it is
// not to be (launcher.md, sections 1 and 4). It holds secret values: in the
// environment of Command, and in Header and Address.
type Start struct {
	Record *record.Record
	// State is Ready where it may be started, and else says why not.
	// Where the key store is locked, it is that of the record and Locked
	// is set.
	State  record.State
	Locked error
	// Titles are the manifest's display names of tools, by name.
	Titles   map[string]string
	Redactor *keystore.Redactor // strikes its secrets out
	// Release lets a sweep at the files that it runs from. Call it when nothing runs any
	// more; the end of this process does the same.
	Release func()

	// A local connector: what runs, where, and what it may do.
	Box     *sandbox.Sandbox
	Policy  sandbox.Policy
	Command sandbox.Command

	// A remote connector: every token is filled in. Address "" = a local one.
	Address string
	Header  http.Header
	Legacy  bool // HTTP+SSE

	// Until is when the first of its typed credentials stops working; zero = not known.
	Until time.Time

	// Waiting says why a sign-in could not be renewed now; it may work later. Nothing is started meanwhile.
	Waiting error
	signed  *signedStart
}

// Parked tells whether nothing is to be started.
func (s *Start) Parked() bool { return s.Locked != nil || s.Waiting != nil || s.State != record.Ready }

// Done takes away what was laid out for the start: a credential that was delivered as a file. Call it when the server has ended,
// or was not started after all.
func (s *Start) Done() {
	if s.signed != nil {
		s.signed.file.remove()
	}
}

// UnpackedError says that the dependencies of an activation are not what it was
// installed with. A start repairs nothing: it asks no network.
type UnpackedError struct{ Name string }

func (e *UnpackedError) Error() string {
	return fmt.Sprintf("starting %q: its packages are missing or changed, or were made for another interpreter", e.Name)
}

// Prepare makes an activation ready to be started, in the order of launcher.md
// section 1: its files against their pins, its secrets, parked or not, what
// runs. It starts nothing and writes nothing but the folder of its home and a note
// of what it hashed; it waits for no lock and asks no network, since it is asked at every start of a
// client; only a sign-in that is near its end is renewed first. The files that it runs from stay until Release, also when an upgrade
// replaces the version. Errors:
// *NotInstalledError, *DamagedError, *install.ChangedError, *keystore.Error (a
// locked key store is none), *UnpackedError, *RuntimeError,
// *sandbox.UnenforceableError.
func (a *Activator) Prepare(ctx context.Context, name string) (*Start, error) {
	for try := 1; ; try++ {
		rec, release, err := a.hold(name)
		if err != nil {
			return nil, err
		}
		s, err := a.prepare(ctx, rec)
		if err == nil {
			s.Release = release
			return s, nil
		}
		release()
		now, rerr := a.Records().Read(name)
		if try == prepareTries || rerr != nil || now.UpdatedAt.Equal(rec.UpdatedAt) {
			return nil, err
		} // what the record named was replaced meanwhile
	}
}

// prepareTries bounds how often a start begins again because another command replaced
// what it was about to use.
const prepareTries = 3

// hold reads the record of an activation and keeps the version that it names. An
// upgrade may come between the two: what counts is what is named after the hold, see
// install.Store.Use.
func (a *Activator) hold(name string) (rec *record.Record, release func(), err error) {
	if rec, err = a.Records().Read(name); err != nil {
		return nil, nil, err
	}
	for {
		if release, err = a.Store.Use(name, rec.Ref()); err != nil {
			a.say("note: an upgrade cannot see this session: %v", err) // a full disk keeps nobody from working
			return rec, func() {}, nil
		}
		now, err := a.Records().Read(name)
		if err == nil && now.Ref() == rec.Ref() {
			return now, release, nil
		}
		release()
		if err != nil {
			return nil, nil, err
		}
		rec = now
	}
}

func (a *Activator) prepare(ctx context.Context, rec *record.Record) (*Start, error) {
	name := rec.Name
	m, err := a.startable(rec)
	if err != nil {
		return nil, err
	}
	if err := a.Store.CheckWork(name, rec.Ref(), rec.Pins()); err != nil {
		return nil, err
	}
	s := &Start{Record: rec, State: rec.AuthState, Titles: map[string]string{}, Redactor: keystore.NewRedactor(nil)}
	for _, tool := range m.Tools {
		s.Titles[tool.Name] = tool.DisplayName
	}
	hs, err := a.secretsOf(ctx, rec)
	switch {
	case isLocked(err):
		s.Locked = err
		return s, nil
	case err != nil:
		return nil, err
	}
	s.Redactor = keystore.NewRedactor(hs)
	t := &trial{name: name, manifest: m, files: rec.Pins(), values: newValues(m), dir: a.Store.WorkDir(name, rec.Ref()), runtimes: rec.Runtimes}
	t.values.load(rec, hs)
	t.values.applyDefaults()
	t.grants, t.withheld = accesses(rec.Sandbox.Grants), accesses(rec.Sandbox.Withheld)
	if len(t.values.missing()) > 0 && s.State == record.Ready {
		s.State = record.Unauthorized
	}
	if t.values.lacksSignIn(m) && s.State == record.Ready {
		s.State = record.Unauthorized
	}
	if s.Until = earliest(m, rec); s.State == record.Ready && over(s.Until, a.Now()) {
		s.State = record.Expired
	}
	if s.Parked() {
		return s, nil
	}
	if t.values.cred != nil {
		if s.State, s.Waiting, err = a.freshForStart(ctx, t); err != nil || s.Parked() {
			return s, err
		}
		s.Redactor = keystore.NewRedactor(t.values.withCredential(hs))
		s.signed = &signedStart{a: a, name: name, cred: t.values.cred}
	}
	if m.Remote() {
		s.Legacy = m.Server.Transport == "sse"
		s.Address, s.Header, err = remoteRequest(m, t.values)
		return s, err
	}
	return s, a.prepareLocal(ctx, s, t)
}

// prepareLocal settles what runs, where, with which environment, and what it
// may do.
func (a *Activator) prepareLocal(ctx context.Context, s *Start, t *trial) error {
	var err error
	if t.box, err = a.OpenSandbox(modeOf(s.Record)); err != nil {
		return err
	}
	if !present(t.runtimes) { // an interpreter was moved or replaced by an update of the system
		if t.runtimes, err = a.findRuntimes(ctx, t.manifest, t.files, len(s.Record.Deps) == 0); err != nil {
			return err
		}
	}
	if len(s.Record.Deps) > 0 && !a.adopt(t, s.Record) {
		return &UnpackedError{Name: t.name}
	}
	argv, err := serverArgv(t)
	if err != nil {
		return err
	}
	if err := a.makeHome(t.name); err != nil {
		return err
	}
	if s.signed != nil {
		if s.signed.file, err = a.handOver(t); err != nil {
			return err
		}
		t.values.folder = s.signed.file.folder()
	}
	env, _ := connectorEnviron(t.base(a), t.manifest, t.values, t.dir)
	s.Box, s.Policy = t.box, t.policy(a)
	s.Command = sandbox.Command{Argv: argv, Dir: t.dir, Env: env}
	return nil
}

// present tells whether every interpreter is where it was found.
func present(runtimes []record.Runtime) bool {
	return !slices.ContainsFunc(runtimes, func(r record.Runtime) bool {
		_, err := os.Stat(r.Path)
		return err != nil
	})
}

// isLocked tells a key store that the user can open from one that is damaged.
func isLocked(err error) bool {
	var key *keystore.Error
	if !errors.As(err, &key) {
		return false
	}
	switch key.Kind {
	case keystore.Locked, keystore.TimedOut, keystore.Unavailable:
		return true
	}
	return false
}

// JournalPaths are where the sessions of an activation write: what they say,
// and a line for each call.
func (a *Activator) JournalPaths(name string) (log, calls string) {
	return filepath.Join(a.Home, "logs", name+".log"), filepath.Join(a.Home, "calls", name+".jsonl")
}

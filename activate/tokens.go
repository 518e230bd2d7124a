package activate

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/keystore"
	"skald-connectors/login"
)

const (
	// freshLimit bounds the renewal before a start: a client waits for its server.
	freshLimit = 15 * time.Second
	// noteLimit bounds the wait for the lock with which an expired sign-in is written down; who holds it may be signing in.
	noteLimit = 2 * time.Second
)

// signInLock is the lock under which the credential of an activation changes: one refresh across processes, and no refresh
// between the reading of a credential and its place in a new generation.
func (a *Activator) signInLock(name string) (string, error) {
	return a.Store.OwnLock("signin-" + name)
}

// stored is the credential in the vault of an activation, whichever generation its record names.
type stored struct {
	a    *Activator
	name string
}

func (s stored) Load(ctx context.Context) ([]keystore.Handle, error) {
	rec, err := s.a.Records().Read(s.name)
	if err != nil {
		return nil, err
	}
	return s.a.secretsOf(ctx, rec)
}

func (s stored) Update(ctx context.Context, change func([]keystore.Handle) ([]keystore.Handle, error)) error {
	rec, err := s.a.Records().Read(s.name)
	if err != nil {
		return err
	}
	return s.a.Keys.Update(ctx, s.name, max(rec.Vault, 1), func(hs []keystore.Handle) ([]keystore.Handle, error) {
		hs, err := change(hs)
		if cred, ok, _ := login.Find(hs); ok && cred.Renewing.IsZero() {
			s.a.step("write-token")
		} else {
			s.a.step("mark-renewal")
		}
		return hs, err
	})
}

// tried is the credential of a trial, which no vault has yet.
type tried struct {
	a *Activator
	t *trial
}

func (s tried) Load(context.Context) ([]keystore.Handle, error) {
	return s.t.values.withCredential(nil), nil
}

func (s tried) Update(ctx context.Context, change func([]keystore.Handle) ([]keystore.Handle, error)) error {
	hs, err := change(s.t.values.withCredential(nil))
	if err != nil {
		return err
	}
	cred, ok, err := login.Find(hs)
	if ok && !cred.Refresh.Equal(s.t.values.cred.Refresh) { // the one that was written down is worth nothing any more
		err = s.a.owe(ctx, s.t.name, cred)
	}
	if ok {
		s.t.values.cred = &cred
		s.t.obtained[len(s.t.obtained)-1] = cred
	}
	return err
}

// freshen renews the credential of a trial where that is needed. Errors as of login.Client.Fresh.
func (a *Activator) freshen(ctx context.Context, t *trial) error {
	if t.values.cred == nil {
		return nil
	}
	keep := login.Keep(stored{a, t.name})
	if len(t.obtained) > 0 {
		keep = tried{a, t}
	}
	cred, err := a.fresh(ctx, t.name, keep, keystore.Secret{})
	if err == nil || !cred.Access.IsZero() {
		t.values.cred = &cred
	}
	return err
}

func (a *Activator) fresh(ctx context.Context, name string, keep login.Keep, refused keystore.Secret) (login.Credential, error) {
	lock, err := a.signInLock(name)
	if err != nil {
		return login.Credential{}, err
	}
	a.renewals.RLock()
	defer a.renewals.RUnlock()
	return a.Logins().Fresh(ctx, lock, keep, refused)
}

// Settle waits until no credential is being renewed: whoever ends the program before would lose what the provider has
// already given.
func (a *Activator) Settle() {
	a.renewals.Lock()
	defer a.renewals.Unlock()
}

// freshForStart renews the credential before a start and says how that went: state is Ready, or why not; waiting is set where it
// may work later. A server that renews the credential itself is started all the same when the provider cannot be reached.
func (a *Activator) freshForStart(ctx context.Context, t *trial) (state record.State, waiting error, err error) {
	limited, cancel := context.WithTimeout(ctx, freshLimit)
	defer cancel()
	err = a.freshen(limited, t)
	var (
		expired *login.ExpiredError
		reply   *login.ReplyError
	)
	switch {
	case err == nil:
		return record.Ready, nil, nil
	case ctx.Err() != nil:
		return "", nil, context.Cause(ctx)
	case errors.As(err, &expired):
		a.noteExpired(ctx, t.name)
		return record.Expired, nil, nil
	case errors.As(err, &reply), errors.Is(err, context.DeadlineExceeded):
		if renewsItself(t.manifest) || a.Now().Before(t.values.cred.Expires) {
			return record.Ready, nil, nil
		}
		return record.Ready, err, nil
	}
	if _, full := errors.AsType[*keystore.Error](err); full && renewsItself(t.manifest) { // it needs nothing that would have to be stored
		return record.Ready, nil, nil
	}
	return "", nil, err
}

// noteExpired writes down that only a new sign-in helps. Where another process works on the activation, that one will say
// what holds: it is left alone.
func (a *Activator) noteExpired(ctx context.Context, name string) {
	limited, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	unlock, err := a.Store.LockName(limited, name, nil)
	if err != nil {
		return
	}
	defer unlock()
	rec, err := a.Records().Read(name)
	if err != nil || rec.AuthState != record.Ready && rec.AuthState != record.Pending {
		return
	}
	hs, err := a.secretsOf(ctx, rec)
	if err != nil {
		return
	}
	if cred, ok, err := login.Find(hs); err != nil || ok && !cred.Refresh.IsZero() {
		return // somebody has signed in meanwhile
	}
	next := *rec
	next.AuthState, next.UpdatedAt = record.Expired, a.Now().UTC()
	if err := a.Records().Write(&next); err != nil {
		a.say("writing down that the sign-in of %q has expired: %v", name, err)
	}
}

// recordExpired writes down that the sign-in is over; the lock of the name is held.
func (a *Activator) recordExpired(present *record.Record, why error) error {
	next := *present
	next.AuthState, next.UpdatedAt = record.Expired, a.Now().UTC()
	return errors.Join(why, a.Records().Write(&next))
}

// holdSignIn keeps every other process from renewing the credential until it is in its new generation, and takes over what was
// renewed since it was read.
func (a *Activator) holdSignIn(ctx context.Context, t *trial, present *record.Record) (release func(), err error) {
	if present == nil || t.held || !SignsIn(present) && t.values.cred == nil {
		return func() {}, nil
	}
	lock, err := a.signInLock(t.name)
	if err != nil {
		return nil, err
	}
	release, err = atomicfile.Lock(ctx, lock, nil)
	if err != nil || len(t.obtained) > 0 || t.values.cred == nil || present.Vault == 0 {
		return release, err
	}
	hs, err := a.secretsOf(ctx, present)
	if err == nil {
		var cred login.Credential
		var ok bool
		if cred, ok, err = login.Find(hs); ok && renews(cred, *t.values.cred) { // after a rollback it may be of another provider
			t.values.cred = &cred
		}
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// bearerWay carries requests of a session with a remote server, each with an access token that is good for a while.
type bearerWay struct {
	a      *Activator
	name   string
	base   http.RoundTripper
	redact *keystore.Redactor // of the session

	mu   sync.Mutex
	cred login.Credential
	// later is when a renewal that failed is tried again.
	later time.Time
	wait  time.Duration
}

const firstWait, lastWait = 5 * time.Second, 5 * time.Minute

// signedStart is the credential that a start begins with.
type signedStart struct {
	a    *Activator
	name string
	cred *login.Credential
	file *handover // nil = not delivered as a file
}

// SignedIn gives the transport for the session, and what renews its credential after a 401; nil where its credential is no
// sign-in. An error of renew that is a *login.ExpiredError has been written down.
func (s *Start) SignedIn(base http.RoundTripper) (way http.RoundTripper, renew func(context.Context) (http.Header, error)) {
	if s.signed == nil {
		return base, nil
	}
	b := &bearerWay{a: s.signed.a, name: s.signed.name, base: base, redact: s.Redactor, cred: *s.signed.cred}
	return b, func(ctx context.Context) (http.Header, error) {
		if err := b.renew(ctx); err != nil {
			return nil, err
		}
		return s.Header.Clone(), nil
	}
}

// RoundTrip implements http.RoundTripper.
func (b *bearerWay) RoundTrip(req *http.Request) (*http.Response, error) {
	token := b.token(req.Context())
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token.Reveal())
	return b.base.RoundTrip(req)
}

// token gives the access token, renewed before its end. Where that fails the present one is used: the server decides.
func (b *bearerWay) token(ctx context.Context) keystore.Secret {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.a.Now()
	if b.cred.FreshAt(now) || now.Before(b.later) {
		return b.cred.Access
	}
	if err := b.renewLocked(ctx, keystore.Secret{}); err != nil {
		b.wait = min(max(2*b.wait, firstWait), lastWait)
		b.later = now.Add(b.wait)
	}
	return b.cred.Access
}

// renew is asked after a 401.
func (b *bearerWay) renew(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.renewLocked(ctx, b.cred.Access)
}

func (b *bearerWay) renewLocked(ctx context.Context, refused keystore.Secret) error {
	limited, cancel := context.WithTimeout(ctx, freshLimit)
	defer cancel()
	cred, err := b.a.fresh(limited, b.name, stored{b.a, b.name}, refused)
	var expired *login.ExpiredError
	if errors.As(err, &expired) {
		b.a.noteExpired(context.WithoutCancel(ctx), b.name)
	}
	if err == nil || !cred.Access.IsZero() {
		know(b.redact, cred)
		b.cred, b.wait = cred, 0
	}
	return err
}

// know lets the redactor of a session find a renewed credential.
func know(r *keystore.Redactor, cred login.Credential) {
	if hs, err := cred.Merge(nil); err == nil { // plain data of ours always has a JSON form
		r.Add(hs)
	}
}

// RenewAt is when the credential of a started local server should be looked after, though the server may renew it itself: a
// revoked one is noticed then. Zero = never.
func (s *Start) RenewAt() time.Time {
	if s.signed == nil || s.Address != "" || s.signed.cred.Refresh.IsZero() {
		return time.Time{}
	}
	return s.signed.cred.RenewAt()
}

// Renew renews the credential of a started server in the key store, and writes down that it has expired where only a new sign-in
// helps; whoever follows the record parks the session then. later is when to look again.
func (s *Start) Renew(ctx context.Context) (later time.Time) {
	a, name := s.signed.a, s.signed.name
	limited, cancel := context.WithTimeout(ctx, freshLimit)
	defer cancel()
	cred, err := a.fresh(limited, name, stored{a, name}, keystore.Secret{})
	if _, over := errors.AsType[*login.ExpiredError](err); over {
		a.noteExpired(context.WithoutCancel(ctx), name)
		return time.Time{}
	}
	if err != nil {
		return a.Now().Add(lastWait)
	}
	know(s.Redactor, cred)
	if file := s.signed.file; file != nil {
		if err := file.write(cred); err != nil {
			a.say("delivering the renewed sign-in of %q: %v", name, err)
		}
	}
	return cred.RenewAt()
}

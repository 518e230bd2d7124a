package keystore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/zalando/go-keyring"
)

// fakeChain is a keychain in memory that can be told to lie.
type fakeChain struct {
	mu    sync.Mutex
	items map[string]string
	calls int

	limit, cut             int // refuse above, or silently cut at, so many bytes; 0 = no limit
	getErr, setErr, delErr error
	wrong                  bool          // Get gives another value than was set
	silent                 chan struct{} // calls wait for it
}

func newFake() *fakeChain { return &fakeChain{items: map[string]string{}} }

func (f *fakeChain) enter() {
	if f.silent != nil {
		<-f.silent
	}
	f.mu.Lock()
	f.calls++
}

func (f *fakeChain) Get(service, user string) (string, error) {
	f.enter()
	defer f.mu.Unlock()
	v, ok := f.items[service+":"+user]
	switch {
	case f.getErr != nil:
		return "", f.getErr
	case !ok:
		return "", keyring.ErrNotFound
	case f.wrong:
		return strings.ToLower(v), nil
	}
	return v, nil
}

func (f *fakeChain) Set(service, user, value string) error {
	f.enter()
	defer f.mu.Unlock()
	if f.setErr != nil {
		return f.setErr
	}
	if f.limit > 0 && len(value) > f.limit {
		return keyring.ErrSetDataTooBig
	}
	if f.cut > 0 && len(value) > f.cut {
		value = value[:f.cut]
	}
	f.items[service+":"+user] = value
	return nil
}

func (f *fakeChain) Delete(service, user string) error {
	f.enter()
	defer f.mu.Unlock()
	if f.delErr != nil {
		return f.delErr
	}
	if _, ok := f.items[service+":"+user]; !ok {
		return keyring.ErrNotFound
	}
	delete(f.items, service+":"+user)
	return nil
}

// testWork makes scrypt cheap; the factor is read from the file, so only
// writing needs it.
const testWork = 4

func open(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir() + "/keystore"
	}
	s := Open(o)
	s.work = testWork
	return s
}

func phrase(text string) func(context.Context, PassphraseAsk) (Secret, error) {
	return func(context.Context, PassphraseAsk) (Secret, error) { return NewSecret(text), nil }
}

func handles(pairs ...string) []Handle {
	var hs []Handle
	for i := 0; i < len(pairs); i += 2 {
		hs = append(hs, Handle{Name: pairs[i], Value: NewSecret(pairs[i+1]), Secret: true})
	}
	return hs
}

func wantKind(t *testing.T, err error, kind Kind) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("error %v, want kind %q", err, kind)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

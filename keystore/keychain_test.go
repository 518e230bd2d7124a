package keystore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zalando/go-keyring"
)

func TestKeychainThatLies(t *testing.T) {
	locked := errors.New("failed to unlock correct collection '/org/freedesktop/secrets/aliases/default'")
	rows := map[string]struct {
		lie  func(f *fakeChain)
		kind Kind // of the cause; empty when it does no harm
	}{
		"honest":             {func(f *fakeChain) {}, ""},
		"cut at 1996 bytes":  {func(f *fakeChain) { f.cut = 1996 }, ""},
		"limit 2560 bytes":   {func(f *fakeChain) { f.limit = 2560 }, ""},
		"cut at 10 bytes":    {func(f *fakeChain) { f.cut = 10 }, Unavailable},
		"limit 10 bytes":     {func(f *fakeChain) { f.limit = 10 }, Unavailable},
		"wrong read-back":    {func(f *fakeChain) { f.wrong = true }, Unavailable},
		"get fails":          {func(f *fakeChain) { f.getErr = errors.New("broken") }, Unavailable},
		"set fails":          {func(f *fakeChain) { f.setErr = errors.New("broken") }, Unavailable},
		"locked":             {func(f *fakeChain) { f.getErr = locked }, Locked},
		"delete fails":       {func(f *fakeChain) { f.delErr = errors.New("broken") }, ""},
		"delete fails, lies": {func(f *fakeChain) { f.wrong, f.delErr = true, errors.New("broken") }, Unavailable},
		"typed":              {func(f *fakeChain) { f.getErr = &Error{Kind: Locked, Op: "x"} }, Locked},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			row.lie(f)
			o := Options{Dir: filepath.Join(t.TempDir(), "keystore"), Keychain: f}
			big := handles("BIG", strings.Repeat("\U0001F511", 3000))
			err := open(t, o).Put(t.Context(), "gmail", 1, big)
			if row.kind == "" {
				must(t, err)
				hs, err := open(t, o).Load(t.Context(), "gmail", 1)
				if err != nil || !sameHandles(hs, big) {
					t.Errorf("loaded wrong, %v", err)
				}
				return
			}
			wantKind(t, err, NotChosen)
			wantKind(t, errors.Unwrap(err), row.kind)
			if left := files(t, o.Dir); left != "" {
				t.Errorf("files:\n%s", left)
			}
			o.Want = BackendKeychain // named: no question, the cause itself
			err = open(t, o).Put(t.Context(), "gmail", 1, big)
			if f.wrong && f.delErr != nil { // what could not be deleted is still there
				row.kind = Damaged
			}
			wantKind(t, err, row.kind)
		})
	}
}

func TestForgetNeedsTheKeychain(t *testing.T) {
	f := newFake()
	o := Options{Dir: filepath.Join(t.TempDir(), "keystore"), Keychain: f}
	s := open(t, o)
	must(t, s.Put(t.Context(), "gmail", 1, handles("A", "x")))
	must(t, s.Remove("gmail"))
	f.delErr = errors.New("broken")
	wantKind(t, s.Forget(t.Context()), Unavailable)
	if d, err := s.Describe(); err != nil || d.Backend != BackendKeychain {
		t.Errorf("the record went before the key: %+v, %v", d, err)
	}
	f.delErr = nil
	must(t, s.Forget(t.Context()))
}

func TestForeignAndOrphanedItems(t *testing.T) {
	f := newFake()
	o := Options{Dir: filepath.Join(t.TempDir(), "keystore"), Keychain: f, Want: BackendKeychain}
	s := open(t, o)
	must(t, s.Put(t.Context(), "gmail", 1, handles("A", "x")))
	key := s.cached.text()
	d, _ := s.Describe()
	must(t, s.Remove("gmail"))
	must(t, s.unlink(s.path(stateFile))) // as if killed between keychain and record
	must(t, open(t, o).Put(t.Context(), "gmail", 1, handles("A", "x")))
	for item, value := range f.items {
		if value != key || len(f.items) != 1 {
			t.Error("an orphaned key was not adopted")
		}
		f.items[item] = "something of another program"
	}
	_, err := open(t, o).Load(t.Context(), "gmail", 1)
	wantKind(t, err, Damaged)
	if !strings.Contains(d.Where, "skald-connectors") {
		t.Errorf("where: %s", d.Where)
	}
}

func TestKeychainThatNeverAnswers(t *testing.T) {
	for _, interactive := range []bool{false, true} {
		t.Run(fmt.Sprint("interactive ", interactive), func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.silent = make(chan struct{})
				var notices []string
				s := Open(Options{Dir: dir + "/k", Want: BackendKeychain, Keychain: f, Interactive: interactive,
					Notice: func(n string) { notices = append(notices, n) }})
				start := time.Now()
				wantKind(t, s.Put(t.Context(), "gmail", 1, handles("A", "x")), TimedOut)
				want, said := keychainLimit, 0
				if interactive {
					want, said = keychainPatience, 1
				}
				if took := time.Since(start); took != want || len(notices) != said {
					t.Errorf("took %s, notices %q", took, notices)
				}
				start = time.Now()
				wantKind(t, s.Put(t.Context(), "gmail", 1, handles("A", "x")), TimedOut)
				if took := time.Since(start); took != 0 {
					t.Errorf("called again, for %s", took)
				}
				close(f.silent)
				synctest.Wait()
				if f.calls != 1 {
					t.Errorf("%d calls", f.calls)
				}
			})
		})
	}
}

func TestWaitForTheKeychainCanBeGivenUp(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.silent = make(chan struct{})
		s := Open(Options{Dir: dir + "/k", Keychain: f, Interactive: true})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := s.Put(ctx, "gmail", 1, handles("A", "x")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		close(f.silent)
		synctest.Wait()
	})
}

// loudChain quotes what it is given, as a tool's error output does, and panics.
type loudChain struct{ fakeChain }

func (l *loudChain) Set(service, user, value string) error {
	return fmt.Errorf("add-item -w %s: exit status 1", value)
}

func TestKeychainErrorsNeverQuoteTheKey(t *testing.T) {
	l := &loudChain{*newFake()}
	err := Open(Options{Dir: t.TempDir() + "/k", Keychain: l, Want: BackendKeychain}).Put(t.Context(), "gmail", 1, handles("A", "x"))
	wantKind(t, err, Unavailable)
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, errors.Unwrap(err)), "AGE-SECRET") {
		t.Errorf("error quotes the key: %v", err)
	}
	for _, known := range []error{keyring.ErrSetDataTooBig, keyring.ErrUnsupportedPlatform} {
		if err := classify("x", known); !errors.Is(err, known) {
			t.Errorf("the cause is lost: %v", err)
		}
	}
	_, err = (&guard{chain: nil, limit: keychainLimit}).get(t.Context(), "x") // a nil interface panics in the call
	wantKind(t, err, Unavailable)
}

func TestRaces(t *testing.T) {
	s := open(t, Options{Keychain: newFake()})
	done := make(chan error)
	const n = 6
	for i := range n {
		go func() {
			name := fmt.Sprint("a", i)
			err := s.Put(t.Context(), name, 1, handles("A", name))
			if err == nil {
				_, err = s.Load(t.Context(), name, 1)
			}
			done <- errors.Join(err, s.Remove(name), s.Forget(t.Context()))
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

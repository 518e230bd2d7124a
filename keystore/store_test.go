package keystore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"
)

// testAllBackends runs one suite over every place of the vault key.
func testAllBackends(t *testing.T, suite func(t *testing.T, o Options)) {
	for _, b := range []Backend{BackendKeychain, BackendPassphrase, BackendKeyfile} {
		t.Run(string(b), func(t *testing.T) {
			suite(t, Options{Dir: filepath.Join(t.TempDir(), "keystore"), Want: b, Keychain: newFake(),
				Passphrase: phrase("correct horse"), Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
		})
	}
}

func TestRoundTrip(t *testing.T) {
	testAllBackends(t, func(t *testing.T, o Options) {
		ctx := t.Context()
		pem := "-----BEGIN KEY-----\r\nabc\n\ndef\n-----END KEY-----\n"
		in := []Handle{
			{Name: "PEM", Value: NewSecret(pem), Secret: true, ExpiresAt: time.Date(2027, 1, 2, 3, 4, 5, 6, time.UTC)},
			{Name: "url", Value: NewSecret("https://x.example"), Secret: false},
			{Name: "oauth.refresh-1", Value: NewSecret("\xff\xfe\x01 \t"), Secret: true},
			{Name: "_big", Value: NewSecret(strings.Repeat("é", maxValue/2)), Secret: true},
		}
		must(t, open(t, o).Put(ctx, "gmail", 1, in))
		out, err := open(t, o).Load(ctx, "gmail", 1)
		must(t, err)
		if !sameHandles(in, out) {
			t.Errorf("loaded %v", out)
		}
		fi, err := os.Stat(filepath.Join(o.Dir, "gmail.1.age"))
		must(t, err)
		if fi.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", fi.Mode())
		}
	})
}

func TestPutUpdateRemoveForget(t *testing.T) {
	testAllBackends(t, func(t *testing.T, o Options) {
		ctx := t.Context()
		s := open(t, o)
		_, err := s.Load(ctx, "gmail", 1)
		wantKind(t, err, NotFound)
		must(t, s.Put(ctx, "gmail", 1, handles("A", "one")))
		must(t, s.Put(ctx, "gmail", 1, handles("A", "one")))
		wantKind(t, s.Put(ctx, "gmail", 1, handles("A", "two")), Conflict)
		must(t, s.Put(ctx, "gmail", 2, handles("A", "two")))
		must(t, s.Put(ctx, "gmail.2", 7, handles("A", "dot")))

		must(t, s.Update(ctx, "gmail", 2, func(hs []Handle) ([]Handle, error) { return append(hs, handles("B", "x")...), nil }))
		stop := errors.New("stop")
		if err := s.Update(ctx, "gmail", 2, func([]Handle) ([]Handle, error) { return nil, stop }); !errors.Is(err, stop) {
			t.Errorf("error %v", err)
		}
		hs, err := open(t, o).Load(ctx, "gmail", 2)
		must(t, err)
		if !sameHandles(hs, handles("A", "two", "B", "x")) {
			t.Errorf("after update %v", hs)
		}
		gens, err := s.Generations("gmail")
		if must(t, err); !slices.Equal(gens, []int64{1, 2}) {
			t.Errorf("generations %v", gens)
		}
		must(t, s.Forget(ctx)) // vaults are left: nothing happens
		must(t, s.Remove("gmail", 2))
		must(t, s.Remove("gmail.2"))
		d, err := s.Describe()
		must(t, err)
		if d.Vaults != 1 || d.Backend != o.Want || d.Where == "" {
			t.Errorf("description %+v", d)
		}
		must(t, s.Remove("gmail"))
		must(t, s.Forget(ctx))
		checkNothingLeft(t, s, o)
		must(t, s.Put(ctx, "gmail", 3, handles("A", "again"))) // and it can start anew
	})
}

func checkNothingLeft(t *testing.T, s *Store, o Options) {
	t.Helper()
	if n := len(o.Keychain.(*fakeChain).items); n != 0 {
		t.Errorf("%d items left in the keychain", n)
	}
	left, _ := filepath.Glob(filepath.Join(o.Dir, "*"))
	for _, f := range left {
		if !strings.HasSuffix(f, ".lock") {
			t.Errorf("left over: %s", f)
		}
	}
	d, err := s.Describe()
	if err != nil || d != (Description{}) {
		t.Errorf("description %+v, %v", d, err)
	}
}

func TestRefusedValuesWriteNothing(t *testing.T) {
	s := open(t, Options{Keychain: newFake()})
	rows := map[string][]Handle{
		"empty":      handles("A", "fine", "B", ""),
		"nul":        handles("A", "x\x00y"),
		"too long":   handles("A", strings.Repeat("x", maxValue+1)),
		"twice":      handles("A", "x", "A", "y"),
		"name space": handles("A B", "x"),
		"name digit": handles("1A", "x"),
		"no name":    handles("", "x"),
		"name path":  handles("../A", "x"),
		"too many":   make([]Handle, maxHandles+1),
	}
	for name, hs := range rows {
		t.Run(name, func(t *testing.T) { wantKind(t, s.Put(t.Context(), "gmail", 1, hs), Invalid) })
	}
	for _, name := range []string{"", "../x", "a/b", "A", ".x", "a..b", strings.Repeat("x", 65), "-x"} {
		wantKind(t, s.Put(t.Context(), name, 1, handles("A", "x")), Invalid)
	}
	wantKind(t, s.Put(t.Context(), "gmail", 0, handles("A", "x")), Invalid)
	if _, err := os.Lstat(s.o.Dir); !os.IsNotExist(err) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestErrorText(t *testing.T) {
	s := open(t, Options{Keychain: newFake()})
	must(t, s.Put(t.Context(), "gmail", 1, handles("A", "one")))
	err := s.Put(t.Context(), "gmail", 1, handles("A", "two"))
	const want = `writing vault "gmail.1": conflict: it is there with other handles`
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
}

func TestLazy(t *testing.T) {
	f := newFake()
	s := open(t, Options{Keychain: f, Passphrase: func(context.Context, PassphraseAsk) (Secret, error) {
		t.Error("asked")
		return Secret{}, errors.New("no")
	}})
	if _, err := s.Load(t.Context(), "gmail", 1); !isKind(err, NotFound) {
		t.Error(err)
	}
	_, err1 := s.Generations("gmail")
	_, err2 := s.Describe()
	if err := errors.Join(err1, err2, s.Remove("gmail"), s.Forget(t.Context())); err != nil {
		t.Error(err)
	}
	if f.calls != 0 {
		t.Errorf("%d keychain calls", f.calls)
	}
	if _, err := os.Lstat(s.o.Dir); !os.IsNotExist(err) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestBackendIsNeverSwitched(t *testing.T) {
	f := newFake()
	o := Options{Dir: t.TempDir() + "/k", Keychain: f, Passphrase: phrase("x")}
	must(t, open(t, o).Put(t.Context(), "gmail", 1, handles("A", "one")))
	o.Want = BackendPassphrase
	_, err := open(t, o).Load(t.Context(), "gmail", 1)
	wantKind(t, err, Conflict)

	o.Want = ""
	o.Consent = func(context.Context, error, []Backend) (Backend, error) {
		t.Error("asked although a backend is recorded")
		return BackendKeyfile, nil
	}
	f.getErr = errors.New("gone")
	_, err = open(t, o).Load(t.Context(), "gmail", 1)
	wantKind(t, err, Unavailable)
	wantKind(t, open(t, o).Put(t.Context(), "drive", 1, handles("A", "one")), Unavailable)

	f.getErr = keyring.ErrNotFound
	_, err = open(t, o).Load(t.Context(), "gmail", 1)
	wantKind(t, err, KeyMissing)
	wantKind(t, open(t, o).Put(t.Context(), "drive", 1, handles("A", "one")), KeyMissing)
	if len(f.items) != 1 {
		t.Errorf("%d items", len(f.items))
	}
}

func TestConsent(t *testing.T) {
	f := newFake()
	f.getErr = errors.New("no bus")
	o := Options{Dir: t.TempDir() + "/k", Keychain: f, Passphrase: phrase("x")}
	wantKind(t, open(t, o).Put(t.Context(), "gmail", 1, handles("A", "one")), NotChosen)
	for _, answer := range []Backend{"", BackendKeychain, "plain"} {
		o.Consent = func(context.Context, error, []Backend) (Backend, error) { return answer, nil }
		wantKind(t, open(t, o).Put(t.Context(), "gmail", 1, handles("A", "one")), NotChosen)
	}
	if _, err := os.Lstat(o.Dir + "/" + stateFile); !os.IsNotExist(err) {
		t.Errorf("recorded without consent: %v", err)
	}
	asked := 0
	o.Consent = func(_ context.Context, cause error, options []Backend) (Backend, error) {
		asked++
		wantKind(t, cause, Unavailable)
		return options[0], nil
	}
	must(t, open(t, o).Put(t.Context(), "gmail", 1, handles("A", "one")))
	f.getErr = nil // the keychain comes back: the choice stays
	must(t, open(t, o).Put(t.Context(), "gmail", 2, handles("A", "two")))
	d, err := open(t, o).Describe()
	if err != nil || d.Backend != BackendPassphrase || asked != 1 || len(f.items) != 0 {
		t.Errorf("%+v, %v, asked %d, %d items", d, err, asked, len(f.items))
	}
}

func TestPrepareAndNames(t *testing.T) {
	testAllBackends(t, func(t *testing.T, o Options) {
		s := open(t, o)
		must(t, s.Prepare(t.Context()))
		d, err := s.Describe()
		if err != nil || d.Backend != o.Want || d.Vaults != 0 {
			t.Errorf("%+v, %v", d, err)
		}
		must(t, s.Forget(t.Context()))
		checkNothingLeft(t, s, o)
		must(t, errors.Join(s.Put(t.Context(), "b", 1, nil), s.Put(t.Context(), "a.1", 2, nil)))
		names, err := s.Names()
		if err != nil || !slices.Equal(names, []string{"a.1", "b"}) {
			t.Errorf("names %v, %v", names, err)
		}
	})
}

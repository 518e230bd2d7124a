package catalog

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skald-connectors/fetch/trust"
	"skald-connectors/keystore"
)

var signDay = time.Date(2026, 7, 19, 12, 0, 0, 0, time.UTC)

func newTestKey(t *testing.T) SecretKey {
	t.Helper()
	k, err := NewKey(t.Context(), filepath.Join(t.TempDir(), "k"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// signedTree is a compiled marketplace.
func signedTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../connectors")); err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(context.Background(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func readIn(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func signNow(t *testing.T, dir string, o SignOptions) *Signed {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = signDay
	}
	done, err := Sign(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestSignNumbersAndChains(t *testing.T) {
	dir, k := signedTree(t), newTestKey(t)
	first := signNow(t, dir, SignOptions{Keys: []SecretKey{k}})
	one := readIn(t, dir, indexName)
	if h, err := headOf(one); err != nil || h.Seq != 1 || h.Prev != "" || first.Missing != 0 || !h.Expires.Equal(signDay.Add(lifeUsual)) {
		t.Errorf("%+v %+v %v", first, h, err)
	}
	if r, err := Compile(context.Background(), dir, Options{}); err != nil || r.Written {
		t.Errorf("compiling a signed tree changes it: %+v %v", r, err)
	}
	signNow(t, dir, SignOptions{Keys: []SecretKey{k}, Now: signDay.Add(time.Hour)})
	two := readIn(t, dir, indexName)
	h, err := headOf(two)
	if err != nil || h.Seq != 2 || h.Prev != digestOf(one) {
		t.Errorf("%+v %v, want the chain to go on from %s", h, err, digestOf(one))
	}
	// The signatures are those of both, so that a copy taken between two uploads verifies.
	keys, err := trust.Pin([]trust.Key{k.Public()}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, doc := range [][]byte{one, two} {
		m, err := trust.ReadMessage(bytes.NewReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keys.Signers(m, readIn(t, dir, signatureName)); err != nil {
			t.Errorf("index %d: %v", i+1, err)
		}
	}
	for i := range 4 { // years of renewals: the file of signatures does not grow
		signNow(t, dir, SignOptions{Keys: []SecretKey{k}, Now: signDay.Add(time.Duration(i) * time.Hour)})
	}
	if n := strings.Count(string(readIn(t, dir, signatureName)), "untrusted comment"); n != 2 {
		t.Errorf("%d blocks", n)
	}
}

// An index that a thief signed with the last number there is keeps its publisher from signing the next one only until they have
// other keys.
func TestNumberAfterTheLast(t *testing.T) {
	for _, c := range []struct{ seq, version, want int64 }{
		{0, 3, 1}, {7, 3, 8}, {7, 4, 8}, {lastNumber - 1, 3, lastNumber}, {lastNumber, 4, 1}, {lastNumber, 3, 0},
	} {
		got, err := signedBefore{keysVersion: 3, seq: c.seq}.number(c.version)
		if got != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("after %d, keys %d: %d %v, want %d", c.seq, c.version, got, err, c.want)
		}
	}
	dir, k := signedTree(t), newTestKey(t)
	signNow(t, dir, SignOptions{Keys: []SecretKey{k}})
	thiefs := bytes.Replace(readIn(t, dir, indexName), []byte(`"seq": 1,`), []byte(`"seq": 9007199254740991,`), 1)
	if _, err := Sign(context.Background(), dir, SignOptions{Keys: []SecretKey{k}, Now: signDay, Against: thiefs}); err == nil || !strings.Contains(err.Error(), "with another index key") {
		t.Errorf("got %v", err)
	}
}

// What is published decides on the next number and on versions, whatever the working copy says.
func TestSignAgainstWhatIsPublished(t *testing.T) {
	dir, k := signedTree(t), newTestKey(t)
	for range 3 {
		signNow(t, dir, SignOptions{Keys: []SecretKey{k}})
	}
	published := readIn(t, dir, indexName)
	again := signedTree(t)
	signNow(t, again, SignOptions{Keys: []SecretKey{k}, Against: published})
	if h, err := headOf(readIn(t, again, indexName)); err != nil || h.Seq != 4 || h.Prev != digestOf(published) {
		t.Errorf("%+v %v", h, err)
	}
	raise := func(from, to string) {
		for _, f := range []string{"weather/fragment.json", "weather/connector.json"} {
			src := readIn(t, again, f)
			if err := os.WriteFile(filepath.Join(again, f), bytes.Replace(src, []byte(from), []byte(to), 1), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	raise(`"version": 1`, `"version": 2`)
	o := Options{Against: published}
	if _, err := Compile(context.Background(), again, o); err != nil {
		t.Fatal(err)
	}
	// Not published yet: another change needs no third version.
	file := filepath.Join(again, "weather", "verify.py")
	if err := os.WriteFile(file, append(readIn(t, again, "weather/verify.py"), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(context.Background(), again, Options{}); err == nil {
		t.Error("against the working copy it has to be raised")
	}
	if _, err := Compile(context.Background(), again, o); err != nil {
		t.Error(err)
	}
	raise(`"version": 2`, `"version": 1`)
	if _, err := Compile(context.Background(), again, o); err == nil {
		t.Error("a changed connector of the published version compiles")
	}
}

func TestTwoPeopleSign(t *testing.T) {
	dir := signedTree(t)
	root, a, b := newTestKey(t), newTestKey(t), newTestKey(t)
	s, err := EditKeys(dir, KeysEdit{AddRoot: []trust.Key{root.Public()}, AddIndex: []trust.Key{a.Public(), b.Public()}, IndexThreshold: 2}, []SecretKey{root}, signDay)
	if err != nil || !s.Published {
		t.Fatalf("%+v %v", s, err)
	}
	if done := signNow(t, dir, SignOptions{Keys: []SecretKey{a}}); done.Missing != 1 {
		t.Errorf("%+v", done)
	}
	before := readIn(t, dir, indexName)
	if done := signNow(t, dir, SignOptions{Keys: []SecretKey{b}, Cosign: true}); done.Missing != 0 || len(done.Signers) != 2 {
		t.Errorf("%+v", done)
	}
	if !bytes.Equal(before, readIn(t, dir, indexName)) {
		t.Error("a second signature changed the index")
	}
	if _, err := Sign(context.Background(), dir, SignOptions{Keys: []SecretKey{root}, Now: signDay}); err == nil || !strings.Contains(err.Error(), "is no index key") {
		t.Errorf("a root key signed the index: %v", err)
	}
}

func TestSignRefuses(t *testing.T) {
	dir, k := signedTree(t), newTestKey(t)
	for name, o := range map[string]SignOptions{
		"too long":      {Keys: []SecretKey{k}, Life: 93 * 24 * time.Hour},
		"no key":        {},
		"not revoked":   {Keys: []SecretKey{k}, Restore: []trust.Revocation{{ID: "email", Version: 1}}},
		"no such id":    {Keys: []SecretKey{k}, Revoke: []trust.Revocation{{ID: "../x", Version: 1, Reason: "x"}}},
		"cosign naught": {Keys: []SecretKey{k}, Cosign: true},
	} {
		o.Now = signDay
		before := readIn(t, dir, indexName)
		if _, err := Sign(context.Background(), dir, o); err == nil {
			t.Errorf("%s: signed", name)
		}
		if _, err := os.Stat(filepath.Join(dir, signatureName)); err == nil || !bytes.Equal(before, readIn(t, dir, indexName)) {
			t.Errorf("%s: a refusal wrote something", name)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "email", "verify.py"), []byte("#"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Sign(context.Background(), dir, SignOptions{Keys: []SecretKey{k}, Now: signDay}); err == nil {
		t.Error("a stale tree is signed")
	}
}

// A key with a password goes to the minisign program and back. Each derivation takes a second and 1 GiB.
// A key that was to have a password is never one without.
func TestKeyWithAnEmptyPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "k.key")
	_, err := NewKey(t.Context(), file, func(context.Context, string) (keystore.Secret, error) { return keystore.Secret{}, nil })
	if _, serr := os.Stat(file); err == nil || serr == nil || err.Error() != fmt.Sprintf("making the key %q: its password is empty", file) {
		t.Errorf("made %v, error %v", serr, err)
	}
}

func TestKeysOfTheMinisignProgram(t *testing.T) {
	if raced {
		t.Skip("derives keys for minutes; the run without the race detector has it")
	}
	if testing.Short() {
		t.Skip("takes seconds and 1 GiB of memory")
	}
	program, err := exec.LookPath("minisign")
	if err != nil {
		if os.Getenv("SKALD_TEST_REQUIRE") != "" {
			t.Fatal("the program minisign is missing and SKALD_TEST_REQUIRE is set")
		}
		t.Skip("the program minisign is missing (Debian: apt install minisign)")
	}
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "k.key"), "correct horse canary"
	k, err := NewKey(t.Context(), file, func(context.Context, string) (keystore.Secret, error) { return keystore.NewSecret(secret), nil })
	if err != nil {
		t.Fatal(err)
	}
	doc := filepath.Join(dir, "doc")
	if err := os.WriteFile(doc, []byte("signed by minisign\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-S", "-s", file, "-m", doc)
	cmd.Stdin = strings.NewReader(secret + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !signedBy([]byte("signed by minisign\n"), readIn(t, dir, "doc.minisig"), k.Public()) {
		t.Error("its signature does not verify here")
	}
	wrong := func(context.Context, string) (keystore.Secret, error) { return keystore.NewSecret("canary"), nil }
	_, err = ReadKey(context.Background(), file, wrong)
	if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "the password is not the right one") {
		t.Errorf("%v", err)
	}
}

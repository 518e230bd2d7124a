package keystore

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

// passStore makes a store under a passphrase with gmail 1 and drive 1 in it.
func passStore(t *testing.T) Options {
	t.Helper()
	o := Options{Dir: filepath.Join(t.TempDir(), "keystore"), Want: BackendPassphrase, Passphrase: phrase("correct horse")}
	must(t, open(t, o).Put(t.Context(), "gmail", 1, handles("A", "one")))
	must(t, open(t, o).Put(t.Context(), "drive", 1, handles("A", "other")))
	return o
}

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, change(data), 0o600))
}

// editState changes members of keystore.json.
func editState(t *testing.T, o Options, change func(m map[string]any)) {
	t.Helper()
	edit(t, filepath.Join(o.Dir, stateFile), func(b []byte) []byte {
		var m map[string]any
		must(t, json.Unmarshal(b, &m))
		change(m)
		out, err := json.Marshal(m)
		must(t, err)
		return out
	})
}

func setWrapped(m map[string]any, change func([]byte) []byte) {
	old, _ := base64.StdEncoding.DecodeString(m["wrapped_key"].(string))
	wrapped := change(old)
	m["wrapped_key"], m["wrapped_sha256"] = base64.StdEncoding.EncodeToString(wrapped), sha256Hex(wrapped)
}

func hostile(b []byte) []byte { return bytes.Replace(b, []byte(" 4\n"), []byte(" 40\n"), 1) }

func TestDamageIsToldAndNeverMended(t *testing.T) {
	rows := map[string]struct {
		change func(t *testing.T, o *Options)
		kind   Kind
	}{
		"wrong passphrase": {func(t *testing.T, o *Options) { o.Passphrase = phrase("incorrect horse") }, WrongPassphrase},
		"empty passphrase": {func(t *testing.T, o *Options) { o.Passphrase = phrase("") }, WrongPassphrase},
		"nobody":           {func(t *testing.T, o *Options) { o.Passphrase = nil }, Locked},
		"work factor 40": {func(t *testing.T, o *Options) {
			editState(t, *o, func(m map[string]any) { setWrapped(m, hostile) })
		}, TooCostly},
		"work factor 40, digest kept": {func(t *testing.T, o *Options) {
			editState(t, *o, func(m map[string]any) {
				digest := m["wrapped_sha256"]
				setWrapped(m, hostile)
				m["wrapped_sha256"] = digest
			})
		}, Damaged},
		"wrapped key cut": {func(t *testing.T, o *Options) {
			editState(t, *o, func(m map[string]any) { setWrapped(m, func(b []byte) []byte { return b[:len(b)-1] }) })
		}, Damaged},
		"another key": {func(t *testing.T, o *Options) {
			k, _ := newKey()
			wrapped, _ := k.wrap(NewSecret("correct horse"), testWork)
			editState(t, *o, func(m map[string]any) { setWrapped(m, func([]byte) []byte { return wrapped }) })
		}, Replaced},
		"newer record":  {func(t *testing.T, o *Options) { editState(t, *o, func(m map[string]any) { m["format"] = 2 }) }, Newer},
		"format a text": {func(t *testing.T, o *Options) { editState(t, *o, func(m map[string]any) { m["format"] = "1" }) }, Damaged},
		"other backend": {func(t *testing.T, o *Options) { editState(t, *o, func(m map[string]any) { m["backend"] = "cloud" }) }, Damaged},
		"no digest": {func(t *testing.T, o *Options) {
			editState(t, *o, func(m map[string]any) { delete(m, "wrapped_sha256") })
		}, Damaged},
		"backend twice":  {func(t *testing.T, o *Options) { twice(t, *o) }, Damaged},
		"vault swapped":  {func(t *testing.T, o *Options) { copyFile(t, *o, "drive.1.age", "gmail.1.age") }, Replaced},
		"scrypt vault":   {func(t *testing.T, o *Options) { scryptVault(t, *o) }, Damaged},
		"vault empty":    {func(t *testing.T, o *Options) { must(t, os.WriteFile(o.Dir+"/gmail.1.age", nil, 0o600)) }, Damaged},
		"vault not age":  {func(t *testing.T, o *Options) { must(t, os.WriteFile(o.Dir+"/gmail.1.age", []byte("{}"), 0o600)) }, Damaged},
		"newer vault":    {func(t *testing.T, o *Options) { sealed(t, *o, `{"format":2}`) }, Newer},
		"foreign vault":  {func(t *testing.T, o *Options) { sealed(t, *o, `{"name":"gmail"}`) }, Damaged},
		"vault no JSON":  {func(t *testing.T, o *Options) { sealed(t, *o, `{"format":1,"name":"gmail"`) }, Damaged},
		"rolled back":    {func(t *testing.T, o *Options) { rollBack(t, *o) }, Replaced},
		"two key vaults": {func(t *testing.T, o *Options) { otherKey(t, *o) }, Damaged},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			o := passStore(t)
			row.change(t, &o)
			before := files(t, o.Dir)
			_, err := open(t, o).Load(t.Context(), "gmail", 1)
			wantKind(t, err, row.kind)
			err = open(t, o).Update(t.Context(), "gmail", 1, func([]Handle) ([]Handle, error) { return handles("A", "new"), nil })
			wantKind(t, err, row.kind)
			if err := open(t, o).Put(t.Context(), "gmail", 1, handles("A", "new")); err == nil {
				t.Error("put over it")
			}
			if after := files(t, o.Dir); after != before {
				t.Errorf("before\n%safter\n%s", before, after)
			}
		})
	}
}

// files is snapshot without the lock files, for every platform.
func files(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	all, err := filepath.Glob(filepath.Join(dir, "*.*"))
	must(t, err)
	for _, path := range all {
		if data, err := os.ReadFile(path); err == nil && !strings.HasSuffix(path, ".lock") {
			b.WriteString(filepath.Base(path) + " " + sha256Hex(data) + "\n")
		}
	}
	return b.String()
}

func twice(t *testing.T, o Options) {
	edit(t, filepath.Join(o.Dir, stateFile), func(b []byte) []byte {
		return bytes.Replace(b, []byte("{"), []byte(`{"backend":"keyfile",`), 1)
	})
}

func copyFile(t *testing.T, o Options, from, to string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(o.Dir, from))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(o.Dir, to), data, 0o600))
}

func rollBack(t *testing.T, o Options) {
	t.Helper()
	old, err := os.ReadFile(o.Dir + "/gmail.1.age")
	must(t, err)
	must(t, open(t, o).Update(t.Context(), "gmail", 1, func([]Handle) ([]Handle, error) { return handles("A", "two"), nil }))
	must(t, os.WriteFile(o.Dir+"/gmail.1.age", old, 0o600))
}

// sealed puts a plaintext of our choice into gmail 1.
func sealed(t *testing.T, o Options, plain string) {
	t.Helper()
	s := open(t, o)
	must(t, s.Unlock(t.Context()))
	out, err := s.cached.seal([]byte(plain))
	must(t, err)
	must(t, os.WriteFile(o.Dir+"/gmail.1.age", out, 0o600))
}

func otherKey(t *testing.T, o Options) {
	t.Helper()
	k, err := newKey()
	must(t, err)
	out, err := k.seal([]byte("{}"))
	must(t, err)
	must(t, os.WriteFile(o.Dir+"/gmail.1.age", out, 0o600))
}

func scryptVault(t *testing.T, o Options) {
	t.Helper()
	r, err := age.NewScryptRecipient("x")
	must(t, err)
	r.SetWorkFactor(testWork)
	out, err := encrypt([]byte("{}"), r)
	must(t, err)
	must(t, os.WriteFile(o.Dir+"/gmail.1.age", hostile(out), 0o600))
}

func TestEveryFlippedByteAndEveryCut(t *testing.T) {
	o := passStore(t)
	path := o.Dir + "/gmail.1.age"
	whole, err := os.ReadFile(path)
	must(t, err)
	s := open(t, o)
	for i := range whole {
		for _, bad := range [][]byte{whole[:i], flipped(whole, i)} {
			must(t, os.WriteFile(path, bad, 0o600))
			if _, err := s.Load(t.Context(), "gmail", 1); !isKind(err, Damaged) {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
	}
	must(t, os.WriteFile(path, append(bytes.Clone(whole), 'x'), 0o600))
	_, err = s.Load(t.Context(), "gmail", 1)
	wantKind(t, err, Damaged)
}

func flipped(b []byte, i int) []byte {
	out := bytes.Clone(b)
	out[i] ^= 1
	return out
}

func TestPassphraseIsAskedAgain(t *testing.T) {
	o := passStore(t)
	o.Interactive = true
	var asks []PassphraseAsk
	answers := []string{"wrong", "", "correct horse"}
	o.Passphrase = func(_ context.Context, ask PassphraseAsk) (Secret, error) {
		asks = append(asks, ask)
		return NewSecret(answers[len(asks)-1]), nil
	}
	s := open(t, o)
	for range 2 {
		if _, err := s.Load(t.Context(), "gmail", 1); err != nil {
			t.Fatal(err)
		}
	}
	if len(asks) != 3 || asks[0] != (PassphraseAsk{Attempt: 1}) || asks[2].Attempt != 3 || asks[2].Problem == "" {
		t.Errorf("asked %+v", asks)
	}
	asks, answers = nil, []string{"a", "b", "c", "d"}
	wantKind(t, open(t, o).Unlock(t.Context()), WrongPassphrase)
	if len(asks) != 3 {
		t.Errorf("asked %d times", len(asks))
	}
	stop := errors.New("aborted")
	o.Passphrase = func(context.Context, PassphraseAsk) (Secret, error) { return Secret{}, stop }
	if err := open(t, o).Unlock(t.Context()); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}

func TestNewPassphrase(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "keystore"), Want: BackendPassphrase, Passphrase: phrase("")}
	wantKind(t, open(t, o).Unlock(t.Context()), NotChosen)
	wantKind(t, open(t, o).Put(t.Context(), "gmail", 1, handles("A", "x")), Invalid)
	o.Passphrase = nil
	wantKind(t, open(t, o).Put(t.Context(), "gmail", 1, handles("A", "x")), Locked)
	if left := files(t, o.Dir); left != "" {
		t.Errorf("files:\n%s", left)
	}
	o.Passphrase = phrase("cafe\u0301") // decomposed
	must(t, open(t, o).Put(t.Context(), "gmail", 1, handles("A", "x")))
	o.Passphrase = phrase("caf\u00e9")
	must(t, open(t, o).Unlock(t.Context()))
	if Open(o).work != workFactor {
		t.Error("the work factor is not age's")
	}
}

func TestUnknownMembersAreKept(t *testing.T) {
	o := passStore(t)
	editState(t, o, func(m map[string]any) { m["later"] = map[string]any{"x": 1} })
	sealed(t, o, `{"format":1,"name":"gmail","generation":1,"counter":9,"new":[1],"handles":[`+
		`{"name":"A","value":"b25l","secret":true,"label":"é"},{"name":"B","value":"dHdv","secret":false}]}`)
	s := open(t, o)
	must(t, s.Update(t.Context(), "gmail", 1, func(hs []Handle) ([]Handle, error) {
		hs[0].Value = NewSecret("three")
		return hs[:1], nil
	}))
	raw, err := os.ReadFile(o.Dir + "/gmail.1.age")
	must(t, err)
	plain, err := s.cached.open(raw)
	must(t, err)
	const want = `{"counter":10,"format":1,"generation":1,"handles":[{"label":"é","name":"A","secret":true,"value":"dGhyZWU="}],"name":"gmail","new":[1]}`
	if string(plain) != want {
		t.Errorf("vault %s\nwant  %s", plain, want)
	}
	record, err := os.ReadFile(o.Dir + "/" + stateFile)
	if err != nil || !strings.Contains(string(record), `"later"`) || !strings.Contains(string(record), `"gmail.1": 10`) {
		t.Errorf("record %s, %v", record, err)
	}
}

func TestRecordBehindTheVaultIsFine(t *testing.T) {
	o := passStore(t)
	must(t, open(t, o).Update(t.Context(), "gmail", 1, func([]Handle) ([]Handle, error) { return handles("A", "two"), nil }))
	editState(t, o, func(m map[string]any) { m["counters"] = map[string]any{"gmail.1": 1} }) // killed before it was noted
	hs, err := open(t, o).Load(t.Context(), "gmail", 1)
	if err != nil || !sameHandles(hs, handles("A", "two")) {
		t.Errorf("%v, %v", hs, err)
	}
}

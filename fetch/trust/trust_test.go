package trust

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
)

var noon = time.Date(2026, 7, 19, 12, 0, 0, 0, time.UTC)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newKey(t *testing.T) (Key, minisign.PrivateKey) {
	t.Helper()
	pub, priv, err := minisign.GenerateKey(nil)
	check(t, err)
	k, err := ParseKey(pub.String())
	check(t, err)
	return k, priv
}

func sign(t *testing.T, key minisign.PrivateKey, data []byte) []byte {
	t.Helper()
	r := minisign.NewReader(bytes.NewReader(data))
	_, err := new(bytes.Buffer).ReadFrom(r)
	check(t, err)
	return r.Sign(key)
}

// minisignProgram gives the program of Debian's package; the test is skipped, with the reason, where it is missing.
func minisignProgram(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("minisign")
	if err != nil {
		if os.Getenv("SKALD_TEST_REQUIRE") != "" {
			t.Fatal("the program minisign is missing (Debian: apt install minisign)")
		}
		t.Skip("the program minisign is missing (Debian: apt install minisign)")
	}
	return path
}

func TestMinisignVerifiesOurs(t *testing.T) {
	program, dir := minisignProgram(t), t.TempDir()
	k, priv := newKey(t)
	doc := []byte("{\"type\": \"skald.index/v1\"}\n")
	file := filepath.Join(dir, "connectors.json")
	check(t, os.WriteFile(file, doc, 0o600))
	check(t, os.WriteFile(file+".minisig", sign(t, priv, doc), 0o600))
	out, err := exec.Command(program, "-V", "-P", k.String(), "-m", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Signature and comment signature verified") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestWeVerifyMinisigns(t *testing.T) {
	program, dir := minisignProgram(t), t.TempDir()
	pub, secret, file := filepath.Join(dir, "k.pub"), filepath.Join(dir, "k.key"), filepath.Join(dir, "f")
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Stdin = strings.NewReader("\n\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run("-G", "-W", "-p", pub, "-s", secret)
	check(t, os.WriteFile(file, []byte("signed\n"), 0o600))
	run("-S", "-s", secret, "-m", file)
	text, err := os.ReadFile(pub)
	check(t, err)
	k, err := ParseKey(string(text))
	check(t, err)
	keys, err := Pin([]Key{k}, 1)
	check(t, err)
	signature, err := os.ReadFile(file + ".minisig")
	check(t, err)
	by, err := keys.Signers(message([]byte("signed\n")), signature)
	if err != nil || len(by) != 1 || by[0].ID() != k.ID() {
		t.Errorf("%v %v", by, err)
	}
	if _, err := keys.Signers(message([]byte("signed")), signature); err == nil {
		t.Error("other bytes are accepted")
	}
	run("-S", "-l", "-s", secret, "-m", file) // the old kind
	signature, err = os.ReadFile(file + ".minisig")
	check(t, err)
	_, err = keys.Signers(message([]byte("signed\n")), signature)
	want := "the index is not trusted (signature): block 1 of the file of signatures is of the old kind, over the bare file"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func pinnedState(t *testing.T) (*State, Key) {
	k, _ := newKey(t)
	keys, err := Pin([]Key{k}, 1)
	check(t, err)
	return Begin(nil, "https://x.example", keys, nil), k
}

func head(seq int64) *Head {
	return &Head{Seq: seq, Issued: noon, Expires: noon.Add(24 * time.Hour), Revoked: []Revocation{{ID: "a", Version: 3, Reason: "steals"}}}
}

var someDigest = strings.Repeat("ab", 32)

func TestStateKeepsWhatItDoesNotKnow(t *testing.T) {
	dir := t.TempDir()
	s, k := pinnedState(t)
	check(t, s.Admit(head(7), someDigest, 10, []Key{k}, noon))
	check(t, s.Save(dir, "x"))
	path := filepath.Join(dir, "x.json")
	data, err := os.ReadFile(path)
	check(t, err)
	check(t, os.WriteFile(path, bytes.Replace(data, []byte("{"), []byte(`{"later": {"a": [1]},`), 1), 0o600))
	s, err = Load(dir, "x", "https://x.example")
	check(t, err)
	if s.Floor.Seq != 7 || s.Floor.Signers[0] != k.ID() || !s.Floor.Revoked[0].Covers("a", 3, "") || s.Floor.Revoked[0].Covers("a", 4, "") {
		t.Errorf("%+v", s.Floor)
	}
	check(t, s.Save(dir, "x"))
	if data, err = os.ReadFile(path); err != nil || !bytes.Contains(data, []byte(`"later"`)) {
		t.Errorf("%s %v", data, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// What cannot be read is never taken for "never seen".
func TestDamagedStateIsNotAFreshOne(t *testing.T) {
	dir := t.TempDir()
	s, _ := pinnedState(t)
	check(t, s.Save(dir, "x"))
	path := filepath.Join(dir, "x.json")
	good, err := os.ReadFile(path)
	check(t, err)
	for name, bad := range map[string]string{
		"empty": "", "cut": string(good[:len(good)/2]), "null": "null", "no keys": `{"format": 1, "location": "x"}`,
		"another place's": strings.Replace(string(good), "https://x.example", "https://x.example/y", 1), "newer": strings.Replace(string(good), `"format": 1`, `"format": 2`, 1), "other key": strings.Replace(string(good), "RW", "AA", 1),
	} {
		check(t, os.WriteFile(path, []byte(bad), 0o600))
		var damaged *DamagedError
		if s, err := Load(dir, "x", "https://x.example"); s != nil || !errors.As(err, &damaged) {
			t.Errorf("%s: %v %v", name, s, err)
		}
	}
	if s, err := Load(dir, "y", "https://x.example"); s != nil || err != nil {
		t.Errorf("%v %v", s, err)
	}
}

func TestRefusalsNameBothSides(t *testing.T) {
	s, k := pinnedState(t)
	check(t, s.Admit(head(7), someDigest, 10, []Key{k}, noon))
	for _, row := range []struct {
		h      *Head
		digest string
		clock  time.Time
		want   string
	}{
		{head(6), someDigest, noon, "the index of o is not trusted (rollback): it is number 6 of 2026-07-19 12:00 UTC (keys version 0), and number 7 of 2026-07-19 12:00 UTC (keys version 0) was seen before"},
		{head(7), strings.Repeat("cd", 32), noon, "the index of o is not trusted (fork): there are two different ones with number 7: sha256 cdcdcdcdcdcd of 2026-07-19 12:00 UTC, and abababababab of 2026-07-19 12:00 UTC seen before"},
		{head(8), someDigest, noon.Add(25 * time.Hour), "the index of o is not trusted (freeze): number 8 of 2026-07-19 12:00 UTC was good until 2026-07-20 12:00 UTC, and it is 2026-07-20 13:00 UTC"},
	} {
		err := s.Admit(row.h, row.digest, 10, []Key{k}, row.clock)
		var refused *Error
		if !errors.As(err, &refused) {
			t.Fatalf("%v", err)
		}
		if refused.Origin = "o"; err.Error() != row.want {
			t.Errorf("got  %s\nwant %s", err, row.want)
		}
	}
	if s.Floor.Seq != 7 {
		t.Errorf("a refusal changed the floor: %+v", s.Floor)
	}
}

func TestKeysRoundTrip(t *testing.T) {
	a, _ := newKey(t)
	b, _ := newKey(t)
	doc, err := MarshalKeys(&Keys{Version: 3, Expires: noon, Root: []Key{a}, Index: []Key{b}, RootThreshold: 1, IndexThreshold: 1})
	check(t, err)
	k, err := ParseKeys(doc)
	check(t, err)
	if k.Version != 3 || !k.Expires.Equal(noon) || k.Root[0].String() != a.String() || k.Index[0].Tail() != b.Tail() || !bytes.Equal(k.Document(), doc) {
		t.Errorf("%+v", k)
	}
	if _, err := MarshalKeys(&Keys{Version: 1, Expires: noon, Root: []Key{a}, Index: []Key{a}, RootThreshold: 1, IndexThreshold: 1}); err == nil {
		t.Error("a key in two roles was written")
	}
}

func TestHeadIsBounded(t *testing.T) {
	src := append([]byte(`{"type":"skald.index/v1","connectors":[]`), bytes.Repeat([]byte(" "), 4<<20)...)
	src = append(src, '}')
	var refused *Error
	if _, err := ParseHead(src); !errors.As(err, &refused) || refused.Kind != Document {
		t.Errorf("%v", err)
	}
	if Announces(src) || !Announces([]byte(`{"type":"skald.index/v1"}`)) {
		t.Error("an index of that size is looked at, or a small one is not")
	}
}

func FuzzParse(f *testing.F) {
	pub, priv, err := minisign.GenerateKey(nil)
	if err != nil {
		f.Fatal(err)
	}
	doc := []byte(`{"type":"skald.keys/v1","version":1,"expires":"2027-12-01T00:00:00Z","root":["` + pub.String() + `"],"root_threshold":1,"index":["` + pub.String() + `"],"index_threshold":1}`)
	f.Add(doc, minisign.Sign(priv, doc))
	f.Add([]byte(`{"type":"skald.index/v1","keys_version":1,"seq":1,"issued":"2027-12-01T00:00:00Z","expires":"2027-12-02T00:00:00Z","prev":"","revoked":[{"id":"a","version":1}],"connectors":[]}`), []byte("untrusted comment: x\nRUQ=\ntrusted comment: y\nAA=="))
	k := Key{pub}
	keys, err := Pin([]Key{k}, 1)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, doc, signature []byte) {
		ParseKeys(doc)
		ParseHead(doc)
		parseState(doc)
		ParseKey(string(doc))
		if by, err := keys.Signers(message(doc), signature); (err == nil) != (len(by) == 1) {
			t.Errorf("%v %v", by, err)
		}
		if next, err := keys.Next(doc, signature); err == nil && next == nil {
			t.Error("no keys and no reason")
		}
	})
}

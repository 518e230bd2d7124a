package record

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func fullRecord() *Record {
	return &Record{
		Name: "work", Connector: "mail", Version: 3, VersionString: "1.2.0", Digest: "0123456789abcdef",
		Index: IndexRef{URL: "https://example.org", Digest: "ab"}, Files: []FilePin{{Path: "a", SHA256: "cd", Size: 5}},
		Type: "mcp_local", Scope: "user", Auth: AuthRef{Type: "oauth2", Scopes: []string{"s"}, Deliver: &DeliverRef{As: "env", Format: "access_token", Env: "T"}},
		AuthState: Ready, Vault: 2, Env: map[string]string{"H": "<&>"}, Secrets: []SecretRef{{Name: "PW", Store: "keychain"}},
		MCPConfig: ServerRef{Command: "python3", Args: []string{"s.py"}, Env: [][2]string{{"A", "{SECRET:PW}"}}},
		Verify:    VerifyRef{Ran: true, OK: true, When: time.Unix(1, 0).UTC()}, Tools: []ToolRef{{Name: "t", Digest: "ef", Granted: true}},
		Probe: &Probe{ProtocolVersion: "2025-11-25", Capabilities: json.RawMessage(`{"tools": {}}`)}, Mounts: []MountRef{},
		InstalledAt: time.Unix(1, 0).UTC(), UpdatedAt: time.Unix(2, 0).UTC(),
	}
}

// TestRecordRoundTrip: what is written is what is read, members of a newer
// minor version included.
func TestRecordRoundTrip(t *testing.T) {
	s := Open(t.TempDir())
	rec := fullRecord()
	rec.extra = map[string]json.RawMessage{"future": json.RawMessage(`{"x": [1, 2]}`), "also": json.RawMessage(`"y"`)}
	if err := s.Write(rec); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(s.Path("work"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Read("work")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(got); err != nil {
		t.Fatal(err)
	}
	second, _ := os.ReadFile(s.Path("work"))
	if string(first) != string(second) {
		t.Errorf("rewritten differently:\n%s\n%s", first, second)
	}
	for _, want := range []string{`"schema": 1`, `"future": {`, `"also": "y"`, `"sha256": "cd"`, `"auth_state": "ready"`} {
		if !strings.Contains(string(first), want) {
			t.Errorf("%s is missing in\n%s", want, first)
		}
	}
}

func TestRecordRefusals(t *testing.T) {
	home := t.TempDir()
	s := Open(home)
	if err := s.Write(fullRecord()); err != nil {
		t.Fatal(err)
	}
	good, _ := os.ReadFile(s.Path("work"))
	with := func(old, new string) string { return strings.Replace(string(good), old, new, 1) }
	var damaged *DamagedError
	var newer *NewerError
	var gone *NotInstalledError
	for name, tt := range map[string]struct {
		text string
		as   any
		want string
	}{
		"empty":        {"", &damaged, `reading record "work": `},
		"half":         {string(good[:len(good)/2]), &damaged, `reading record "work": `},
		"array":        {"[]", &damaged, `reading record "work": it is not a JSON object`},
		"no schema":    {`{"name":"work"}`, &damaged, `reading record "work": it has no schema number`},
		"newer":        {`{"schema":2,"name":7}`, &newer, `reading record "work": it has schema 2 and this program knows 1: it was written by a newer version`},
		"twice":        {with(`"name"`, `"name": "x", "name"`), &damaged, `reading record "work": the key "name" occurs twice`},
		"case twin":    {with(`"name"`, `"Name": "x", "name"`), &damaged, `reading record "work": the key "name" occurs twice`},
		"another name": {with(`"name": "work"`, `"name": "play"`), &damaged, `reading record "work": it names the activation "play"`},
		"state":        {with(`"ready"`, `"superb"`), &damaged, `reading record "work": auth_state "superb" is not known`},
		"connector":    {with(`"mail"`, `"../../x"`), &damaged, `reading record "work": connector "../../x" is not a valid id`},
	} {
		if err := os.WriteFile(s.Path("work"), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Read("work")
		if err == nil || !errors.As(err, tt.as) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
		list, err := s.List()
		if err != nil || len(list) != 1 || list[0].Err == nil {
			t.Errorf("%s: the list hides it: %+v (%v)", name, list, err)
		}
	}
	for _, name := range []string{"nope", "../activations/work", ""} {
		if _, err := s.Read(name); !errors.As(err, &gone) {
			t.Errorf("%q: %v", name, err)
		}
	}
	_ = os.WriteFile(filepath.Join(home, "activations", ".tmp-1.json"), nil, 0o600)
	if list, err := s.List(); err != nil || len(list) != 1 {
		t.Errorf("a leftover is listed: %+v (%v)", list, err)
	}
}

func FuzzParseRecord(f *testing.F) {
	seed, err := json.Marshal(fullRecord())
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(strings.Replace(string(seed), `"schema":0`, `"schema":1`, 1)))
	f.Add([]byte(`{"schema":1,"name":"work","connector":"c","auth_state":"ready","x":{"y":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := parse("work", data)
		if err != nil {
			return
		}
		rec.Schema = recordSchema
		out, err := json.Marshal(rec)
		if err != nil {
			t.Fatalf("a record that was read cannot be written: %v", err)
		}
		if _, err := parse("work", out); err != nil {
			t.Fatalf("a record that was written cannot be read: %v\n%s", err, out)
		}
	})
}

// TestRecordKeepsItsPrior: what the version kept for a rollback needs is named, so that a
// sweep leaves it alone, and it comes back as it was.
func TestRecordKeepsItsPrior(t *testing.T) {
	prior := fullRecord()
	prior.Deps = []DepsRef{{Ecosystem: "npm", Hash: "three"}}
	rec := fullRecord()
	rec.Version, rec.Digest, rec.Vault = 4, "fedcba9876543210", 3
	rec.Deps = []DepsRef{{Ecosystem: "npm", Hash: "one"}, {Ecosystem: "pip", Hash: "two"}}
	rec.Grant.Deny, rec.Pinned = []string{"t"}, true
	rec.extra = map[string]json.RawMessage{"future": json.RawMessage(`1`)}
	if err := rec.KeepPrior(prior); err != nil {
		t.Fatal(err)
	}
	s := Open(t.TempDir())
	if err := s.Write(rec); err != nil {
		t.Fatal(err)
	}
	got, err := s.Read("work")
	if err != nil {
		t.Fatal(err)
	}
	if trees := got.Trees(); !slices.Equal(trees, []string{"one", "two", "three"}) {
		t.Errorf("trees %v", trees)
	}
	if gens := got.Generations(); !slices.Equal(gens, []int64{3, 2}) {
		t.Errorf("vaults %v", gens)
	}
	if refs := got.Refs(); len(refs) != 2 || refs[0].Version != 4 || refs[1].Version != 3 {
		t.Errorf("versions %v", refs)
	}
	back, err := got.Prior()
	if err != nil || back == nil {
		t.Fatal(back, err)
	}
	r := got.Restored(back)
	if r.Version != 3 || r.PassOver != 4 || !r.Pinned || r.Previous != nil || r.Tools[0].Granted || string(r.extra["future"]) != "1" {
		t.Errorf("restored %+v", r)
	}
	for name, text := range map[string]string{"another": `{"name":"x"}`, "no object": `7`, "no connector": `{"name":"work","auth_state":"ready"}`} {
		got.Previous = json.RawMessage(text)
		_ = s.Write(got)
		var damaged *DamagedError
		if _, err := s.Read("work"); !errors.As(err, &damaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

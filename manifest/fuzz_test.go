package manifest

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var fuzzIndexes = []string{
	`{"version":1,"connectors":[` + goodEntry("a", "") + `,` + goodEntry("b", `,"auth":{"type":"oauth2","scopes":["s"],"deliver":{"env":"X"}},"tools":["t"]`) + `]}`,
	`{"connectors":[],"connectors":[{}]}`, `{"connectors":[{"id":"a","ID":"b"},5,null,{x}],"version":9}`, "\xef\xbb\xbf{\n \"connectors\" : [ {\"files\":[{\"path\":\"../x\"}]} ]\n}",
	`{"connectors":[{"id":"a","version":"2","scope":"per_user","small_icon":"x","requires":"NODE","tags":[1]}]}`,
}

// FuzzParseIndex: never a panic, the signed reading accepts no more than the
// unsigned one, and an entry that is not broken holds only what the rules allow.
func FuzzParseIndex(f *testing.F) {
	for _, s := range fuzzIndexes {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		ix, diags, err := ParseIndex(src, false)
		signed, _, signedErr := ParseIndex(src, true)
		if err != nil {
			var refused *RefusedError
			if !errors.As(err, &refused) || signedErr == nil {
				t.Fatalf("%v, signed %v", err, signedErr)
			}
			return
		}
		if signedErr == nil && !reflect.DeepEqual(ix, signed) {
			t.Fatal("the signed reading differs")
		}
		for _, d := range diags {
			if d.File == "" || d.Rule == "" || d.Message == "" || d.Line < 1 && d.Rule != "too-many-diagnostics" {
				t.Fatalf("an incomplete diagnostic: %+v", d)
			}
		}
		for _, e := range ix.Entries {
			if e.Broken == "" && (ValidID(e.ID) != nil || ValidPaths(e.Files) != nil || validFolder(e.Folder) != nil || e.Version < 0 || slices.ContainsFunc(e.Files, func(f File) bool { return len(f.SHA256) != 64 })) {
				t.Fatalf("accepted %+v", e)
			}
		}
	})
}

// FuzzParseManifest: never a panic, and what is not broken holds no name that
// steers, no URL that the rules refuse, and no secret under another kind.
func FuzzParseManifest(f *testing.F) {
	for _, s := range []string{
		doc(), doc("env", `{"A":"x"}`, "launch_command", `"node 'a b'"`, "mcp_config", `{}`), remote(`{"url":"https://e.org/{ENV:A}?k={key}"}`, "auth", `{"type":"api_key","param":"k"}`),
		doc("verify", `{"command":"sh '{ENV:A}'","timeout_secs":"9"}`, "env", `[{"name":"A","secret":true,"type":"choice","choices":["a"],"min":1,"pattern":"("}]`),
		doc("permissions", `{"network":{"hosts":["{ENV:A}:1"]},"filesystem":{"read":[""]}}`, "docs", `[{"lang":"en"}]`, "engines", `{"node":"~=1"}`), `{"a":{"a":1,"A":2}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		m, _, err := ParseManifest(src, "connector.json")
		if err != nil {
			return
		}
		m.Doc("it")
		m.KeyPlace()
		m.Concerns(nil)
		RuntimeRange(m, "python3")
		if _, err := Agree(Entry{ID: m.ID, Type: m.Type, Scope: m.Scope, Version: m.Version}, m); err != nil && m.ID != "" {
			t.Fatalf("a manifest disagrees with itself: %v", err)
		}
		if m.Broken != "" {
			return
		}
		for _, field := range m.Fields() {
			if ValidEnvName(field.Name) != nil || field.Secret && field.Default != "" {
				t.Fatalf("accepted the field %+v", field)
			}
		}
		if m.Type == typeRemote && ValidURL(m.Server.URL) != nil {
			t.Fatalf("accepted the URL %q", m.Server.URL)
		}
		for _, arg := range m.Server.Args {
			for _, ref := range Tokens(arg) {
				if f, ok := m.fieldOf(ref); ok && f.Secret && ref.Kind == "ENV" {
					t.Fatalf("a secret passes as %q", arg)
				}
			}
		}
	})
}

// FuzzExpand: one pass, literal. Text between tokens stays, and values are
// never scanned again.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"{ENV:A}", "x{SECRET:B}y{ENV:A}", "{ENV:{ENV:A}}", "{key}{env:A}{ENV:", "https://e.org/{ENV:A}?q={SECRET:B}#f", "{ENV:A}://"} {
		f.Add(s, "{ENV:A}")
		f.Add(s, "a/b?c#d%\x00é")
	}
	f.Fuzz(func(t *testing.T, s, value string) {
		look := func(kind, name string) (string, bool) { return value, true }
		var want strings.Builder
		done := 0
		for _, ref := range Tokens(s) {
			if ref.Start < done || ref.End > len(s) {
				t.Fatalf("tokens of %q overlap", s)
			}
			if ref.live() {
				want.WriteString(s[done:ref.Start] + value)
				done = ref.End
			}
		}
		want.WriteString(s[done:])
		if out, lost := Expand(s, look, Plain); out != want.String() || lost != nil {
			t.Fatalf("Expand(%q) = %q %q", s, out, lost)
		}
		out, _, err := ExpandURL(s, look)
		if err != nil {
			return
		}
		before, _ := splitURL(s)
		if after, _ := splitURL(out); before != after {
			t.Fatalf("the value %q moved the host of %q to %q", value, s, after)
		}
	})
}

// FuzzShellCommand: without the expansions the script is the command without
// its tokens, so nothing else was changed; and no value is ever asked for.
func FuzzShellCommand(f *testing.F) {
	for _, s := range []string{"x {ENV:A}", `x "{ENV:A}" '{SECRET:B}'`, "cat <<E\n{ENV:A}\nE", `x "$(y '{ENV:A}')"`, "`{ENV:A}`", `\{ENV:A}`, `$(( {ENV:A} ))`, `${A} {ENV:A}`, "# {ENV:A}\nx {ENV:A}", `sh -c {ENV:A}`, `x {ENV:A} 'open`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, cmd string) {
		script, refs, err := shellCommand(cmd, "linux")
		if err != nil {
			var place *TokenPlaceError
			if !errors.As(err, &place) || script != "" {
				t.Fatalf("%q: %q %v", cmd, script, err)
			}
			return
		}
		rest := script
		at := 0
		for _, ref := range refs {
			text := cmd[at:ref.Start]
			if !strings.HasPrefix(rest, text) {
				t.Fatalf("%q became %q", cmd, script)
			}
			rest = rest[len(text):]
			found := false
			for _, form := range []string{`"$` + ref.Var + `"`, "${" + ref.Var + "}", `'"$` + ref.Var + `"'`} {
				if strings.HasPrefix(rest, form) {
					rest, found = rest[len(form):], true
					break
				}
			}
			if !found {
				t.Fatalf("%q became %q", cmd, script)
			}
			at = ref.End
		}
		if rest != cmd[at:] {
			t.Fatalf("%q became %q", cmd, script)
		}
	})
}

// FuzzSplitCommand: words that are quoted again split into themselves.
func FuzzSplitCommand(f *testing.F) {
	for _, s := range []string{`a 'b c' "d\"e"`, `a\ b`, "a\\\nb", `x "" ''`, `a | b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words, err := SplitCommand(s)
		if err != nil {
			return
		}
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		again, err := SplitCommand(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(words, again) {
			t.Fatalf("%q: %q, then %q %v", s, words, again, err)
		}
	})
}

// FuzzCheck: a clean value stays as it is when it is checked again.
func FuzzCheck(f *testing.F) {
	for i, s := range []string{"a\n", " x", "12", "true", "https://e.org", "a@e.org", "a\x00", "\u200b"} {
		f.Add(uint8(i), s)
	}
	f.Fuzz(func(t *testing.T, typ uint8, value string) {
		field := Field{Type: fieldTypes[int(typ)%len(fieldTypes)], Choices: []string{"a", "b"}, Required: typ > 128}
		if field.Type != "choice" {
			field.Choices = nil
		}
		clean, _, err := field.Check(value)
		if err != nil {
			return
		}
		again, _, err := field.Check(clean)
		if err != nil || again != clean {
			t.Fatalf("%s %q: %q, then %q %v", field.Type, value, clean, again, err)
		}
	})
}

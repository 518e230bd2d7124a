package manifest

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func ptr(f float64) *float64 { return &f }

// TestFields has the rows of format.md, section 4, on how fields are declared.
func TestFields(t *testing.T) {
	env := func(m *Manifest) any { return m.Env }
	plain := func(name string) Field { return Field{Name: name, Label: name, Type: "string"} }
	one := func(f string) string { return doc("env", "["+f+"]") }
	check(t, []row{
		{doc("env", `null`), env, []Field(nil), nil, ""},
		{one(`{"name":"A","label":"L","description":"D","required":true,"secret":true,"default":"","example":"E"}`), env,
			[]Field{{Name: "A", Label: "L", Description: "D", Required: true, Secret: true, Example: "E", Type: "string"}}, nil, ""},
		{one(`{"name":"A","label":null}`), env, []Field{plain("A")}, nil, ""},
		{one(`"A","B"`), env, []Field{plain("A"), plain("B")}, []string{"env-legacy-name", "env-legacy-name"}, ""},
		{doc("env", `{"A":{"label":"L"},"B":"x","C":null,"D":5}`), env,
			[]Field{{Name: "A", Label: "L", Type: "string"}, {Name: "B", Label: "B", Type: "string", Default: "x"}, plain("C"), {Name: "D", Label: "D", Type: "string", Default: "5"}},
			[]string{"env-legacy-map", "default-not-a-string"}, ""},
		{one(`{"name":"A","default":993}`), env, []Field{{Name: "A", Label: "A", Type: "string", Default: "993"}}, []string{"default-not-a-string"}, ""},
		{one(`{"name":"A","default":{"a": [1]}}`), env, []Field{{Name: "A", Label: "A", Type: "string", Default: `{"a": [1]}`}}, []string{"default-not-a-string"}, ""},
		{one(`{"name":"A","secret":true,"default":"hunter2"}`), env, []Field{{Name: "A", Label: "A", Type: "string", Secret: true}}, []string{"default-of-secret"}, ""},
		{one(`{"name":"A","secret":"yes"}`), env, []Field{{Name: "A", Label: "A", Type: "string", Secret: true}}, []string{"not-a-boolean"}, ""},
		{one(`{"name":"A","secret":"false","required":"true"}`), env, []Field{{Name: "A", Label: "A", Type: "string", Required: true}}, []string{"not-a-boolean", "not-a-boolean"}, ""},
		{one(`{"name":"API_KEY"}`), func(m *Manifest) any { return m.Env[0].Secret }, false, nil, ""},
		{one(`{"name":"A","type":"number","min":1,"max":65535,"default":"x"}`), env,
			[]Field{{Name: "A", Label: "A", Type: "number", Min: ptr(1), Max: ptr(65535), Default: "x"}}, []string{"default-invalid"}, ""},
		{one(`{"name":"A","min":"1"}`), env, []Field{plain("A")}, []string{"not-a-number"}, ""},
		{one(`{"name":"A","type":"colour"}`), env, []Field{plain("A")}, []string{"field-type-unknown"}, ""},
		{one(`{"name":"A","choices":["x","y"]}`), env, []Field{{Name: "A", Label: "A", Type: "choice", Choices: []string{"x", "y"}}}, nil, ""},
		{one(`{"name":"A","type":"choice"}`), env, []Field{plain("A")}, []string{"field-choices-missing"}, ""},
		{one(`{"name":"A","pattern":"^a+$","help_url":"https://e.org"}`), env, []Field{{Name: "A", Label: "A", Type: "string", Pattern: "^a+$", HelpURL: "https://e.org"}}, nil, ""},
		{one(`{"name":"A","pattern":"(?=x)"}`), env, []Field{plain("A")}, []string{"field-pattern"}, ""},
		{one(`{"name":"LD_PRELOAD"}`), broken, nil, []string{"env-name"}, `env[0]: name "LD_PRELOAD" steers the loader, the interpreter or the network`},
		{one(`{"label":"x"}`), broken, nil, []string{"env-name"}, "env[0]: an empty name"},
		{one(`"A=B"`), broken, nil, []string{"env-legacy-name", "env-name"}, `env[0]: name "A=B" holds something other than letters, digits and underscore`},
		{one(`"A","a"`), broken, nil, []string{"env-legacy-name", "env-legacy-name", "env-name-twice"}, `env[1]: the name "a" is declared twice`},
		{one(`5`), broken, nil, []string{"env-field"}, "env[0]: found a number, expected an object with name, label and description"},
		{doc("env", `"A"`), broken, nil, []string{"env-not-an-array"}, "env: found a string, expected an array of objects"},
	})
}

func TestKeyField(t *testing.T) {
	made := func(name string) Field {
		return Field{Name: name, Label: "API key", Required: true, Secret: true, Type: "string"}
	}
	for _, c := range []struct {
		auth, env string
		want      Field
		ok        bool
		all       int
	}{
		{`{"type":"api_key","param":"tavilyApiKey"}`, `[]`, made("tavilyApiKey"), true, 1},
		{`{"type":"api_key","delivery":"header","param":"X-API-Key"}`, `[]`, made("X_API_Key"), true, 1},
		{`{"type":"api_key","delivery":"header","param":"Authorization"}`, `[{"name":"REGION"}]`, made("Authorization"), true, 2},
		{`{"type":"api_key"}`, `[]`, made("API_KEY"), true, 1},
		{`{"type":"api_key","param":"---"}`, `[]`, made("API_KEY"), true, 1},
		{`{"type":"api_key","param":"9key"}`, `[]`, made("_9key"), true, 1},
		{`{"type":"api_key","delivery":"query","param":"path"}`, `[]`, made("KEY_path"), true, 1},
		{`{"type":"api_key","param":"other"}`, `[{"name":"K","secret":true}]`, Field{Name: "K", Label: "K", Secret: true, Type: "string"}, true, 1},
		{`{"type":"api_key","param":"K"}`, `[{"name":"K","default":"x"}]`, Field{Name: "K", Label: "K", Secret: true, Type: "string"}, true, 1},
		{`{"type":"api_key","param":"B"}`, `[{"name":"A","secret":true},{"name":"B","secret":true}]`, Field{Name: "B", Label: "B", Secret: true, Type: "string"}, true, 2},
		{`{"type":"api_key","param":"C"}`, `[{"name":"A","secret":true},{"name":"B","secret":true}]`, Field{}, false, 2},
		{`{"type":"password"}`, `[{"name":"A","secret":true}]`, Field{}, false, 1},
		{`{"type":"oauth2","provider":"p"}`, `[{"name":"A","secret":true}]`, Field{}, false, 1},
	} {
		m, _ := parse(t, doc("auth", c.auth, "env", c.env))
		got, ok := m.KeyField()
		if !reflect.DeepEqual(got, c.want) || ok != c.ok || len(m.Fields()) != c.all {
			t.Errorf("%s %s: %+v %t, %d fields; want %+v %t, %d", c.auth, c.env, got, ok, len(m.Fields()), c.want, c.ok, c.all)
		}
		if ok && !slices.ContainsFunc(m.Fields(), func(f Field) bool { return reflect.DeepEqual(f, got) }) {
			t.Errorf("%s %s: the key is not among the fields", c.auth, c.env)
		}
	}
}

func TestKeyPlace(t *testing.T) {
	key := func(auth string) []string { return []string{"auth", auth} }
	const url, tokenURL = `{"url":"https://e.org/"}`, `{"url":"https://e.org/?k={SECRET:p}"}`
	for _, c := range []struct{ src, place, name string }{
		{remote(tokenURL, key(`{"type":"api_key","delivery":"query","param":"p"}`)...), "token", "p"},
		{remote(`{"url":"https://e.org/?k={key}"}`, key(`{"type":"api_key","delivery":"query","param":"p"}`)...), "token", "p"},
		{remote(url, key(`{"type":"api_key","delivery":"query","param":"p"}`)...), "query", "p"},
		{remote(url, key(`{"type":"api_key","delivery":"header","param":"X-API-Key"}`)...), "header", "X-API-Key"},
		{remote(`{"url":"https://e.org/","headers":{"X":"{SECRET:X-API-Key}"}}`, key(`{"type":"api_key","param":"X-API-Key"}`)...), "token", "X_API_Key"},
		{remote(url, key(`{"type":"api_key","delivery":"header","param":"authorization"}`)...), "bearer", "authorization"},
		{remote(url, key(`{"type":"api_key"}`)...), "bearer", "Authorization"},
		{remote(tokenURL, key(`{"type":"api_key","param":"p"}`)...), "token", "p"},
		{doc(key(`{"type":"api_key","delivery":"env","param":"GOOGLE_MAPS_API_KEY"}`)...), "env", "GOOGLE_MAPS_API_KEY"},
		{doc(key(`{"type":"api_key"}`)...), "env", "API_KEY"},
		{doc(), "", ""},
	} {
		m, _ := parse(t, c.src)
		if place, name := m.KeyPlace(); place != c.place || name != c.name {
			t.Errorf("%s: %q %q, want %q %q", c.src, place, name, c.place, c.name)
		}
	}
}

// TestCheck has the rows of format.md, section 4, on values, and H27.
func TestCheck(t *testing.T) {
	str, multi := Field{Type: "string"}, Field{Type: "multiline"}
	required, secret := Field{Type: "string", Required: true}, Field{Type: "string", Secret: true}
	number := Field{Type: "number", Min: ptr(1), Max: ptr(65535)}
	length := Field{Type: "string", Min: ptr(2), Max: ptr(3)}
	choice := Field{Type: "choice", Choices: []string{"eu", "us"}}
	pem := "-----BEGIN KEY-----\nabc\n-----END KEY-----\n"
	for _, c := range []struct {
		f                     Field
		in, clean, notes, err string
	}{
		{str, "value", "value", "", ""},
		{str, "", "", "", ""},
		{str, "  ", "", "", ""},
		{required, "", "", "", "a value is required"},
		{required, " \t\n", "", "", "a value is required"},
		{str, "v\n", "v", "", ""},
		{str, "v\r\n", "v", "", ""},
		{str, "v\r", "v", "", ""},
		{str, "v\n\n", "", "", "a line end inside; one line is expected"},
		{str, "a\nb", "", "", "a line end inside; one line is expected"},
		{str, "a\u2028b", "", "", "a line end inside; one line is expected"},
		{str, "a\x00b", "", "", "a NUL character"},
		{str, "a\xffb", "", "", "not valid UTF-8"},
		{str, strings.Repeat("a", 65536), strings.Repeat("a", 65536), "", ""},
		{str, strings.Repeat("a", 65537), "", "", "65537 bytes; at most 65536"},
		{str, strings.Repeat("a", 131072), "", "", "131072 bytes; at most 65536"},
		{str, " v", " v", "white space at the start", ""},
		{str, "v ", "v ", "white space at the end", ""},
		{str, "v\u00a0", "v\u00a0", "white space at the end; an invisible character (U+00A0) at position 2", ""},
		{str, "a\u200bb", "a\u200bb", "an invisible character (U+200B) at position 2", ""},
		{str, "a\x1b[0m", "a\x1b[0m", "an invisible character (U+001B) at position 2", ""},
		{str, "$HOME %PATH% `id` {ENV:X} $(id)", "$HOME %PATH% `id` {ENV:X} $(id)", "", ""},
		{str, "two words", "two words", "", ""},
		{secret, "short", "short", "fewer than 8 characters, too short to be struck out of what the connector prints", ""},
		{secret, "long enough", "long enough", "", ""},
		{multi, pem, pem, "", ""},
		{multi, "a\r\n\tb\r\n", "a\r\n\tb\r\n", "", ""},
		{multi, "\n\n", "\n\n", "", ""},
		{number, "993", "993", "", ""},
		{number, "0", "", "", "less than 1"},
		{number, "65536", "", "", "more than 65535"},
		{number, "1e3", "1e3", "", ""},
		{number, "0x10", "", "", "not a number"},
		{number, "NaN", "", "", "not a number"},
		{number, "1e999", "", "", "a number out of range"},
		{number, "12 ", "", "", "not a number"},
		{Field{Type: "boolean"}, "Yes", "true", "", ""},
		{Field{Type: "boolean"}, "0", "false", "", ""},
		{Field{Type: "boolean"}, "maybe", "", "", "not true or false"},
		{Field{Type: "url"}, "https://e.org/a?b", "https://e.org/a?b", "", ""},
		{Field{Type: "url"}, "e.org", "", "", "not a URL such as https://example.org"},
		{Field{Type: "url"}, "javascript:alert(1)", "", "", "not a URL such as https://example.org"},
		{Field{Type: "email"}, "a@e.org", "a@e.org", "", ""},
		{Field{Type: "email"}, "A <a@e.org>", "", "", "not an e-mail address"},
		{Field{Type: "path"}, "/tmp/x", "/tmp/x", "", ""},
		{Field{Type: "directory"}, `C:\x`, `C:\x`, "", ""},
		{choice, "eu", "eu", "", ""},
		{choice, "EU", "", "", "not one of eu, us"},
		{Field{Type: "string", Pattern: "^tvly-"}, "tvly-1", "tvly-1", "", ""},
		{Field{Type: "string", Pattern: "^tvly-"}, "1", "", "", "it does not match the pattern ^tvly-"},
		{length, "é", "", "", "less than 2 characters"},
		{length, "éé", "éé", "", ""},
		{length, "éééé", "", "", "more than 3 characters"},
		{number, "", "", "", ""},
	} {
		clean, notes, err := c.f.Check(c.in)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if clean != c.clean || strings.Join(notes, "; ") != c.notes || text != c.err {
			t.Errorf("%s %.40q: %.40q %q %q; want %.40q %q %q", c.f.Type, c.in, clean, notes, text, c.clean, c.notes, c.err)
		}
	}
}

func TestCheckNeverQuotesTheValue(t *testing.T) {
	for _, typ := range fieldTypes {
		f := Field{Type: typ, Secret: true, Required: true, Pattern: "^x$", Choices: []string{"x"}, Max: ptr(1)}
		for _, value := range []string{"canary-7f3a", "canary-7f3a\x00", "canary\ncanary-7f3a", "canary-7f3a\xff", " canary-7f3a"} {
			_, notes, err := f.Check(value)
			if err != nil && strings.Contains(err.Error(), "canary") || strings.Contains(strings.Join(notes, ""), "canary") {
				t.Errorf("%s: %v %q", typ, err, notes)
			}
		}
	}
}

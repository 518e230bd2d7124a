package manifest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const sum64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// goodEntry is an entry without any deviation; extra members may be added.
func goodEntry(id string, extra string) string {
	return `{"id":"` + id + `","name":"N","type":"mcp_local","scope":"user","version":3,"files":[{"path":"connector.json","sha256":"` + sum64 + `","size":12}]` + extra + `}`
}

// with gives the good entry with one member replaced or added.
func with(member, value string) string {
	members := []string{"id", `"x"`, "name", `"N"`, "type", `"mcp_local"`, "scope", `"user"`, "version", "3", "files", `[{"path":"connector.json","sha256":"` + sum64 + `","size":12}]`}
	var parts []string
	found := false
	for i := 0; i < len(members); i += 2 {
		v := members[i+1]
		if members[i] == member {
			v, found = value, true
		}
		if v != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", members[i], v))
		}
	}
	if !found {
		parts = append(parts, fmt.Sprintf("%q:%s", member, value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func rules(diags []Diagnostic) []string {
	var list []string
	for _, d := range diags {
		list = append(list, d.Rule)
	}
	return list
}

// TestEntryMembers has a row for each rule of format.md, section 2.
func TestEntryMembers(t *testing.T) {
	for _, c := range []struct {
		member, value string
		get           func(Entry) any
		want          any
		rules         []string
	}{
		{"folder", `"whatsapp/3"`, func(e Entry) any { return e.Folder }, "whatsapp/3", nil},
		{"folder", `null`, func(e Entry) any { return e.Folder }, "x", nil},
		{"name", `null`, func(e Entry) any { return e.Name }, "x", []string{"name-missing"}},
		{"name", `5`, func(e Entry) any { return e.Name }, "5", []string{"not-a-string"}},
		{"name", `{}`, func(e Entry) any { return e.Name }, "x", []string{"not-a-string", "name-missing"}},
		{"user_description", `"D"`, func(e Entry) any { return e.Description }, "D", nil},
		{"tags", `["a","b"]`, func(e Entry) any { return e.Tags }, []string{"a", "b"}, nil},
		{"tags", `"a"`, func(e Entry) any { return e.Tags }, []string{"a"}, []string{"not-an-array"}},
		{"tags", `["a",null,7]`, func(e Entry) any { return e.Tags }, []string{"a", "7"}, []string{"not-a-string", "not-a-string"}},
		{"tags", `{}`, func(e Entry) any { return e.Tags }, []string(nil), []string{"not-an-array"}},
		{"requires", `["API_KEY","OAUTH","DOCKER","NODE>=20","PYTHON >= 3.10","ENV"]`, func(e Entry) any { return len(e.Requires) }, 6, nil},
		{"requires", `["SECRETS_DIR"]`, func(e Entry) any { return e.Requires }, []string{"SECRETS_DIR"}, []string{"requires-deprecated"}},
		{"requires", `["RUBY"]`, func(e Entry) any { return e.Requires }, []string{"RUBY"}, []string{"requires-unknown"}},
		{"homepage", `null`, func(e Entry) any { return e.Homepage }, "", nil},
		{"type", `"mcp_remote"`, func(e Entry) any { return e.Type }, "mcp_remote", nil},
		{"type", `"docker"`, func(e Entry) any { return e.Type }, "mcp_local", []string{"type-unknown"}},
		{"type", `null`, func(e Entry) any { return e.Type }, "mcp_local", []string{"type-missing"}},
		{"scope", `"global"`, func(e Entry) any { return e.Scope }, "global", nil},
		{"scope", `"per_user"`, func(e Entry) any { return e.Scope }, "user", []string{"scope-legacy"}},
		{"scope", `null`, func(e Entry) any { return e.Scope }, "user", []string{"scope-missing"}},
		{"scope", `"team"`, func(e Entry) any { return e.Scope }, "user", []string{"scope-unknown"}},
		{"icon_small", `"x/s.svg"`, func(e Entry) any { return e.IconSmall }, "x/s.svg", nil},
		{"small_icon", `"x/s.svg"`, func(e Entry) any { return e.IconSmall }, "x/s.svg", []string{"icon-legacy"}},
		{"large_icon", `"x/l.svg"`, func(e Entry) any { return e.IconLarge }, "x/l.svg", []string{"icon-legacy"}},
		{"version", `1`, func(e Entry) any { return e.Version }, Version(1), nil},
		{"version", `9007199254740993`, func(e Entry) any { return e.Version }, Version(9007199254740993), nil},
		{"version", `"2"`, func(e Entry) any { return e.Version }, Version(2), []string{"version-string"}},
		{"version", `"2.0.1"`, func(e Entry) any { return e.Version }, Version(0), []string{"version-not-integer"}},
		{"version", `3.0`, func(e Entry) any { return e.Version }, Version(0), []string{"version-not-integer"}},
		{"version", `1.5`, func(e Entry) any { return e.Version }, Version(0), []string{"version-not-integer"}},
		{"version", `1e3`, func(e Entry) any { return e.Version }, Version(0), []string{"version-not-integer"}},
		{"version", `0`, func(e Entry) any { return e.Version }, Version(0), []string{"version-not-integer"}},
		{"version", `-1`, func(e Entry) any { return e.Version }, Version(0), []string{"version-not-integer"}},
		{"version", `"+2"`, func(e Entry) any { return e.Version }, Version(0), []string{"version-not-integer"}},
		{"version", `""`, func(e Entry) any { return e.Version }, Version(0), []string{"version-not-integer"}},
		{"version", `9223372036854775808`, func(e Entry) any { return e.Version }, Version(0), []string{"version-not-integer"}},
		{"version", `true`, func(e Entry) any { return e.Version }, Version(0), []string{"version-not-integer"}},
		{"version", `null`, func(e Entry) any { return e.Version }, Version(0), []string{"version-missing"}},
		{"version_string", `"1.2.3"`, func(e Entry) any { return e.VersionString }, "1.2.3", nil},
		{"version_string", `"beta"`, func(e Entry) any { return e.VersionString }, "beta", []string{"version-string-not-semver"}},
		{"version_release_date", `"2026-07-19"`, func(e Entry) any { return e.ReleaseDate }, "2026-07-19", nil},
		{"version_release_date", `"19.7.2026"`, func(e Entry) any { return e.ReleaseDate }, "19.7.2026", []string{"release-date-not-iso"}},
		{"seed_since", `4`, func(e Entry) any { return e.SeedSince }, int64(4), nil},
		{"seed_since", `"4"`, func(e Entry) any { return e.SeedSince }, int64(0), []string{"seed-since-not-integer"}},
		{"auth", `{"type":"qr"}`, func(e Entry) any { return e.Auth.Type }, "qr", nil},
		{"auth", `{"type":"none"}`, func(e Entry) any { return *e.Auth }, Auth{}, nil},
		{"auth", `null`, func(e Entry) any { return e.Auth == nil }, true, nil},
		{"tools", `[{"name":"a","display_name":"A"},{"name":"b"}]`, func(e Entry) any { return e.Tools }, []Tool{{"a", "A"}, {"b", ""}}, nil},
		{"tools", `[5,{"display_name":"A"},"c"]`, func(e Entry) any { return e.Tools }, []Tool{{"c", ""}}, []string{"tool-not-an-object", "tool-name-missing", "tool-not-an-object"}},
		{"files", `null`, func(e Entry) any { return len(e.Files) }, 0, []string{"files-missing"}},
		{"files", `[{"path":"a","sha256":" ` + strings.ToUpper(sum64) + ` "}]`, func(e Entry) any { return e.Files }, []File{{"a", sum64, -1}}, []string{"file-size-missing"}},
		{"files", `[{"path":"a","sha256":"` + sum64 + `","size":0}]`, func(e Entry) any { return e.Files[0].Size }, int64(0), nil},
		{"unknown", `{"deep":[{"er":1}]}`, func(e Entry) any { return e.Name }, "N", nil},
	} {
		e, diags := ParseEntry([]byte(with(c.member, c.value)))
		if got := c.get(e); !reflect.DeepEqual(got, c.want) || !slices.Equal(rules(diags), c.rules) || e.Broken != "" {
			t.Errorf("%s = %s: got %#v %v broken %q; want %#v %v", c.member, c.value, got, rules(diags), e.Broken, c.want, c.rules)
		}
	}
}

// TestBrokenEntries has entries that are listed with a reason and never used.
func TestBrokenEntries(t *testing.T) {
	file := func(path, sum, size string) string {
		return with("files", `[{"path":`+path+`,"sha256":`+sum+`,"size":`+size+`}]`)
	}
	good := `"` + sum64 + `"`
	for src, want := range map[string]string{
		with("id", `null`):                       "it has no id",
		with("id", `7`):                          "id: found a number, expected a string",
		with("id", `"../../x"`):                  `id: id "../../x" does not begin with a-z or 0-9`,
		with("id", `"con"`):                      `id: id "con" is a Windows device name`,
		with("folder", `"a/b/c/d"`):              `folder: path "a/b/c/d" has 4 parts; at most 3`,
		with("folder", `"../x"`):                 `folder: path "../x": a part that is "." or ".."`,
		with("folder", `""`):                     `folder: path "": an empty part (a leading, trailing or double slash)`,
		with("type", `"script"`):                 `type: the type "script" is reserved and cannot be installed`,
		with("files", `{}`):                      "files: found an object, expected an array",
		with("files", `["a"]`):                   "files[0]: found a string, expected an object with path, sha256 and size",
		with("auth", `7`):                        "auth: found a number, expected an object with type",
		with("auth", `{"param":"x"}`):            "auth: it has no type",
		file(`"../x"`, good, "1"):                `files[0].path: path "../x": a part that is "." or ".."`,
		file(`null`, good, "1"):                  "files[0]: no path, expected a text",
		file(`"a"`, `null`, "1"):                 "files[0]: no sha256, expected 64 hexadecimal digits",
		file(`"a"`, `"abc"`, "1"):                `files[0].sha256: found "abc", expected 64 hexadecimal digits`,
		file(`"a"`, `"`+sum64[1:]+`g"`, "1"):     `files[0].sha256: found "` + sum64[1:] + `g", expected 64 hexadecimal digits`,
		file(`"a"`, good, "-1"):                  `files[0].size: found "-1", expected a whole number of bytes`,
		file(`"a"`, good, "1e3"):                 `files[0].size: found "1e3", expected a whole number of bytes`,
		file(`"a"`, good, `"12"`):                `files[0].size: found "12", expected a whole number of bytes`,
		file(`"a"`, good, "9223372036854775808"): `files[0].size: found "9223372036854775808", expected a whole number of bytes`,
		file(`"a"`, good, "8388609"):             "files[0].size: 8388609 bytes; at most 8388608",
		with("files", `[{"path":"a","sha256":`+good+`,"size":1},{"path":"a/b","sha256":`+good+`,"size":1}]`): `files: path "a" is a file, and "a/b" needs a folder there`,
		with("files", `[{"path":"a","sha256":`+good+`,"size":1},{"path":"A","sha256":`+good+`,"size":1}]`):   `files: path "A" is the same as "a" where case does not count`,
		goodEntry("x", `,"version":4`):       `version: the key "version" stands here a second time`,
		goodEntry("x", `,"Version":4`):       `Version: the key "Version" differs from an earlier one only in case`,
		goodEntry("x", `,"z":{"a":1,"a":2}`): `z.a: the key "a" stands here a second time`,
		`5`:                                  "found a number, expected an object",
		`{bad}`:                              "expected a key in double quotes",
		`{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: "nested deeper than 32",
		`{"x":"` + strings.Repeat("a", maxEntryBytes) + `"}`:                "1048584 bytes; at most 1048576",
	} {
		e, diags := ParseEntry([]byte(src))
		if e.Broken != want || len(diags) == 0 || string(e.Raw) != src {
			t.Errorf("%.300s: broken %q, %d diagnostics; want %q", src, e.Broken, len(diags), want)
		}
	}
}

func ids(ix *Index) []string {
	var list []string
	for _, e := range ix.Entries {
		if e.Broken != "" {
			list = append(list, "!"+e.ID)
			continue
		}
		list = append(list, e.ID)
	}
	return list
}

func TestOneBadEntryTakesNoneDown(t *testing.T) {
	src := "\xef\xbb\xbf{\"version\":1,\n\"connectors\":[\n" + strings.Join([]string{
		goodEntry("first", ""), `{"id":"bad id"}`, `null`, `{not json}`, goodEntry("twice", `,"id":"twice"`), goodEntry("dup", ""), goodEntry("dup", ""),
		goodEntry("whatsapp", ""), goodEntry("whatsApp", ""), goodEntry("last", ""),
	}, ",\n") + "\n]}"
	ix, diags, err := ParseIndex([]byte(src), false)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"first", "!bad id", "!", "!", "!twice", "!dup", "!dup", "!whatsapp", "!whatsApp", "last"}
	if got := ids(ix); !slices.Equal(got, want) {
		t.Errorf("entries %q, want %q", got, want)
	}
	for _, line := range []string{
		`connectors.json:4:7: connectors[1].id: error: id "bad id" holds something other than a-z, 0-9, dot, underscore and hyphen [id-invalid]`,
		`connectors.json:6:2: connectors[3]: error: expected a key in double quotes [syntax]`,
		`connectors.json:8:1: connectors[5].id: error: the id "dup" is also that of connectors[6]; none of them is used [id-duplicate]`,
	} {
		if !slices.ContainsFunc(diags, func(d Diagnostic) bool { return d.String() == line }) {
			t.Errorf("not told: %s", line)
		}
	}
}

func TestIndexVersions(t *testing.T) {
	for value, want := range map[string]struct {
		version int
		rules   []string
	}{
		`1`: {1, nil}, `7`: {7, []string{"index-version-newer"}}, `"1"`: {0, []string{"index-version"}}, `0`: {0, []string{"index-version"}}, `null`: {0, []string{"index-version-missing"}},
	} {
		ix, diags, err := ParseIndex([]byte(`{"connectors":[`+goodEntry("a", "")+`],"version":`+value+`,"more":{}}`), true)
		if err != nil || ix.Version != want.version || !slices.Equal(rules(diags), want.rules) || len(ix.Entries) != 1 {
			t.Errorf("version %s: %+v %v %v", value, ix, rules(diags), err)
		}
	}
}

// TestRefusedIndexes has documents that are refused whole (H01 and its kind).
func TestRefusedIndexes(t *testing.T) {
	evil := goodEntry("evil", "")
	for _, c := range []struct {
		src              string
		signed, unsigned string // rule, "" = accepted
	}{
		{`{"connectors":[],"connectors":[` + evil + `]}`, "repeated-key", "repeated-key"},
		{`{"connectors":[],"Connectors":[` + evil + `]}`, "case-twin", "case-twin"},
		{`{"version":1,"Version":2,"connectors":[]}`, "case-twin", "case-twin"},
		{`{"connectors":[],"version":1,"version":2}`, "repeated-key", "repeated-key"},
		{`{"connectors":[],"x":{"a":1,"a":2}}`, "repeated-key", ""},
		{`{"connectors":[` + goodEntry("a", `,"name":"M"`) + `]}`, "repeated-key", ""},
		{`{"connectors":[` + goodEntry("a", `,"auth":{"type":"qr","Type":"none"}`) + `]}`, "case-twin", ""},
		{`{"connectors":[{"id":1}]}`, "", ""},
		{`{"Connectors":[]}`, "syntax", "syntax"},
		{`{}`, "syntax", "syntax"},
		{`[]`, "syntax", "syntax"},
		{`<!DOCTYPE html>`, "syntax", "syntax"},
		{``, "syntax", "syntax"},
		{`{"connectors":null}`, "syntax", "syntax"},
		{`{"connectors":[]} x`, "syntax", "syntax"},
		{`{"connectors":[],"x":01}`, "syntax", "syntax"},
		{`{"connectors":[],"x":"` + strings.Repeat("x", maxHeadBytes) + `"}`, "too-large", "too-large"},
		{`{"connectors":[],"x":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`, "syntax", "syntax"},
	} {
		for signed, want := range map[bool]string{true: c.signed, false: c.unsigned} {
			ix, _, err := ParseIndex([]byte(c.src), signed)
			var refused *RefusedError
			got := ""
			if errors.As(err, &refused) {
				got = refused.Rule
			}
			if got != want || (err == nil) != (ix != nil) {
				t.Errorf("%.120s signed %t: %v, want rule %q", c.src, signed, err, want)
			}
		}
	}
	if _, _, err := ParseIndex(make([]byte, MaxIndexBytes+1), false); err == nil {
		t.Error("an index over the limit was accepted")
	}
	_, _, err := ParseIndex([]byte("{\"connectors\":[1,\n2],\n \"version\":1, \"Version\":1}"), false)
	if want := `connectors.json:3:15: Version: error: the key "Version" differs from an earlier one only in case [case-twin]`; err == nil || err.Error() != want {
		t.Errorf("text: %v, want %s", err, want)
	}
}

func TestHostileIndexIsQuick(t *testing.T) {
	twins := strings.TrimSuffix(strings.Repeat(`{"id":"a"},`, 30_000), ",")
	ix, diags, err := ParseIndex([]byte(`{"version":1,"connectors":[`+twins+`]}`), false)
	if err != nil || len(ix.Entries) != 30_000 || ix.Entries[29_999].Broken == "" || len(diags) != maxIndexDiagnostics+1 {
		t.Errorf("%v, %d diagnostics", err, len(diags))
	}
	bad := strings.TrimSuffix(strings.Repeat(`5,`, 1000), ",")
	if _, diags := ParseEntry([]byte(with("tags", "["+bad+"]"))); len(diags) != maxDiagnostics+1 {
		t.Errorf("%d diagnostics of one entry", len(diags))
	}
}

func TestPin(t *testing.T) {
	e, _ := ParseEntry([]byte(goodEntry("a", "")))
	if f, ok := e.Pin("connector.json"); !ok || f.Size != 12 || f.SHA256 != sum64 {
		t.Errorf("pin %+v %t", f, ok)
	}
	if _, ok := e.Pin("Connector.json"); ok {
		t.Error("a pin for a path that is not there")
	}
}

package manifest

import (
	"slices"
	"strconv"
	"strings"

	"skald-connectors/internal/exactjson"
)

const indexFile = "connectors.json"

const (
	typeLocal  = "mcp_local"
	typeRemote = "mcp_remote"
	typeScript = "script"

	scopeUser   = "user"
	scopeGlobal = "global"
)

// ParseEntry reads one element of connectors[]. It always gives an Entry; one
// that cannot be trusted says why in Broken. Lines and columns count from the
// start of src, paths from the entry. Raw is src itself.
func ParseEntry(src []byte) (Entry, []Diagnostic) {
	e, r, _ := parseEntry(src)
	return e, r.diags
}

func parseEntry(src []byte) (Entry, *reader, []exactjson.Repeat) {
	r := &reader{file: indexFile, src: src}
	root, repeats, err := parseObject(src, indexFile, maxEntryBytes)
	if err != nil {
		bad := err.Diagnostic
		r.diags = append(r.diags, bad)
		e := Entry{Raw: src, Type: typeLocal, Scope: scopeUser, Broken: bad.Message}
		return e, r, nil
	}
	r.root = root
	for _, rep := range repeats {
		r.add(rep.Second, rep.Path, Error, repeatRule(rep), repeatMessage(rep))
		r.breaks(rep.Path, repeatMessage(rep))
	}
	e := r.entry(root)
	e.Raw, e.Broken = src, r.broken
	return e, r, repeats
}

func (r *reader) entry(obj exactjson.Value) Entry {
	var e Entry
	e.ID = r.entryID(obj)
	e.Folder = r.folder(obj, e.ID)
	if e.Name = r.text(obj, "name"); e.Name == "" {
		e.Name = e.ID
		r.sayMissing(obj, "name", Warning, "name-missing", "no name, expected a text; the id is shown")
	}
	e.Description = r.text(obj, "user_description")
	e.Tags, e.Requires = r.texts(obj, "tags"), r.requires(obj)
	e.Homepage = r.text(obj, "homepage")
	e.Type = r.connectorType(obj)
	e.Scope, _ = r.scope(obj)
	e.IconSmall, e.IconLarge = r.icon(obj, "small"), r.icon(obj, "large")
	e.Version = r.readVersion(obj)
	e.VersionString, e.ReleaseDate = r.versionTexts(obj)
	e.SeedSince = r.seedSince(obj)
	if auth, ok := r.auth(obj); ok {
		e.Auth = &auth
	}
	e.Tools = r.tools(obj)
	e.Files = r.entryFiles(obj)
	return e
}

func (r *reader) entryID(obj exactjson.Value) string {
	v, ok := get(obj, "id")
	if !ok {
		r.sayMissing(obj, "id", Error, "id-missing", "no id, expected a text")
		r.breaks("", "it has no id")
		return ""
	}
	if v.Kind != exactjson.String {
		r.refuse(v, "id-invalid", "found %s, expected a string", v.Kind)
		return ""
	}
	if err := ValidID(v.Str); err != nil {
		r.refuse(v, "id-invalid", "%v", err)
	}
	return v.Str
}

func (r *reader) folder(obj exactjson.Value, id string) string {
	v, ok := get(obj, "folder")
	if !ok {
		return id
	}
	folder, ok := r.textOf(v)
	if !ok {
		r.breaks("folder", "it is not a text")
		return id
	}
	if err := validFolder(folder); err != nil {
		r.refuse(v, "folder-invalid", "%v", err)
	}
	return folder
}

// connectorType gives the type. Unknown and missing read as local code, which
// demands more of the reader.
func (r *reader) connectorType(obj exactjson.Value) string {
	v, ok := get(obj, "type")
	if !ok {
		r.sayMissing(obj, "type", Warning, "type-missing", "no type, expected mcp_local or mcp_remote; taken as mcp_local")
		return typeLocal
	}
	switch s := r.text(obj, "type"); s {
	case typeLocal, typeRemote:
		return s
	case typeScript:
		r.refuse(v, "type-reserved", `the type "script" is reserved and cannot be installed`)
		return s
	default:
		r.say(v, Error, "type-unknown", "found %q, expected mcp_local or mcp_remote; taken as mcp_local", s)
		return typeLocal
	}
}

// scope gives the scope and whether the document states one.
func (r *reader) scope(obj exactjson.Value) (string, bool) {
	v, ok := get(obj, "scope")
	if !ok {
		r.sayMissing(obj, "scope", Warning, "scope-missing", "no scope, expected user or global; taken as user")
		return scopeUser, false
	}
	switch s := r.text(obj, "scope"); s {
	case scopeUser, scopeGlobal:
		return s, true
	case "per_user":
		r.say(v, Warning, "scope-legacy", `found the older spelling "per_user", expected user`)
		return scopeUser, true
	default:
		r.say(v, Error, "scope-unknown", "found %q, expected user or global; taken as user", s)
		return scopeUser, true
	}
}

func (r *reader) icon(obj exactjson.Value, size string) string {
	if s := r.text(obj, "icon_"+size); s != "" {
		return s
	}
	s := r.text(obj, size+"_icon")
	if v, ok := get(obj, size+"_icon"); ok && s != "" {
		r.say(v, Warning, "icon-legacy", "found the older name %s_icon, expected icon_%s", size, size)
	}
	return s
}

// knownRequires are the prerequisites of format.md, section 2; a range may
// follow (NODE>=20).
var knownRequires = [...]string{"API_KEY", "OAUTH", "DOCKER", "NODE", "PYTHON", "ENV"}

func (r *reader) requires(obj exactjson.Value) []string {
	list := r.texts(obj, "requires")
	v, _ := get(obj, "requires")
	for i, item := range list {
		at := v
		if len(v.Items) == len(list) {
			at = v.Items[i]
		}
		name := strings.TrimRight(strings.TrimSpace(item), "0123456789.*xX<>=~^!|, -")
		switch {
		case name == "SECRETS_DIR":
			r.say(at, Warning, "requires-deprecated", "found SECRETS_DIR, which is deprecated; expected ENV and declared fields")
		case !slices.Contains(knownRequires[:], name):
			r.say(at, Warning, "requires-unknown", "found %q, expected one of %s; kept as it is", item, strings.Join(knownRequires[:], " "))
		}
	}
	return list
}

func (r *reader) seedSince(obj exactjson.Value) int64 {
	v, ok := get(obj, "seed_since")
	if !ok {
		return 0
	}
	if n, err := strconv.ParseInt(v.Str, 10, 64); err == nil && v.Kind == exactjson.Number && n >= 1 {
		return n
	}
	r.say(v, Warning, "seed-since-not-integer", "found %s, expected an integer of 1 or more; taken as absent", v.Kind)
	return 0
}

// tools reads the display names; a legacy list of plain names is accepted.
func (r *reader) tools(obj exactjson.Value) []Tool {
	v, ok := get(obj, "tools")
	if !ok {
		return nil
	}
	var tools []Tool
	for _, item := range r.items(v) {
		switch {
		case item.Kind == exactjson.String && item.Str != "":
			r.say(item, Warning, "tool-not-an-object", "found a string, expected an object with name and display_name")
			tools = append(tools, Tool{Name: item.Str})
		case item.Kind != exactjson.Object:
			r.say(item, Error, "tool-not-an-object", "found %s, expected an object with name and display_name", item.Kind)
		default:
			t := Tool{Name: r.text(item, "name"), DisplayName: r.text(item, "display_name")}
			if t.Name == "" {
				r.sayMissing(item, "name", Error, "tool-name-missing", "no name, expected the name of a tool")
				continue
			}
			tools = append(tools, t)
		}
	}
	return tools
}

// entryFiles reads the pins. Any doubt about one of them breaks the entry.
func (r *reader) entryFiles(obj exactjson.Value) []File {
	v, ok := get(obj, "files")
	if !ok {
		r.sayMissing(obj, "files", Error, "files-missing", "no files, expected the pins of all shipped files")
		return nil
	}
	return r.files(v)
}

func (r *reader) files(v exactjson.Value) []File {
	if v.Kind != exactjson.Array {
		r.refuse(v, "files-not-an-array", "found %s, expected an array", v.Kind)
		return nil
	}
	if len(v.Items) > MaxFiles {
		r.refuse(v, "files-too-many", "%d files; at most %d", len(v.Items), MaxFiles)
		return nil
	}
	files := make([]File, 0, len(v.Items))
	for _, item := range v.Items {
		if item.Kind != exactjson.Object {
			r.refuse(item, "file-not-an-object", "found %s, expected an object with path, sha256 and size", item.Kind)
			continue
		}
		files = append(files, r.pin(item))
	}
	if r.broken == "" {
		if err := validSet(files); err != nil {
			r.refuse(v, "files-conflict", "%v", err)
		}
	}
	return files
}

func (r *reader) pin(item exactjson.Value) File {
	f := File{Size: -1}
	path, ok := get(item, "path")
	if !ok || path.Kind != exactjson.String {
		r.refuse(item, "file-path", "no path, expected a text")
	} else if f.Path = path.Str; ValidPath(f.Path) != nil {
		r.refuse(path, "file-path", "%v", ValidPath(f.Path))
	}
	sum, ok := get(item, "sha256")
	if !ok || sum.Kind != exactjson.String {
		r.refuse(item, "file-sha256", "no sha256, expected 64 hexadecimal digits")
	} else if f.SHA256, ok = digest(sum.Str); !ok {
		r.refuse(sum, "file-sha256", "found %q, expected 64 hexadecimal digits", sum.Str)
	}
	if size, ok := get(item, "size"); ok {
		n, err := strconv.ParseInt(size.Str, 10, 64)
		if size.Kind != exactjson.Number || err != nil || n < 0 {
			r.refuse(size, "file-size", "found %s, expected a whole number of bytes", shown(size))
		} else if f.Size = n; n > MaxFileBytes {
			r.refuse(size, "file-size", "%d bytes; at most %d", n, MaxFileBytes)
		}
	} else {
		r.sayMissing(item, "size", Info, "file-size-missing", "no size, expected a whole number of bytes")
	}
	return f
}

// digest accepts any case and white space around; it gives lower case.
func digest(s string) (string, bool) {
	if isDigest(s) {
		return s, true
	}
	s = strings.ToLower(strings.TrimSpace(s))
	return s, isDigest(s)
}

func isDigest(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}

// shown describes a value for a message: scalars by their text.
func shown(v exactjson.Value) string {
	if v.Str == "" {
		return v.Kind.String()
	}
	return strconv.Quote(v.Str)
}

// Pin gives the pin of the file with exactly this path.
func (e Entry) Pin(path string) (File, bool) {
	for _, f := range e.Files {
		if f.Path == path {
			return f, true
		}
	}
	return File{}, false
}

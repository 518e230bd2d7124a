package manifest

import (
	"strconv"
	"strings"
	"time"

	"skald-connectors/internal/exactjson"
)

const (
	defaultVerifyTimeout = 15 * time.Second
	minVerifyTimeout     = 1 * time.Second
	maxVerifyTimeout     = 120 * time.Second
)

// ParseManifest reads connector.json. file names it in diagnostics. The result
// may have Broken set: it can be shown, and must not be activated.
//
// The error is a *RefusedError: not JSON, larger than MaxManifestBytes, not an
// object, or a key that stands twice or in two cases.
func ParseManifest(src []byte, file string) (*Manifest, []Diagnostic, error) {
	root, repeats, refusal := parseObject(src, file, MaxManifestBytes)
	if refusal != nil {
		return nil, nil, refusal
	}
	if len(repeats) > 0 {
		return nil, nil, refusedRepeat(file, src, repeats[0])
	}
	r := &reader{file: file, src: src, root: root}
	m := r.manifest(root)
	m.Broken = r.broken
	return m, r.diags, nil
}

func (r *reader) manifest(obj exactjson.Value) *Manifest {
	m := &Manifest{Name: r.text(obj, "name"), Tags: r.texts(obj, "tags"), Requires: r.requires(obj)}
	r.identity(obj, m)
	m.VersionString, m.ReleaseDate = r.versionTexts(obj)
	m.Auth, m.given.auth = r.auth(obj)
	m.Env = r.fields(obj)
	m.Engines = r.engines(obj)
	m.LaunchCommand = r.text(obj, "launch_command")
	m.Server = r.server(obj, m)
	m.Transport = m.Server.Transport
	m.Verify = r.verify(obj)
	m.Tools = r.tools(obj)
	m.given.tools = m.Tools != nil
	m.Docs = r.docs(obj)
	m.Dependencies = r.texts(obj, "dependencies")
	m.SetupInstructions = r.texts(obj, "setup_instructions")
	m.Homepage = r.text(obj, "homepage")
	m.IconSmall, m.IconLarge = r.icon(obj, "small"), r.icon(obj, "large")
	m.Permissions = r.permissions(obj)
	m.LegacyFiles = r.legacyFiles(obj)
	r.tokens(obj, m)
	return m
}

// identity reads what must agree with the index, and whether it is stated.
func (r *reader) identity(obj exactjson.Value, m *Manifest) {
	if v, ok := get(obj, "id"); ok {
		m.ID = r.text(obj, "id")
		if err := ValidID(m.ID); err != nil {
			r.refuse(v, "id-invalid", "%v", err)
		}
	} else {
		r.sayMissing(obj, "id", Error, "id-missing", "no id, expected a text")
	}
	m.Type = r.connectorType(obj)
	m.Scope, m.given.scope = r.scope(obj)
	m.Version = r.readVersion(obj)
}

func (r *reader) engines(obj exactjson.Value) map[string]string {
	v, ok := r.object(obj, "engines")
	if !ok {
		return nil
	}
	engines := make(map[string]string, len(v.Members))
	for _, member := range v.Members {
		if member.Value.Kind == exactjson.Null {
			continue
		}
		s, ok := r.textOf(member.Value)
		if _, valid := constraint(s); ok && !valid && strings.TrimSpace(s) != "" && strings.TrimSpace(s) != "*" {
			r.say(member.Value, Warning, "engines-range", "found %q, expected a version range such as >=20", s)
		}
		engines[strings.ToLower(member.Key)] = s
	}
	return engines
}

func (r *reader) docs(obj exactjson.Value) []Doc {
	v, ok := get(obj, "docs")
	if !ok {
		return nil
	}
	var docs []Doc
	for _, item := range r.items(v) {
		if item.Kind != exactjson.Object {
			r.say(item, Error, "doc-not-an-object", "found %s, expected an object with lang and description", item.Kind)
			continue
		}
		docs = append(docs, Doc{Lang: r.text(item, "lang"), Description: r.text(item, "description"), ShortDescription: r.text(item, "llm_short_description")})
	}
	return docs
}

// Doc gives the text for a language tag (it, it-IT), else that of its base
// language, else English, else the first; a zero Doc when there is none.
func (m *Manifest) Doc(lang string) Doc {
	base, _, _ := strings.Cut(strings.ReplaceAll(lang, "_", "-"), "-")
	for _, want := range []string{strings.ReplaceAll(lang, "_", "-"), base, "en"} {
		for _, d := range m.Docs {
			if want != "" && strings.EqualFold(strings.ReplaceAll(d.Lang, "_", "-"), want) {
				return d
			}
		}
	}
	if len(m.Docs) > 0 {
		return m.Docs[0]
	}
	return Doc{}
}

// verify reads the connector's own test. A time limit outside 1 to 120 seconds
// is moved to the nearer end.
func (r *reader) verify(obj exactjson.Value) *Verify {
	v, ok := get(obj, "verify")
	if !ok {
		return nil
	}
	if v.Kind == exactjson.String && v.Str != "" {
		r.say(v, Warning, "verify-not-an-object", "found a string, expected an object with command")
		return &Verify{Command: v.Str, Timeout: defaultVerifyTimeout}
	}
	if v.Kind != exactjson.Object {
		r.say(v, Error, "verify-not-an-object", "found %s, expected an object with command", v.Kind)
		return nil
	}
	command := r.text(v, "command")
	if strings.TrimSpace(command) == "" {
		r.sayMissing(v, "command", Error, "verify-command-missing", "no command, expected a shell command")
		return nil
	}
	if strings.ContainsRune(command, 0) {
		r.refuse(v, "verify-command-nul", "the command holds a NUL character")
	}
	return &Verify{Command: command, Timeout: r.timeout(v)}
}

func (r *reader) timeout(obj exactjson.Value) time.Duration {
	v, ok := get(obj, "timeout_secs")
	if !ok {
		return defaultVerifyTimeout
	}
	secs, err := strconv.ParseFloat(v.Str, 64)
	if err != nil || v.Kind != exactjson.Number && v.Kind != exactjson.String || secs != secs {
		r.say(v, Error, "verify-timeout", "found %s, expected seconds from 1 to 120; taken as 15", shown(v))
		return defaultVerifyTimeout
	}
	limit := time.Duration(min(max(secs, minVerifyTimeout.Seconds()), maxVerifyTimeout.Seconds()) * float64(time.Second))
	if v.Kind == exactjson.String || limit.Seconds() != secs {
		r.say(v, Warning, "verify-timeout", "found %s, expected a number of seconds from 1 to 120; taken as %s", shown(v), limit)
	}
	return limit
}

// legacyFiles reads files[] of a manifest. A fault there never breaks the
// manifest: the files are taken as absent, and an index that pins is enough.
func (r *reader) legacyFiles(obj exactjson.Value) []File {
	v, ok := get(obj, "files")
	if !ok {
		return nil
	}
	before := r.broken
	r.broken = ""
	files := r.files(v)
	bad := r.broken != ""
	r.broken = before
	if bad {
		return nil
	}
	r.say(v, Warning, "files-in-manifest", "files[] in a manifest is the older form; it counts only when the index has none")
	return files
}

package manifest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"skald-connectors/internal/exactjson"
)

var fieldTypes = [...]string{"string", "number", "boolean", "url", "email", "path", "directory", "choice", "multiline"}

// fields reads env[]: objects, the legacy list of names, or a map. A name that
// is refused breaks the manifest, because the connector cannot do without it.
func (r *reader) fields(obj exactjson.Value) []Field {
	v, ok := get(obj, "env")
	if !ok {
		return nil
	}
	var fields []Field
	add := func(at exactjson.Value, f Field) {
		if err := ValidEnvName(f.Name); err != nil {
			r.refuse(at, "env-name", "%v", err)
		} else if slices.ContainsFunc(fields, func(g Field) bool { return strings.EqualFold(g.Name, f.Name) }) {
			r.refuse(at, "env-name-twice", "the name %q is declared twice", f.Name)
		} else {
			fields = append(fields, f)
		}
	}
	switch v.Kind {
	case exactjson.Array:
		for _, item := range v.Items {
			r.listField(item, add)
		}
	case exactjson.Object:
		if len(v.Members) > 0 {
			r.say(v, Warning, "env-legacy-map", "found an object, expected an array of objects")
		}
		for _, member := range v.Members {
			add(member.Value, r.mapField(member))
		}
	default:
		r.refuse(v, "env-not-an-array", "found %s, expected an array of objects", v.Kind)
	}
	return fields
}

func (r *reader) listField(item exactjson.Value, add func(exactjson.Value, Field)) {
	switch item.Kind {
	case exactjson.Object:
		add(item, r.field(item, r.text(item, "name")))
	case exactjson.String:
		r.say(item, Warning, "env-legacy-name", "found a name, expected an object with name, label and description")
		add(item, Field{Name: item.Str, Label: item.Str, Type: "string"})
	case exactjson.Null:
	default:
		r.refuse(item, "env-field", "found %s, expected an object with name, label and description", item.Kind)
	}
}

// mapField reads NAME: {…} and NAME: "default".
func (r *reader) mapField(member exactjson.Member) Field {
	if member.Value.Kind == exactjson.Object {
		return r.field(member.Value, member.Key)
	}
	f := Field{Name: member.Key, Label: member.Key, Type: "string"}
	if member.Value.Kind != exactjson.Null {
		f.Default = r.jsonText(member.Value)
	}
	return f
}

func (r *reader) field(obj exactjson.Value, name string) Field {
	f := Field{
		Name: name, Label: r.text(obj, "label"), Description: r.text(obj, "description"),
		Required: r.flag(obj, "required", false), Secret: r.flag(obj, "secret", true),
		Example: r.text(obj, "example"), HelpURL: r.text(obj, "help_url"),
		Choices: r.texts(obj, "choices"), Min: r.number(obj, "min"), Max: r.number(obj, "max"),
	}
	if f.Label == "" {
		f.Label = name
	}
	f.Type = r.fieldType(obj, f.Choices)
	f.Pattern = r.pattern(obj)
	if v, ok := get(obj, "default"); ok {
		f.Default = r.jsonText(v)
		r.checkDefault(v, &f)
	}
	return f
}

func (r *reader) fieldType(obj exactjson.Value, choices []string) string {
	t := r.text(obj, "type")
	v, _ := obj.Get("type")
	switch {
	case t == "" && len(choices) > 0:
		return "choice"
	case t == "" || t == "string":
		return "string"
	case t == "choice" && len(choices) == 0:
		r.say(v, Error, "field-choices-missing", "a choice without choices[]; taken as a string")
		return "string"
	case !slices.Contains(fieldTypes[:], t):
		r.say(v, Warning, "field-type-unknown", "found %q, expected one of %s; taken as a string", t, strings.Join(fieldTypes[:], " "))
		return "string"
	}
	return t
}

func (r *reader) pattern(obj exactjson.Value) string {
	p := r.text(obj, "pattern")
	if p == "" {
		return ""
	}
	if _, err := regexp.Compile(p); err != nil {
		v, _ := obj.Get("pattern")
		r.say(v, Error, "field-pattern", "the pattern %q is not a regular expression of RE2; it is not enforced", p)
		return ""
	}
	return p
}

func (r *reader) number(obj exactjson.Value, key string) *float64 {
	v, ok := get(obj, key)
	if !ok {
		return nil
	}
	n, err := strconv.ParseFloat(v.Str, 64)
	if v.Kind != exactjson.Number || err != nil {
		r.say(v, Error, "not-a-number", "found %s, expected a number; it is not enforced", shown(v))
		return nil
	}
	return &n
}

// jsonText gives a string as it is and everything else as its JSON text.
func (r *reader) jsonText(v exactjson.Value) string {
	if v.Kind == exactjson.String {
		return v.Str
	}
	text := string(r.src[v.Start:v.End])
	r.say(v, Warning, "default-not-a-string", "found %s, expected a string; taken as %q", v.Kind, text)
	return text
}

// checkDefault drops the default of a secret, and names one that the field
// itself refuses.
func (r *reader) checkDefault(v exactjson.Value, f *Field) {
	if f.Default == "" {
		return
	}
	if f.Secret {
		f.Default = ""
		r.say(v, Error, "default-of-secret", "a secret has a default, which is public; it is not used")
		return
	}
	g := *f
	g.Required = false
	if _, _, err := g.Check(f.Default); err != nil {
		r.say(v, Error, "default-invalid", "the default does not pass the field's own rules: %v", err)
	}
}

// Fields gives what a person is asked for: the declared fields, and the key of
// an api_key connector that declares no secret. The key is a secret, declared
// so or not.
func (m *Manifest) Fields() []Field {
	fields := slices.Clone(m.Env)
	key, ok := m.KeyField()
	if !ok {
		return fields
	}
	for i := range fields {
		if fields[i].Name == key.Name {
			fields[i] = key
			return fields
		}
	}
	return append(fields, key)
}

// KeyField gives the field that holds the key of an api_key connector: its only
// secret, else the one that auth.param names, else one made from auth.param.
// It is false for other connectors, and when two or more secrets leave it open.
func (m *Manifest) KeyField() (Field, bool) {
	if m.Auth.Type != authKey {
		return Field{}, false
	}
	name := keyName(m.Auth.Param)
	var secrets []Field
	for _, f := range m.Env {
		if f.Secret {
			secrets = append(secrets, f)
		}
	}
	if len(secrets) == 1 {
		return secrets[0], true
	}
	for _, f := range m.Env {
		if f.Name == name && (f.Secret || len(secrets) == 0) {
			f.Secret, f.Default = true, ""
			return f, true
		}
	}
	if len(secrets) > 0 {
		return Field{}, false
	}
	return Field{Name: name, Label: "API key", Required: true, Secret: true, Type: "string"}, true
}

// keyName makes the name of a value from auth.param, which may be that of a
// header (X-API-Key becomes X_API_Key).
func keyName(param string) string {
	name := strings.Map(func(c rune) rune {
		if c < 0x80 && isNameByte(byte(c)) {
			return c
		}
		return '_'
	}, param)
	if strings.Trim(name, "_") == "" {
		return "API_KEY"
	}
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	name = name[:min(len(name), maxEnvName)]
	if ValidEnvName(name) != nil { // the name of a header or parameter may be one that steers
		name = "KEY_" + name[:min(len(name), maxEnvName-4)]
	}
	return name
}

// KeyPlace says where the key of an api_key connector goes (format.md, section
// 7): "token" when a token of the URL or of a header takes it, "query",
// "header" or "env" with the name there, "bearer" for an Authorization header.
// It is "" for other connectors.
func (m *Manifest) KeyPlace() (place, name string) {
	key, ok := m.KeyField()
	if !ok {
		return "", ""
	}
	token := "{SECRET:" + key.Name + "}"
	switch a := m.Auth; {
	case m.Type == typeRemote && strings.Contains(m.Server.URL, token):
		return "token", key.Name
	case slices.ContainsFunc(m.Server.Headers, func(h EnvVar) bool { return strings.Contains(h.Value, token) }):
		return "token", key.Name
	case a.Delivery == "query" && a.Param != "":
		return "query", a.Param
	case a.Delivery == "header" && strings.EqualFold(a.Param, "Authorization"):
		return "bearer", a.Param
	case a.Delivery == "header" && a.Param != "":
		return "header", a.Param
	case a.Delivery == "env" && a.Param != "":
		return "env", a.Param
	case m.Type == typeRemote:
		return "bearer", "Authorization"
	}
	return "env", key.Name
}

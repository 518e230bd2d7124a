package activate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/keystore"
	"skald-connectors/login"
	"skald-connectors/manifest"
)

// values are the filled fields of one activation. Every value is held as a
// Secret while it travels, so that a plain one cannot leak by a mistake of the
// flag either; the manifest's flag decides only where it is stored.
type values struct {
	fields []manifest.Field
	filled map[string]keystore.Secret
	until  map[string]time.Time // when a value of filled stops working, where that is known
	cred   *login.Credential    // what a sign-in brought; nil = none
	folder string               // where a delivered file is, what {secrets} means; "" = none
}

func newValues(m *manifest.Manifest) *values {
	return &values{fields: m.Fields(), filled: map[string]keystore.Secret{}, until: map[string]time.Time{}}
}

func (v *values) field(name string) (manifest.Field, bool) {
	i := slices.IndexFunc(v.fields, func(f manifest.Field) bool { return f.Name == name })
	if i < 0 {
		return manifest.Field{}, false
	}
	return v.fields[i], true
}

// set stores a checked value; an empty one takes the field back to unfilled. It is not known
// of it when it stops working, also where it is the same as before.
func (v *values) set(name string, value keystore.Secret) {
	delete(v.until, name)
	if value.IsZero() {
		delete(v.filled, name)
		return
	}
	v.filled[name] = value
}

// restore is set for what a vault has.
func (v *values) restore(h keystore.Handle) {
	if v.set(h.Name, h.Value); !h.ExpiresAt.IsZero() {
		v.until[h.Name] = h.ExpiresAt
	}
}

// applyDefaults fills what nothing was given for (format.md section 4: a
// default applies also to a required field and never to a secret one).
func (v *values) applyDefaults() {
	for _, f := range v.fields {
		if _, ok := v.filled[f.Name]; !ok && f.Default != "" && !f.Secret {
			v.filled[f.Name] = keystore.NewSecret(f.Default)
		}
	}
}

// missing names the required fields that have no value.
func (v *values) missing() []manifest.Field {
	var out []manifest.Field
	for _, f := range v.fields {
		if value, ok := v.filled[f.Name]; f.Required && (!ok || strings.TrimSpace(value.Reveal()) == "") {
			out = append(out, f)
		}
	}
	return out
}

// standIn fills each unfilled field with a host or a port that stands for it in a
// plan, which is shown before anything was asked; label puts the fields' labels
// in their places in a text.
func (v *values) standIn() (label func(string) string) {
	var pairs []string
	for i, f := range v.fields {
		if _, ok := v.filled[f.Name]; ok || f.Secret {
			continue
		}
		stand := fmt.Sprintf("field-%d.invalid", i)
		if f.Type == "number" {
			stand = strconv.Itoa(standInPort + i)
		}
		v.filled[f.Name] = keystore.NewSecret(stand)
		pairs = append(pairs, stand, "<"+f.Label+">")
	}
	return strings.NewReplacer(pairs...).Replace
}

// standInPort and those above it are ports that no manifest names.
const standInPort = 64000

// plain returns the values that the record keeps, by name.
func (v *values) plain() map[string]string {
	out := map[string]string{}
	for _, f := range v.fields {
		if value, ok := v.filled[f.Name]; ok && !f.Secret {
			out[f.Name] = value.Reveal()
		}
	}
	return out
}

// handles returns the values that the vault keeps, in the fields' order, and then the sign-in's.
func (v *values) handles() []keystore.Handle {
	var out []keystore.Handle
	for _, f := range v.fields {
		if value, ok := v.filled[f.Name]; ok && f.Secret {
			out = append(out, keystore.Handle{Name: f.Name, Value: value, Secret: true, ExpiresAt: v.until[f.Name]})
		}
	}
	return v.withCredential(out)
}

// load takes the stored values of an activation; what the manifest no longer
// declares is left out.
func (v *values) load(rec *record.Record, hs []keystore.Handle) {
	for name, value := range rec.Env {
		if f, ok := v.field(name); ok && !f.Secret {
			v.set(name, keystore.NewSecret(value))
		}
	}
	for _, h := range hs {
		if f, ok := v.field(h.Name); ok && f.Secret {
			v.restore(h)
		}
	}
	if cred, ok, err := login.Find(hs); ok && err == nil { // a damaged one counts as none: a new sign-in replaces it
		v.cred = &cred
	}
}

// keep takes over the plain values of a record for the fields of another version: one that is a secret there becomes one, and one
// that its rules refuse is left out. It names those that were.
func (v *values) keep(rec *record.Record) (unfit []string) {
	for _, name := range slices.Sorted(maps.Keys(rec.Env)) {
		f, ok := v.field(name)
		if !ok {
			continue
		}
		clean, _, err := f.Check(rec.Env[name])
		if err != nil {
			unfit = append(unfit, name)
		}
		v.set(name, keystore.NewSecret(clean))
	}
	return unfit
}

// lookup answers tokens. A token that names nothing declared is not declared;
// a declared and unfilled one is empty.
func (v *values) lookup(kind, name string) (string, bool) {
	f, ok := v.field(name)
	if !ok {
		return "", false
	}
	return v.filled[f.Name].Reveal(), true
}

// Given is one value that came with the command line: Source names the flag
// or file for messages, never the value.
type Given struct {
	Value  keystore.Secret
	Source string
	Public bool // it came as an argument, which other users can see
}

// GivenError says that a value of the command line cannot be used.
type GivenError struct {
	Name, Source, Problem string
	SecretArgument        bool // the value of a secret field came as an argument
}

func (e *GivenError) Error() string {
	return fmt.Sprintf("%s %s: %s", e.Source, e.Name, e.Problem)
}

// MissingError names the required fields that nothing was given for where no
// person can be asked.
type MissingError struct {
	Name   string
	Fields []manifest.Field
}

func (e *MissingError) Error() string {
	names := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		names[i] = fmt.Sprintf("%s (%s)", f.Name, f.Label)
	}
	return fmt.Sprintf("%q needs values that were not given: %s", e.Name, strings.Join(names, ", "))
}

// take checks the given values against the fields and fills them in.
func (v *values) take(given map[string]Given) ([]string, error) {
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		g := given[name]
		f, ok := v.field(name)
		switch {
		case !ok:
			return nil, &GivenError{Name: name, Source: g.Source, Problem: "the connector asks for no such field; it asks for " + v.names()}
		case f.Secret && g.Public:
			return nil, &GivenError{Name: name, Source: g.Source, SecretArgument: true, Problem: "this field is a secret, and arguments are visible to every user of the machine"}
		}
		clean, fieldNotes, err := f.Check(g.Value.Reveal())
		if err != nil {
			return nil, &GivenError{Name: name, Source: g.Source, Problem: err.Error()}
		}
		for _, n := range fieldNotes {
			notes = append(notes, name+": "+n)
		}
		v.set(name, keystore.NewSecret(clean))
	}
	return notes, nil
}

func (v *values) names() string {
	if len(v.fields) == 0 {
		return "nothing"
	}
	names := make([]string, len(v.fields))
	for i, f := range v.fields {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

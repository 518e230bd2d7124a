package manifest

import (
	"slices"
	"strings"

	"skald-connectors/internal/exactjson"
)

// tokens judges every token of a manifest and brings them into one form, so
// that the rest of the program meets {ENV:} and {SECRET:} with the names of
// Fields only.
func (r *reader) tokens(obj exactjson.Value, m *Manifest) {
	config, _ := get(obj, "mcp_config")
	url, _ := config.Get("url")
	r.judge(url, m, m.Server.URL, placeURL)
	r.judgePairs(config, m, "headers", m.Server.Headers)
	r.judgePairs(config, m, "env", m.Server.Env)
	args, _ := config.Get("args")
	launch, _ := obj.Get("launch_command")
	for i, arg := range m.Server.Args {
		at := launch
		if own := i - (len(m.Server.Args) - len(args.Items)); own >= 0 {
			at = args.Items[own]
		}
		r.judge(at, m, arg, placeArgs)
	}
	if m.Verify != nil {
		v, _ := obj.Get("verify")
		if command, ok := v.Get("command"); ok {
			v = command
		}
		r.judge(v, m, m.Verify.Command, placeVerify)
		if _, _, err := shellCommand(m.Verify.Command, ""); err != nil {
			r.say(v, Error, "verify-token-place", "%v", err)
		}
	}
	m.normalizeTokens()
}

func (r *reader) judgePairs(config exactjson.Value, m *Manifest, key string, pairs []EnvVar) {
	v, _ := config.Get(key)
	for _, pair := range pairs {
		at, _ := v.Get(pair.Name)
		r.judge(at, m, pair.Value, key)
	}
}

const (
	placeURL    = "url"
	placeArgs   = "args"
	placeVerify = "verify"
)

// judge names what is wrong with the tokens of one text.
func (r *reader) judge(at exactjson.Value, m *Manifest, text, place string) {
	for _, ref := range Tokens(text) {
		token := text[ref.Start:ref.End]
		switch {
		case ref.Kind == "malformed":
			r.say(at, Warning, "token-malformed", "found %q, expected {ENV:NAME} or {SECRET:NAME}; left as it is", token)
		case ref.Kind == "key":
			r.judgeKey(at, m)
		case ref.Deprecated:
			r.say(at, Warning, "token-deprecated", "found the deprecated %s, expected {ENV:NAME} or {SECRET:NAME}; left as it is", token)
		default:
			r.judgeLive(at, m, ref, token, place)
		}
	}
}

func (r *reader) judgeKey(at exactjson.Value, m *Manifest) {
	if key, ok := m.KeyField(); ok {
		r.say(at, Warning, "token-deprecated", "found the deprecated {key}, expected {SECRET:%s}", key.Name)
		return
	}
	r.say(at, Warning, "token-deprecated", "found the deprecated {key}, and the connector has no API key; left as it is")
}

func (r *reader) judgeLive(at exactjson.Value, m *Manifest, ref TokenRef, token, place string) {
	field, ok := m.fieldOf(ref)
	if !ok {
		r.say(at, Error, "token-undeclared", "%s names no field of env[]; it becomes empty", token)
		return
	}
	switch {
	case ref.Kind == "ENV" && field.Secret:
		r.say(at, Error, "token-kind", "%s names a secret, expected {SECRET:%s}", token, field.Name)
	case ref.Kind == "SECRET" && !field.Secret:
		r.say(at, Warning, "token-kind", "%s names a field that is not secret, expected {ENV:%s}", token, field.Name)
	}
	if !field.Secret && ref.Kind != "SECRET" {
		return
	}
	switch place {
	case placeArgs:
		r.say(at, Error, "secret-in-args", "%s stands in an argument, which other users can see; expected it in mcp_config.env", token)
	case placeVerify:
		r.say(at, Error, "secret-in-verify", "%s stands in verify.command and may reach a program's arguments; expected the program to read it from the environment", token)
	}
}

// fieldOf finds the field that a token names; auth.param names the key also
// when the field is called otherwise.
func (m *Manifest) fieldOf(ref TokenRef) (Field, bool) {
	for _, f := range m.Fields() {
		if f.Name == ref.Name {
			return f, true
		}
	}
	if key, ok := m.KeyField(); ok && ref.Name == m.Auth.Param {
		return key, true
	}
	return Field{}, false
}

// normalizeTokens rewrites {key} and the names of the key to the key's field,
// and gives each token the kind that its field has: a secret called {ENV:} must
// not pass where secrets are refused.
func (m *Manifest) normalizeTokens() {
	s := &m.Server
	s.URL = m.normal(s.URL)
	s.Args = slices.Clone(s.Args)
	for i := range s.Args {
		s.Args[i] = m.normal(s.Args[i])
	}
	for _, pairs := range [][]EnvVar{s.Headers, s.Env} {
		for i := range pairs {
			pairs[i].Value = m.normal(pairs[i].Value)
		}
	}
	if m.Verify != nil {
		m.Verify.Command = m.normal(m.Verify.Command)
	}
}

func (m *Manifest) normal(text string) string {
	if strings.IndexByte(text, '{') < 0 {
		return text
	}
	if key, ok := m.KeyField(); ok {
		text = strings.ReplaceAll(text, "{key}", "{SECRET:"+key.Name+"}")
	}
	return replaceTokens(text, func(ref TokenRef) string {
		kind, name := ref.Kind, ref.Name
		if f, ok := m.fieldOf(ref); ok {
			name = f.Name
			if f.Secret {
				kind = "SECRET"
			}
		}
		return "{" + kind + ":" + name + "}"
	})
}

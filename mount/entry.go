package mount

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// field is one member of an entry. A value is a string, bool, int, []string, []any,
// fields, or a value of a tree.
type field struct {
	key string
	val any
}

// fields is an entry in the order in which it is written.
type fields []field

// tree is the entry as the parsers give it.
func (f fields) tree() map[string]any {
	m := make(map[string]any, len(f))
	for _, x := range f {
		m[x.key] = treeOf(x.val)
	}
	return m
}

func (f fields) get(key string) any {
	for _, x := range f {
		if x.key == key {
			return x.val
		}
	}
	return nil
}

// with gives the entry the other members of an older one, after its own.
func (f fields) with(old map[string]any) fields {
	out := slices.Clone(f)
	var extra []string
	for key := range old {
		if f.get(key) == nil {
			extra = append(extra, key)
		}
	}
	slices.Sort(extra)
	for _, key := range extra {
		out = append(out, field{key, old[key]})
	}
	// What a person may have changed and what does not decide what is started stays.
	for i, x := range out {
		if v, ok := old[x.key]; ok && !startKeys[x.key] {
			out[i].val = v
		}
	}
	return out
}

// startKeys decide what is started; the rest of an entry is the person's.
var startKeys = map[string]bool{
	"command": true, "cmd": true, "args": true, "name": true, "type": true, "transport": true, "source": true, "key": true,
}

// shape is how a client writes a server that it starts.
type shape uint8

const (
	plainShape   shape = iota // {command, args}
	typedStdio                // + type: "stdio" first
	clineShape                // + disabled, autoApprove
	rooShape                  // + disabled, alwaysAllow
	kiroShape                 // + disabled, autoApprove, disabledTools
	copilotShape              // type local, tools
	sema4Shape                // + transport: "stdio"
	fiveireShape              // type local, key, isActive
	zedShape                  // source, enabled, env
	opencodeV1                // command is an array
	opencodeV2                // the same with disabled in place of enabled
	gooseShape                // cmd, envs
	namedShape                // name first, for lists
	vibeShape                 // name, transport
	engineShape               // name, transport{kind, command, args}
)

// entry renders the shape's members. Every shape names its arguments, also when it
// has none, and none has a value in its environment.
func (s shape) entry(name, command string, args []string) fields {
	start := fields{{"command", command}, {"args", args}}
	switch s {
	case typedStdio:
		return append(fields{{"type", "stdio"}}, start...)
	case clineShape:
		return append(start, field{"disabled", false}, field{"autoApprove", []string{}})
	case rooShape:
		return append(start, field{"disabled", false}, field{"alwaysAllow", []string{}})
	case kiroShape:
		return append(start, field{"disabled", false}, field{"autoApprove", []string{}}, field{"disabledTools", []string{}})
	case copilotShape:
		return append(append(fields{{"type", "local"}}, start...), field{"env", fields{}}, field{"tools", []string{"*"}})
	case sema4Shape:
		return append(start, field{"transport", "stdio"})
	case fiveireShape:
		return append(fields{{"type", "local"}, {"key", slug(name)}, {"isActive", true}}, start...)
	case zedShape:
		return append(append(fields{{"source", "custom"}, {"enabled", true}}, start...), field{"env", fields{}})
	case opencodeV1, opencodeV2:
		f := fields{{"type", "local"}, {"command", append([]string{command}, args...)}, {"environment", fields{}}}
		if s == opencodeV2 {
			return append(f, field{"disabled", false})
		}
		return append(f, field{"enabled", true})
	case gooseShape:
		return fields{{"type", "stdio"}, {"name", name}, {"enabled", true}, {"cmd", command}, {"args", args},
			{"envs", fields{}}, {"env_keys", []string{}}, {"timeout", 300}}
	case namedShape:
		return append(fields{{"name", name}}, start...)
	case vibeShape:
		return append(fields{{"name", name}, {"transport", "stdio"}}, start...)
	case engineShape:
		return fields{{"name", name}, {"transport", append(fields{{"kind", "stdio"}}, start...)}}
	}
	return start
}

// slug is 5ire's own key: letters and digits, not beginning with a digit.
func slug(name string) string {
	s := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return "key" + s
	}
	return s
}

// start is what an entry starts, as its client reads it.
type start struct {
	command string
	args    []string
	env     map[string]string
	url     string
	headers map[string]string
}

// readStart reads an entry of any shape. It is false for one that names neither a
// program nor an address, or names them in a way that no client reads.
func readStart(entry any) (start, bool) {
	m, ok := entry.(map[string]any)
	if !ok {
		return start{}, false
	}
	if inner, ok := m["transport"].(map[string]any); ok {
		m = inner
	}
	var s start
	switch c := either(m, "command", "cmd").(type) {
	case string:
		s.command = c
	case []any:
		words, ok := texts(c)
		if !ok || len(words) == 0 {
			return start{}, false
		}
		s.command, s.args = words[0], words[1:]
	}
	if list, ok := m["args"].([]any); ok {
		words, ok := texts(list)
		if !ok {
			return start{}, false
		}
		s.args = append(s.args, words...)
	}
	s.url, _ = either(m, "url", "serverUrl", "httpUrl", "uri").(string)
	s.env = textMap(either(m, "env", "envs", "environment"))
	s.headers = textMap(either(m, "headers", "http_headers"))
	return s, s.command != "" || s.url != ""
}

// textMap keeps the texts of an object; nil when it is none.
func textMap(v any) map[string]string {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, x := range m {
		out[k], _ = x.(string)
	}
	return out
}

func either(m map[string]any, keys ...string) any {
	for _, k := range keys {
		if v, ok := m[k]; ok {
			return v
		}
	}
	return nil
}

func texts(list []any) ([]string, bool) {
	out := make([]string, 0, len(list))
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

// ours tells whether the entry starts this program for that activation and home; program is the command that is written now.
func (s start) ours(name, home, program string) bool {
	if !isProgram(s.command, program) || len(s.args) < 2 || s.args[0] != "run" || s.args[1] != name {
		return false
	}
	return s.homeNamed() == home
}

// homeNamed is the home that the entry names, "" where it names none. It starts this program.
func (s start) homeNamed() string {
	named := ""
	for i, a := range s.args[2:] {
		if v, ok := strings.CutPrefix(a, "--home="); ok {
			named = v
		} else if a == "--home" && i+3 < len(s.args) {
			named = s.args[i+3]
		}
	}
	return named
}

// isProgram tells whether a command is this program, by any path: under its own name, or under the one that it has here. A file
// that was downloaded is often called after its version or system, and its entries are ours all the same.
func isProgram(command, program string) bool {
	base, here := baseOf(command), baseOf(program)
	return base == ourProgram || strings.EqualFold(base, ourProgram+".exe") ||
		program != "" && (base == here || strings.HasSuffix(here, ".exe") && strings.EqualFold(base, here))
}

func baseOf(command string) string { return path.Base(strings.ReplaceAll(command, `\`, "/")) }

// digestOf identifies an entry by its values; order, spacing and comments do not
// count, because clients write their files anew.
func digestOf(entry any) string {
	text, err := json.Marshal(entry)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

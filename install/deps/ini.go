package deps

import (
	"encoding/json"
	"os"
	"strings"
)

// settingsLimit bounds a person's npm or pip settings.
const settingsLimit = 1 << 20

// A setting is one line of a settings file, in its section ("" = before the first).
type setting struct{ section, key, value string }

// readSettings reads a settings file of the person; one that is not there, or not
// theirs to read, has none. It is never written.
func readSettings(file string, parse func(string) []setting) []setting {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > settingsLimit {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return parse(strings.TrimPrefix(string(data), "\ufeff"))
}

// parseNPMRC reads npm's form: key = value, key[] = value, quotes, ";" and "#".
func parseNPMRC(text string) []setting {
	var out []setting
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == ';' || line[0] == '#' {
			continue
		}
		if line[0] == '[' && strings.HasSuffix(line, "]") {
			section = line[1 : len(line)-1]
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			value = "true"
		}
		out = append(out, setting{section, unquoteNPM(strings.TrimSpace(key)), unquoteNPM(strings.TrimSpace(value))})
	}
	return out
}

// unquoteNPM undoes quotes, and ends an unquoted text at a comment.
func unquoteNPM(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		var text string
		if json.Unmarshal([]byte(s), &text) == nil {
			return text
		}
	}
	if len(s) >= 2 && s[0] == '\'' && s[len(s)-1] == '\'' {
		return s[1 : len(s)-1]
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && strings.IndexByte(`\;#`, s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
		case c == ';' || c == '#':
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// parsePipConf reads pip's form: sections, key = value or key: value, further lines
// of a value indented.
func parsePipConf(text string) []setting {
	var out []setting
	section := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case (line[0] == ' ' || line[0] == '\t') && len(out) > 0:
			out[len(out)-1].value = strings.TrimSpace(out[len(out)-1].value + "\n" + trimmed)
		case trimmed[0] == '[' && strings.HasSuffix(trimmed, "]"):
			section = trimmed[1 : len(trimmed)-1]
		default:
			if i := strings.IndexAny(trimmed, "=:"); i > 0 {
				key := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(trimmed[:i])), "_", "-")
				out = append(out, setting{section, key, strings.TrimSpace(trimmed[i+1:])})
			}
		}
	}
	return out
}

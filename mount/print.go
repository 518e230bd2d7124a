package mount

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// pairs gives the members of a map value in their order; those of a tree sorted.
func pairs(v any) (fields, bool) {
	switch v := v.(type) {
	case fields:
		return v, true
	case map[string]any:
		out := make(fields, 0, len(v))
		for k, x := range v {
			out = append(out, field{k, x})
		}
		slices.SortFunc(out, func(a, b field) int { return strings.Compare(a.key, b.key) })
		return out, true
	}
	return nil, false
}

func elements(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case []string:
		out := make([]any, len(v))
		for i, s := range v {
			out[i] = s
		}
		return out, true
	}
	return nil, false
}

func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return jsonString(v)
	case json.Number:
		return v.String()
	case nil:
		return "null"
	case other:
		return v.text
	}
	return fmt.Sprint(v)
}

// jsonPrint writes a value over several lines; lists of scalars stay on one.
func jsonPrint(v any, indent, unit string, compact bool) string {
	inner := indent + unit
	if f, ok := pairs(v); ok {
		if len(f) == 0 {
			return "{}"
		}
		lines := make([]string, len(f))
		for i, x := range f {
			lines[i] = inner + member(x.key, jsonPrint(x.val, inner, unit, compact), compact)
		}
		return "{\n" + strings.Join(lines, ",\n") + "\n" + indent + "}"
	}
	list, ok := elements(v)
	if !ok {
		return scalar(v)
	}
	if !slices.ContainsFunc(list, func(x any) bool { _, isMap := pairs(x); return isMap }) {
		return jsonLine(v, compact)
	}
	lines := make([]string, len(list))
	for i, x := range list {
		lines[i] = inner + jsonPrint(x, inner, unit, compact)
	}
	return "[\n" + strings.Join(lines, ",\n") + "\n" + indent + "]"
}

// jsonLine writes a value on one line. It is also a flow collection of YAML.
func jsonLine(v any, compact bool) string {
	sep := ", "
	if compact {
		sep = ","
	}
	if f, ok := pairs(v); ok {
		parts := make([]string, len(f))
		for i, x := range f {
			parts[i] = member(x.key, jsonLine(x.val, compact), compact)
		}
		return "{" + strings.Join(parts, sep) + "}"
	}
	if list, ok := elements(v); ok {
		parts := make([]string, len(list))
		for i, x := range list {
			parts[i] = jsonLine(x, compact)
		}
		return "[" + strings.Join(parts, sep) + "]"
	}
	return scalar(v)
}

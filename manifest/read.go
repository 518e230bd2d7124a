package manifest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"skald-connectors/internal/exactjson"
)

const (
	// maxDepth stops a document from exhausting the stack; ours nest 6 deep,
	// the rest is room for members that others add.
	maxDepth = 32
	// maxDiagnostics bounds what one document or entry can make us say.
	maxDiagnostics = 200
)

// reader collects what is wrong while a document becomes our types. It is
// given the values themselves; their JSON paths are found when they are needed.
type reader struct {
	file  string
	src   []byte
	root  exactjson.Value
	diags []Diagnostic
	// broken is the first reason why the whole must not be used.
	broken string
}

// say records a deviation at a value.
func (r *reader) say(v exactjson.Value, s Severity, rule, format string, args ...any) {
	r.add(v.Start, pathTo(r.root, v.Start), s, rule, fmt.Sprintf(format, args...))
}

// sayMissing records that parent has no member key.
func (r *reader) sayMissing(parent exactjson.Value, key string, s Severity, rule, format string, args ...any) {
	r.add(parent.Start, joinPath(pathTo(r.root, parent.Start), key), s, rule, fmt.Sprintf(format, args...))
}

// refuse records an error after which the whole must not be used.
func (r *reader) refuse(v exactjson.Value, rule, format string, args ...any) {
	r.say(v, Error, rule, format, args...)
	r.breaks(pathTo(r.root, v.Start), fmt.Sprintf(format, args...))
}

// breaks keeps the first reason.
func (r *reader) breaks(path, why string) {
	if r.broken != "" {
		return
	}
	if r.broken = why; path != "" {
		r.broken = path + ": " + why
	}
}

func (r *reader) add(off int, path string, s Severity, rule, message string) {
	if len(r.diags) > maxDiagnostics {
		return
	}
	line, col := exactjson.Position(r.src, off)
	d := Diagnostic{File: r.file, Path: path, Line: line, Col: col, Severity: s, Rule: rule, Message: message}
	if len(r.diags) == maxDiagnostics {
		d.Path, d.Severity, d.Rule = "", Warning, "too-many-diagnostics"
		d.Message = fmt.Sprintf("more than %d deviations; the others are not listed", maxDiagnostics)
	}
	r.diags = append(r.diags, d)
}

// pathTo finds the JSON path of the value that starts at off.
func pathTo(v exactjson.Value, off int) string {
	path := ""
	for v.Start != off {
		next, step := childAt(v, off)
		if step == "" {
			return path
		}
		if step[0] == '[' {
			path += step
		} else {
			path = joinPath(path, step)
		}
		v = next
	}
	return path
}

func childAt(v exactjson.Value, off int) (exactjson.Value, string) {
	for i, item := range v.Items {
		if off >= item.Start && off < item.End {
			return item, "[" + strconv.Itoa(i) + "]"
		}
	}
	for _, m := range v.Members {
		if off >= m.Value.Start && off < m.Value.End {
			return m.Value, pathKey(m.Key)
		}
	}
	return v, ""
}

// pathKey gives a key as it stands in a path: quoted when it is empty or holds
// what a terminal would not show.
func pathKey(key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(key)
	}
	return key
}

func joinPath(path, key string) string {
	if path == "" || key == "" || strings.HasPrefix(key, "[") {
		return path + key
	}
	return path + "." + key
}

// get gives a member; null is the same as absent.
func get(obj exactjson.Value, key string) (exactjson.Value, bool) {
	for i := range obj.Members {
		if m := &obj.Members[i]; m.Key == key {
			return m.Value, m.Value.Kind != exactjson.Null
		}
	}
	return exactjson.Value{}, false
}

// text reads a string. A number or boolean is taken as its JSON text, loudly.
func (r *reader) text(obj exactjson.Value, key string) string {
	v, ok := get(obj, key)
	if !ok {
		return ""
	}
	s, _ := r.textOf(v)
	return s
}

func (r *reader) textOf(v exactjson.Value) (string, bool) {
	switch v.Kind {
	case exactjson.String:
		return v.Str, true
	case exactjson.Number, exactjson.Bool:
		r.say(v, Warning, "not-a-string", "found %s, expected a string; taken as %q", v.Kind, v.Str)
		return v.Str, true
	}
	r.say(v, Error, "not-a-string", "found %s, expected a string", v.Kind)
	return "", false
}

// texts reads an array of strings. A lone string is taken as a list of one.
func (r *reader) texts(obj exactjson.Value, key string) []string {
	v, ok := get(obj, key)
	if !ok {
		return nil
	}
	if v.Kind == exactjson.String {
		r.say(v, Warning, "not-an-array", "found a string, expected an array of strings; taken as a list of one")
		return []string{v.Str}
	}
	items := r.items(v)
	if len(items) == 0 {
		return nil
	}
	list := make([]string, 0, len(items))
	for _, item := range items {
		if s, ok := r.textOf(item); ok {
			list = append(list, s)
		}
	}
	return list
}

func (r *reader) items(v exactjson.Value) []exactjson.Value {
	if v.Kind != exactjson.Array {
		r.say(v, Error, "not-an-array", "found %s, expected an array", v.Kind)
	}
	return v.Items
}

// object gives an object member; anything else is told and taken as absent.
func (r *reader) object(obj exactjson.Value, key string) (exactjson.Value, bool) {
	v, ok := get(obj, key)
	if ok && v.Kind != exactjson.Object {
		r.say(v, Error, "not-an-object", "found %s, expected an object", v.Kind)
		return exactjson.Value{}, false
	}
	return v, ok
}

// flag reads a boolean; fallback is what an unreadable one means.
func (r *reader) flag(obj exactjson.Value, key string, fallback bool) bool {
	v, ok := get(obj, key)
	switch {
	case !ok:
		return false
	case v.Kind == exactjson.Bool:
		return v.Str == "true"
	case v.Kind == exactjson.String && (v.Str == "true" || v.Str == "false"):
		r.say(v, Warning, "not-a-boolean", "found the string %q, expected a boolean", v.Str)
		return v.Str == "true"
	}
	r.say(v, Error, "not-a-boolean", "found %s, expected a boolean; taken as %t", v.Kind, fallback)
	return fallback
}

// parseObject parses src and refuses what is too large or not one object.
func parseObject(src []byte, file string, most int) (exactjson.Value, []exactjson.Repeat, *RefusedError) {
	if len(src) > most {
		return exactjson.Value{}, nil, refused(file, nil, 0, "", "too-large", fmt.Sprintf("%d bytes; at most %d", len(src), most))
	}
	root, repeats, err := exactjson.Parse(src, maxDepth)
	if err != nil {
		return root, nil, refusedSyntax(file, err)
	}
	if root.Kind != exactjson.Object {
		return root, nil, refused(file, src, root.Start, "", "not-an-object", fmt.Sprintf("found %s, expected an object", root.Kind))
	}
	return root, repeats, nil
}

func refusedSyntax(file string, err error) *RefusedError {
	d := Diagnostic{File: file, Severity: Error, Rule: "syntax", Message: err.Error()}
	var syntax *exactjson.SyntaxError
	if errors.As(err, &syntax) {
		d.Line, d.Col, d.Message = syntax.Line, syntax.Col, syntax.Msg
		if syntax.Repeat != nil {
			d.Path, d.Rule = syntax.Repeat.Path, repeatRule(*syntax.Repeat)
		}
	}
	return &RefusedError{d}
}

func refused(file string, src []byte, off int, path, rule, message string) *RefusedError {
	d := Diagnostic{File: file, Path: path, Severity: Error, Rule: rule, Message: message}
	if src != nil {
		d.Line, d.Col = exactjson.Position(src, off)
	}
	return &RefusedError{d}
}

func refusedRepeat(file string, src []byte, rep exactjson.Repeat) *RefusedError {
	return refused(file, src, rep.Second, rep.Path, repeatRule(rep), repeatMessage(rep))
}

func repeatRule(rep exactjson.Repeat) string {
	if rep.CaseTwin {
		return "case-twin"
	}
	return "repeated-key"
}

func repeatMessage(rep exactjson.Repeat) string {
	if rep.CaseTwin {
		return fmt.Sprintf("the key %q differs from an earlier one only in case", rep.Key)
	}
	return fmt.Sprintf("the key %q stands here a second time", rep.Key)
}

package form

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"skald-connectors/keystore"
	"skald-connectors/manifest"
)

// An entry is one question with its state, whatever draws it.
type entry struct {
	q       Question
	home    string
	options []Option // not nil: one of these is chosen, nothing is typed
	many    bool     // any number of the options is chosen
	picked  []string // their values

	buf   string // what is being typed; a secret's is never shown
	value string // accepted by submit
	kept  bool
	said  string // a fact about the accepted value: "read 40 lines from key.pem"

	asked string // the text whose notes were shown; the same text again accepts them
	same  *entry // the answer must equal that one's
	want  string // the answer must be this text, or empty
	must  bool   // an empty answer is refused even though Field does not say required
}

// newEntry prepares a question: type, prefill and choices.
func newEntry(q Question, home string) *entry {
	e := &entry{q: q, home: home}
	start := q.Current.Reveal()
	if start == "" && !q.Field.Secret && !q.Kept {
		start = q.Field.Default
	}
	switch q.Field.Type {
	case "boolean":
		e.options = []Option{{"true", "Yes"}, {"false", "No"}}
	case "choice":
		for _, c := range q.Field.Choices {
			e.options = append(e.options, Option{c, Clean(c)})
		}
	}
	if e.options != nil {
		if !q.Field.Required && q.Field.Default == "" {
			e.options = append(e.options, Option{"", "(leave empty)"})
		}
		e.value = start
		return e
	}
	if !q.Field.Secret {
		e.buf = start
	}
	return e
}

func choiceEntry(title string, options []Option) *entry {
	e := &entry{q: Question{Field: manifest.Field{Name: "choice", Label: title}}}
	for _, o := range options {
		e.options = append(e.options, Option{o.Value, Clean(o.Label)})
	}
	if len(options) > 0 {
		e.value = options[0].Value
	}
	return e
}

func passphraseEntry(label string) *entry {
	e := newEntry(Question{Field: manifest.Field{Name: label, Label: label, Secret: true}}, "")
	e.must = true
	return e
}

// multiline tells whether the answer may have several lines.
func (e *entry) multiline() bool { return e.q.Field.Type == "multiline" }

// masked tells whether what is typed must not be shown. The name of a file is no secret, once it cannot be anything else.
func (e *entry) masked() bool { return e.q.Field.Secret && !e.namesFile(e.buf) }

// namesFile tells whether text is an @path that begins like a path, so that it may be shown while it is typed.
func (e *entry) namesFile(text string) bool {
	if !e.multiline() || strings.Contains(text, "\n") {
		return false
	}
	for _, p := range []string{"@/", "@~/", "@./", "@../"} {
		if strings.HasPrefix(text, p) || strings.HasPrefix(p, text) && text != "" {
			return true
		}
	}
	return false
}

// earlier tells whether an empty answer stands for a value given before, and how to say so.
func (e *entry) earlier() (string, bool) {
	switch {
	case e.q.Field.Secret && !e.q.Current.IsZero():
		return "entered before, " + measure(e.q.Current.Reveal(), e.multiline()), true
	case e.q.Kept && (e.q.Field.Secret || e.q.Current.IsZero()):
		return "kept", true
	}
	return "", false
}

// submit judges text as the answer. problem is what is wrong with it, to be said under the field; when there is none,
// notes are things to ask about: the same text once more accepts them. With neither, the answer stands.
func (e *entry) submit(text string) (problem string, notes []string) {
	e.said, e.kept = "", false
	if _, ok := e.earlier(); ok && text == "" {
		e.kept = e.q.Current.IsZero()
		e.value = e.q.Current.Reveal()
		return "", nil
	}
	value, err := e.load(text)
	if err != nil {
		return err.Error(), nil
	}
	clean, notes, err := e.check(value)
	if err != nil {
		return Clean(err.Error()), nil
	}
	if len(notes) > 0 && e.asked != text {
		e.asked = text
		return "", notes
	}
	e.value = clean
	return "", nil
}

// load replaces an @path by the file's content.
func (e *entry) load(text string) (string, error) {
	if !e.multiline() || !strings.HasPrefix(text, "@") || strings.ContainsAny(strings.TrimRight(text, "\r\n"), "\r\n") {
		return text, nil
	}
	path := strings.TrimRight(text[1:], "\r\n")
	content, err := readFile(path, e.home)
	if err != nil {
		return "", err
	}
	e.said = fmt.Sprintf("read %s from %s", measure(content, true), Clean(path))
	return content, nil
}

// check applies the field's own rules and those of this package.
func (e *entry) check(text string) (clean string, notes []string, err error) {
	if !e.multiline() && strings.ContainsAny(strings.TrimRight(text, "\r\n"), "\r\n") {
		return "", nil, fmt.Errorf("this is %s; the field takes one line", measure(text, true))
	}
	if e.must && text == "" {
		return "", nil, errors.New("it cannot be empty")
	}
	if e.want != "" && text != "" && strings.TrimSpace(text) != e.want {
		return "", nil, fmt.Errorf("that is not %q", e.want)
	}
	if e.same != nil && text != e.same.value {
		return "", nil, errors.New("the two are not the same")
	}
	if e.must || e.want != "" {
		return text, nil, nil // not a connector's value: its rules do not apply
	}
	clean, notes, err = e.q.Field.Check(text)
	if err != nil {
		return "", nil, err
	}
	for i := range notes {
		notes[i] = Clean(notes[i])
	}
	return clean, notes, nil
}

// choose accepts one of the options.
func (e *entry) choose(value string) { e.value = value }

// answer is the accepted answer.
func (e *entry) answer() Answer {
	if e.kept {
		return Answer{Kept: true}
	}
	return Answer{Value: keystore.NewSecret(e.value)}
}

// label is the line that names the field.
func (e *entry) label() string {
	f := e.q.Field
	label := f.Label
	if label == "" {
		label = f.Name
	}
	return Clean(label)
}

// help is what stands under the label: description, where to get it, and how a file is given.
func (e *entry) help() string {
	f := e.q.Field
	var lines []string
	if f.Description != "" {
		lines = append(lines, cleanText(f.Description))
	}
	if f.HelpURL != "" {
		lines = append(lines, Clean(f.HelpURL))
	}
	if e.multiline() {
		lines = append(lines, "Paste it, or name a file: @/path/to/file")
	}
	return strings.Join(lines, "\n")
}

// placeholder is shown while nothing is typed, and says more while the field has the keys. The example of a secret field
// is a placeholder like any other.
func (e *entry) placeholder(focused bool) string {
	if text, ok := e.earlier(); ok {
		if !focused {
			return text
		}
		return text + "; Enter keeps it, typing replaces it"
	}
	if e.q.Field.Example != "" && focused {
		return "such as " + Clean(e.q.Field.Example)
	}
	if !e.q.Field.Required && !e.must && e.want == "" {
		return "optional"
	}
	return ""
}

// measure says how long a value is and nothing else about it.
func measure(s string, lines bool) string {
	chars := plural(utf8.RuneCountInString(s), "character")
	if !lines {
		return chars
	}
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return plural(n, "line") + ", " + chars
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Package form is the only package that talks to a person: it asks for the fields of a connector, for consent, for a
// choice and for a passphrase, on a terminal that it is given.
//
// Its rules (spec format.md 4, cli.md "The main job" step 5):
//   - A secret is masked: its length is said, its characters never reach the output, in no mode and on no way out.
//   - What is pasted is kept byte for byte or refused; nothing is eaten. A line end inside a paste never submits.
//   - The terminal is left as it was found on every way out: an answer, Ctrl-C, Esc, a signal, a cancelled context, a
//     panic, a suspension. Nothing of the form stays in the scrollback but the question and its answer in one line.
//   - Text that comes from a connector goes through Clean before it is shown.
//
// The fields and their order are huh's (groups, focus, Back); the loop that reads keys and draws is ours, because it
// must ask the terminal nothing: an answer to a query that comes late would land in a field, or in the shell.
// A terminal that cannot move its cursor, or is too small, gets plain line prompts with the same rules.
//
// It never stores a value, logs one, reads the environment, or starts a program.
package form

import (
	"context"
	"errors"
	"os"
	"strings"

	"golang.org/x/term"

	"skald-connectors/keystore"
	"skald-connectors/manifest"
)

// ErrAborted says that the person left the question with Ctrl-C or Esc, or that a signal asked the program to end.
// Callers branch on it (exit 130).
var ErrAborted = errors.New("aborted")

// ErrNoTerminal says that one of the two files is no terminal, so that nothing can be asked.
var ErrNoTerminal = errors.New("no terminal to ask on")

// A Terminal asks questions on a pair of terminal files. It is used by one goroutine at a time.
type Terminal struct {
	In, Out *os.File // both are terminals; Out is never a file that carries data
	Plain   bool     // line prompts only: no cursor movement, no redrawing
	Color   bool     // colours may be used; bold and inverse are used in any case
	Home    string   // what "~/" in an @path means; "" = such a path is refused

	bracketed bool   // the terminal may be asked to mark pastes; a dumb one may not
	unread    []byte // input that came after the last answer: the start of the next one
}

// Options is what the caller knows about the terminal.
type Options struct {
	Term       string // the terminal's type; "" and "dumb" mean line prompts
	Accessible bool   // a screen reader is in use: line prompts
	Color      bool
	Home       string // the person's home folder
}

// Open prepares a terminal and writes nothing. The error is ErrNoTerminal.
func Open(in, out *os.File, o Options) (*Terminal, error) {
	if in == nil || out == nil || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil, ErrNoTerminal
	}
	dumb := o.Term == "" || o.Term == "dumb"
	return &Terminal{In: in, Out: out, Plain: dumb || o.Accessible, Color: o.Color, Home: o.Home, bracketed: !dumb}, nil
}

// A Question is one field of a form.
type Question struct {
	Field   manifest.Field
	Current keystore.Secret // prefill; that of a secret field is never shown, only its length
	Kept    bool            // a stored value exists, and an empty answer keeps it
	Problem string          // why the field is asked again; shown under it
}

// An Answer is the value of one field, checked by manifest.Field.Check.
type Answer struct {
	Value keystore.Secret
	Kept  bool // the stored value stays; Value is empty
}

// An Option is one choice. Value is what Choose returns.
type Option struct{ Value, Label string }

// Fill asks for the questions in order and returns the answers by field name. Back leads to the question before.
// The error is ErrAborted, the context's cause, or one of reading and writing the terminal.
func (t *Terminal) Fill(ctx context.Context, title string, qs []Question) (map[string]Answer, error) {
	if len(qs) == 0 {
		return map[string]Answer{}, nil
	}
	entries := make([]*entry, len(qs))
	for i, q := range qs {
		entries[i] = newEntry(q, t.Home)
	}
	if err := t.ask(ctx, title, entries); err != nil {
		return nil, err
	}
	answers := make(map[string]Answer, len(entries))
	for _, e := range entries {
		answers[e.q.Field.Name] = e.answer()
	}
	return answers, nil
}

// Confirm prints body, which stays on the screen as what was agreed to, and asks for a yes or no. No stands preselected.
func (t *Terminal) Confirm(ctx context.Context, title, body, affirm, deny string) (bool, error) {
	e := choiceEntry(title, []Option{{"no", deny}, {"yes", affirm}})
	if err := t.askOne(ctx, title, body, e); err != nil {
		return false, err
	}
	return e.value == "yes", nil
}

// Choose asks for one of the options; the first stands preselected.
func (t *Terminal) Choose(ctx context.Context, title string, options []Option) (string, error) {
	e := choiceEntry(title, options)
	if err := t.askOne(ctx, title, "", e); err != nil {
		return "", err
	}
	return e.value, nil
}

// Passphrase asks for a passphrase, twice when it is a new one (confirm). An empty one is refused.
func (t *Terminal) Passphrase(ctx context.Context, title string, confirm bool) (keystore.Secret, error) {
	first := passphraseEntry("Passphrase")
	entries := []*entry{first}
	if confirm {
		again := passphraseEntry("The same again")
		again.same = first
		entries = append(entries, again)
	}
	if err := t.ask(ctx, title, entries); err != nil {
		return keystore.Secret{}, err
	}
	return keystore.NewSecret(first.value), nil
}

// Type asks the person to type want, and says whether they did. An empty answer is a no; anything else asks again.
func (t *Terminal) Type(ctx context.Context, title, want string) (bool, error) {
	e := newEntry(Question{Field: manifest.Field{Name: "typed", Label: "Type " + Clean(want) + " to go on, or nothing to stop"}}, t.Home)
	e.want = want
	if err := t.ask(ctx, title, []*entry{e}); err != nil {
		return false, err
	}
	return strings.TrimSpace(e.value) == want, nil
}

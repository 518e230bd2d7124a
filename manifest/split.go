package manifest

import (
	"errors"
	"fmt"
	"strings"
)

// SplitCommand splits a command line into words by the rules of the POSIX
// shell for quotes and backslashes. Nothing is expanded, and what only a shell
// could do (pipes, redirections, variables, substitutions, assignments) is
// refused, because no shell will see it. Tokens stay in the words.
func SplitCommand(s string) ([]string, error) {
	w := &splitter{s: s}
	for w.pos < len(s) {
		if err := w.next(); err != nil {
			return nil, fmt.Errorf("splitting a command: %w", err)
		}
	}
	w.endWord()
	if len(w.words) == 0 {
		return nil, errors.New("splitting a command: it is empty")
	}
	if name, _, ok := strings.Cut(w.words[0], "="); ok && envNameShape(name) == nil {
		return nil, fmt.Errorf("splitting a command: it begins with an assignment to %q", name)
	}
	return w.words, nil
}

type splitter struct {
	s      string
	pos    int
	word   strings.Builder
	inWord bool
	words  []string
}

func (w *splitter) endWord() {
	if w.inWord {
		w.words = append(w.words, w.word.String())
		w.word.Reset()
		w.inWord = false
	}
}

func (w *splitter) put(c byte) {
	w.word.WriteByte(c)
	w.inWord = true
}

func (w *splitter) next() error {
	c := w.s[w.pos]
	w.pos++
	switch c {
	case ' ', '\t':
		w.endWord()
	case '\n', '\r':
		w.endWord()
		if len(w.words) > 0 && strings.TrimSpace(w.s[w.pos:]) != "" {
			return errors.New("it has more than one line")
		}
	case '\'':
		return w.single()
	case '"':
		return w.double()
	case '\\':
		return w.backslash()
	case '#':
		if !w.inWord {
			return errors.New("it holds a comment")
		}
		w.put(c)
	case '|', '&', ';', '<', '>', '(', ')', '`', '$':
		return fmt.Errorf("it holds %q, which only a shell understands", string(c))
	default:
		w.put(c)
	}
	return nil
}

func (w *splitter) backslash() error {
	if w.pos >= len(w.s) {
		return errors.New("it ends in a backslash")
	}
	c := w.s[w.pos]
	w.pos++
	if c != '\n' { // a backslash before a line end joins the lines
		w.put(c)
	}
	return nil
}

func (w *splitter) single() error {
	n := strings.IndexByte(w.s[w.pos:], '\'')
	if n < 0 {
		return errors.New("a single quote is not closed")
	}
	w.word.WriteString(w.s[w.pos : w.pos+n])
	w.inWord = true
	w.pos += n + 1
	return nil
}

func (w *splitter) double() error {
	w.inWord = true
	for w.pos < len(w.s) {
		c := w.s[w.pos]
		w.pos++
		switch {
		case c == '"':
			return nil
		case c == '$' || c == '`':
			return fmt.Errorf("it holds %q, which only a shell understands", string(c))
		case c == '\\' && w.pos < len(w.s) && strings.IndexByte("$`\"\\\n", w.s[w.pos]) >= 0:
			if err := w.backslash(); err != nil {
				return err
			}
		default:
			w.word.WriteByte(c)
		}
	}
	return errors.New("a double quote is not closed")
}

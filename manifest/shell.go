package manifest

import (
	"runtime"
	"strconv"
	"strings"
)

// ShellCommand prepares verify.command for "sh -c". Each {ENV:} and {SECRET:}
// token becomes the expansion of a variable, written for the quoting state at
// its place, so that the value arrives as data whatever it holds; refs say
// which variable (Var) must carry which token. Two tokens of one name share a
// variable. The caller puts the values into the environment, never into the
// script.
//
// Bare, inside double quotes and inside single quotes are the places that are
// known to be safe, also within "$(...)". Others are refused with a
// *TokenPlaceError: here-documents, comments, backquotes, arithmetic, parameter
// expansions, behind a backslash, the name of a command, and the program text of
// eval, of another shell or of an interpreter (sh -c, python3 -c, node -e), where
// the value would be read as code once more. Programs of sed and awk are not
// recognised. On Windows every token is refused.
func ShellCommand(cmd string) (script string, refs []TokenRef, err error) {
	return shellCommand(cmd, runtime.GOOS)
}

func shellCommand(cmd, goos string) (string, []TokenRef, error) {
	s := &shellScan{s: cmd, vars: map[[2]string]string{}}
	for _, ref := range Tokens(cmd) {
		if ref.live() {
			s.refs = append(s.refs, ref)
		}
	}
	if len(s.refs) == 0 {
		return cmd, nil, nil
	}
	if goos == "windows" {
		return "", nil, s.refuse("a command for the Windows shell")
	}
	s.push(frameCommand, 0)
	for s.pos < len(cmd) && s.next < len(s.refs) {
		if err := s.step(); err != nil {
			return "", nil, err
		}
	}
	s.out.WriteString(cmd[s.copied:])
	return s.out.String(), s.refs, nil
}

type frameKind uint8

const (
	frameCommand    frameKind = iota // top level, or inside $( )
	frameDouble                      // inside double quotes
	frameArithmetic                  // inside $(( ))
)

// frame is one level of quoting or substitution.
type frame struct {
	kind   frameKind
	parens int      // open parentheses that end the frame when closed; 0 at the top
	words  []string // of the simple command so far
	from   int      // start of the word that is being read, -1 between words
}

type shellScan struct {
	s      string
	pos    int
	frames []frame
	refs   []TokenRef
	next   int // the first of refs that has not been passed
	vars   map[[2]string]string
	out    strings.Builder
	copied int // how much of s is in out
}

func (s *shellScan) push(kind frameKind, parens int) {
	s.frames = append(s.frames, frame{kind: kind, parens: parens, from: -1})
}

func (s *shellScan) top() *frame { return &s.frames[len(s.frames)-1] }

// refuse names the next token and the place.
func (s *shellScan) refuse(place string) error {
	ref := s.refs[s.next]
	return &TokenPlaceError{Token: s.s[ref.Start:ref.End], Place: place}
}

// tokenAt tells whether the next token begins at off.
func (s *shellScan) tokenAt(off int) bool { return s.next < len(s.refs) && s.refs[s.next].Start == off }

// tokenBefore tells whether the next token begins before off.
func (s *shellScan) tokenBefore(off int) bool {
	return s.next < len(s.refs) && s.refs[s.next].Start < off
}

// step reads one character or one construct.
func (s *shellScan) step() error {
	f := s.top()
	if s.tokenAt(s.pos) {
		switch f.kind {
		case frameDouble:
			return s.token("${", "}")
		case frameArithmetic:
			return s.refuse("an arithmetic expansion")
		}
		s.beginWord()
		return s.token(`"$`, `"`)
	}
	switch c := s.s[s.pos]; c {
	case '\\':
		return s.backslash()
	case '$':
		return s.dollar()
	case '`':
		return s.backquotes()
	case '"':
		if f.kind == frameDouble {
			s.frames = s.frames[:len(s.frames)-1]
		} else {
			s.beginWord()
			s.push(frameDouble, 0)
		}
		s.pos++
		return nil
	default:
		if f.kind == frameDouble {
			s.pos++
			return nil
		}
		return s.bare(c)
	}
}

// token writes the expansion of the next token.
func (s *shellScan) token(before, after string) error {
	ref := &s.refs[s.next]
	for _, f := range s.frames {
		if isProgramText(f.words) {
			return s.refuse("the program text of another interpreter")
		}
		if f.from >= 0 && isCommandName(f.words, s.s[f.from:ref.Start]) {
			return s.refuse("the name of a command")
		}
	}
	name := [2]string{ref.Kind, ref.Name}
	if s.vars[name] == "" {
		s.vars[name] = "SKALD_TOKEN_" + strconv.Itoa(len(s.vars)+1)
	}
	ref.Var = s.vars[name]
	s.out.WriteString(s.s[s.copied:ref.Start] + before + ref.Var + after)
	s.pos, s.copied = ref.End, ref.End
	s.next++
	return nil
}

func (s *shellScan) beginWord() {
	if f := s.top(); f.from < 0 {
		f.from = s.pos
	}
}

// endWord puts the word that ends here to the words of its command.
func (s *shellScan) endWord() error {
	f := s.top()
	if f.from < 0 {
		return nil
	}
	word := s.s[f.from:s.pos]
	f.from = -1
	f.words = append(f.words, word)
	if word == "case" && len(s.frames) > 1 {
		// The patterns of a case end in parentheses that nothing opened.
		return s.refuse("or behind a case inside a substitution")
	}
	return nil
}

// bare reads a character outside double quotes.
func (s *shellScan) bare(c byte) error {
	f := s.top()
	switch c {
	case ' ', '\t':
		s.pos++
		return s.endWordAt(s.pos - 1)
	case '\n', ';', '&', '|':
		s.pos++
		err := s.endWordAt(s.pos - 1)
		s.top().words = nil
		return err
	case '<', '>':
		return s.redirection(c)
	case '(', ')':
		return s.paren(c)
	case '\'':
		return s.single()
	case '#':
		if f.from < 0 && f.kind == frameCommand {
			return s.comment()
		}
	}
	s.beginWord()
	s.pos++
	return nil
}

// endWordAt ends the word before off, which is behind already.
func (s *shellScan) endWordAt(off int) error {
	pos := s.pos
	s.pos = off
	err := s.endWord()
	s.pos = pos
	return err
}

func (s *shellScan) redirection(c byte) error {
	if c == '<' && s.top().kind == frameCommand && strings.HasPrefix(s.s[s.pos:], "<<") {
		return s.refuse("or behind a here-document")
	}
	err := s.endWord()
	s.pos++
	return err
}

func (s *shellScan) paren(c byte) error {
	if err := s.endWord(); err != nil {
		return err
	}
	f := s.top()
	f.words = nil
	s.pos++
	if f.parens == 0 {
		return nil
	}
	if c == '(' {
		f.parens++
	} else if f.parens--; f.parens == 0 {
		s.frames = s.frames[:len(s.frames)-1]
	}
	return nil
}

func (s *shellScan) comment() error {
	end := strings.IndexByte(s.s[s.pos:], '\n')
	if end < 0 {
		end = len(s.s) - s.pos
	}
	if s.tokenBefore(s.pos + end) {
		return s.refuse("a comment")
	}
	s.pos += end
	return nil
}

// single reads a string in single quotes; a token closes and reopens it.
func (s *shellScan) single() error {
	s.beginWord()
	n := strings.IndexByte(s.s[s.pos+1:], '\'')
	if n < 0 {
		return s.unfinished()
	}
	end := s.pos + 1 + n
	for s.tokenBefore(end) {
		if s.top().kind == frameArithmetic {
			return s.refuse("an arithmetic expansion")
		}
		if err := s.token(`'"$`, `"'`); err != nil {
			return err
		}
	}
	s.pos = end + 1
	return nil
}

func (s *shellScan) unfinished() error {
	return s.refuse("or behind a quote that is not closed")
}

func (s *shellScan) backslash() error {
	if s.tokenAt(s.pos + 1) {
		return s.refuse("a place behind a backslash")
	}
	if s.top().kind != frameDouble {
		s.beginWord()
	}
	s.pos = min(s.pos+2, len(s.s))
	return nil
}

// dollar reads what a dollar sign begins, up to where the state is known again.
func (s *shellScan) dollar() error {
	f := s.top()
	if f.kind != frameDouble {
		s.beginWord()
	}
	rest := s.s[s.pos+1:]
	switch {
	case s.tokenAt(s.pos + 1):
		return s.refuse("a parameter expansion")
	case strings.HasPrefix(rest, "(("):
		s.push(frameArithmetic, 2)
		s.pos += 3
	case strings.HasPrefix(rest, "("):
		s.push(frameCommand, 1)
		s.pos += 2
	case strings.HasPrefix(rest, "{"):
		end := strings.IndexByte(rest, '}')
		if end < 0 || s.tokenBefore(s.pos+1+end) || strings.ContainsAny(rest[1:end], "'\"\\$`{") {
			return s.refuse("or behind a parameter expansion that is not plain")
		}
		s.pos += end + 2
	case strings.HasPrefix(rest, "'") && f.kind != frameDouble:
		return s.refuse("or behind a string in $'...'")
	case rest != "" && strings.IndexByte("#$!?@*-", rest[0]) >= 0:
		s.pos += 2
	default:
		s.pos++
	}
	return nil
}

func (s *shellScan) backquotes() error {
	if s.top().kind != frameDouble {
		s.beginWord()
	}
	end := s.pos + 1
	for end < len(s.s) && s.s[end] != '`' {
		if s.s[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(s.s) || s.tokenBefore(end) || strings.ContainsAny(s.s[s.pos+1:end], `'"\`) {
		return s.refuse("or behind backquotes")
	}
	s.pos = end + 1
	return nil
}

package manifest

import "errors"

var errStub = errors.New("not implemented")

func ParseIndex(src []byte, signed bool) (*Index, []Diagnostic, error) { return nil, nil, errStub }

func ParseEntry(src []byte) (Entry, []Diagnostic) { return Entry{Broken: "not implemented"}, nil }

func ParseManifest(src []byte, file string) (*Manifest, []Diagnostic, error) {
	return nil, nil, errStub
}

// Agree compares; it also fills in what m leaves to the index.
func Agree(e Entry, m *Manifest) ([]Diagnostic, error) { return nil, nil }

func ValidID(id string) error        { return errStub }
func ValidPath(p string) error       { return errStub }
func ValidPaths(files []File) error  { return errStub }
func ValidEnvName(name string) error { return errStub }
func ValidURL(raw string) error      { return errStub }

// Check cleans a typed value.
func (f Field) Check(value string) (clean string, notes []string, err error) { return value, nil, nil }

// Doc gives the text for lang, else English, else the first.
func (m *Manifest) Doc(lang string) Doc { return Doc{} }

// Fields are the declared fields and the key field made from auth.param.
func (m *Manifest) Fields() []Field { return m.Env }

// KeyField is the field that holds the API key.
func (m *Manifest) KeyField() (Field, bool) { return Field{}, false }

// Unsupported names what this program cannot do ("" = all supported).
func (a Auth) Unsupported() string { return "" }

// Pin gives the pin of path.
func (e Entry) Pin(path string) (File, bool) { return File{}, false }

// Lookup gives the value of a token; kind is "ENV" or "SECRET".
type Lookup func(kind, name string) (value string, declared bool)

// Encoding says how a value is written into its place.
type Encoding uint8

// The encodings.
const (
	Plain Encoding = iota
	URLPath
	URLQuery
)

// TokenRef is one token in a text.
type TokenRef struct {
	Kind, Name string // ENV or SECRET; KEY, env, secrets for deprecated forms
	Start, End int    // byte range in the text
	Deprecated bool
	Var        string // set by ShellCommand: the variable that carries the value
}

// TokenPlaceError means that a token stands where no value may go.
type TokenPlaceError struct{ Token, Place string }

func (e *TokenPlaceError) Error() string { return e.Token + " in " + e.Place }

func Expand(s string, look Lookup, enc Encoding) (out string, undeclared []string) { return s, nil }

// ExpandURL picks the encoding by place; err is a *TokenPlaceError.
func ExpandURL(s string, look Lookup) (out string, undeclared []string, err error) {
	return s, nil, nil
}

func ShellCommand(cmd string) (script string, refs []TokenRef, err error) { return cmd, nil, nil }
func Tokens(s string) []TokenRef                                          { return nil }
func SplitCommand(s string) ([]string, error)                             { return nil, errStub }
func RuntimeRange(m *Manifest, runtime string) string                     { return "" }
func DisplayVersion(e Entry) string                                       { return "" }
func CompareDisplay(a, b string) int                                      { return 0 }

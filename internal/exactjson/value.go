// Package exactjson reads JSON documents that decide something. Its one job is
// to hand out what the bytes say and nothing else: keys are case-sensitive,
// repeated keys and keys that differ only in case are reported, every value
// keeps its byte range in the source, numbers keep their text (RFC 8259).
//
// It never writes JSON, never guesses a type, never drops a member, and never
// recurses deeper than the caller allows.
package exactjson

// Kind is the type of a JSON value.
type Kind uint8

// The kinds of a JSON value. The zero Value is a null.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String names the kind as it is said in messages: "a string", "an object".
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "a boolean"
	case Number:
		return "a number"
	case String:
		return "a string"
	case Array:
		return "an array"
	case Object:
		return "an object"
	}
	return "an unknown kind"
}

// Value is one JSON value with its place in the source.
type Value struct {
	Kind Kind
	// Start and End are the byte range of the value in the source given to
	// Parse, the byte order mark counted.
	Start, End int
	// Str is the decoded text of a String, and the source text of a Number
	// or a Bool. It is empty for the other kinds.
	Str string
	// Members are those of an Object, in document order, repeats included.
	Members []Member
	// Items are those of an Array.
	Items []Value
}

// Member is one key and value of an object. KeyStart is the offset of the
// opening quote of the key.
type Member struct {
	Key      string
	KeyStart int
	Value    Value
}

// Get returns the first member with exactly this key. An object with repeated
// keys has been reported by Parse; Get never takes a later one.
func (v Value) Get(key string) (Value, bool) {
	for i := range v.Members {
		if v.Members[i].Key == key {
			return v.Members[i].Value, true
		}
	}
	return Value{}, false
}

// Repeat is a key that stands twice in one object. First and Second are the
// offsets of the two keys; CaseTwin says that they differ in case only. Path
// names the second member (connectors[3].auth.Type), Key is its spelling.
type Repeat struct {
	Path          string
	Key           string
	First, Second int
	CaseTwin      bool
}

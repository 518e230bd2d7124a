// Package manifest owns the two documents of a marketplace, the index
// (connectors.json) and the manifest (connector.json), and the token grammar
// that fills a manifest with a person's values. Its one job is to say what the
// documents mean and where they deviate: it is tolerant and loud, so one bad
// entry or field never takes another down and every deviation is a Diagnostic
// (format.md, sections 2 to 5, 7, 8 and 10).
//
// It never opens a file or a socket, never starts a process, never reads the
// environment, and never trusts a name, a path or a URL that its rules refuse.
package manifest

import "time"

// Limits of what is read. Each is far above what an honest marketplace needs
// and far below what hurts the machine that reads it (format.md, section 1).
const (
	// MaxIndexBytes holds 100,000 entries of the usual size.
	MaxIndexBytes = 128 << 20
	// MaxManifestBytes is a hundred times the largest manifest known.
	MaxManifestBytes = 1 << 20
	// MaxFileBytes bounds one shipped file: source code and icons, no data sets.
	MaxFileBytes = 8 << 20
	// MaxFiles bounds the files of one connector.
	MaxFiles = 500
	// MaxBundleBytes bounds the sum of the files of one connector.
	MaxBundleBytes = 64 << 20
)

// Version is the integer by which updates are decided. 0 means unknown, which
// is less than any known version.
type Version int64

// Index is a parsed connectors.json, entries in document order.
type Index struct {
	Version int // of the format; 0 when absent
	Entries []Entry
}

// Entry is one connector of the index.
type Entry struct {
	// ID has passed ValidID unless Broken says otherwise; the id of a broken
	// entry is what the document holds, for display only.
	ID string
	// Folder is the entry's folder below the base, "/"-separated; the id when
	// the document names none.
	Folder            string
	Name, Description string
	Tags, Requires    []string
	Homepage          string
	// Type is mcp_local, mcp_remote or script. An unknown or missing type
	// reads as mcp_local, the one that demands more.
	Type string
	// Scope is user or global.
	Scope                string
	IconSmall, IconLarge string
	Version              Version
	// VersionString and ReleaseDate are for display and are never compared.
	VersionString, ReleaseDate string
	SeedSince                  int64 // seed version that added the entry; 0 = not seeded
	// Auth is nil when the entry does not repeat it.
	Auth  *Auth
	Tools []Tool
	Files []File
	// Broken is the reason why the entry is listed but never installed.
	Broken string
	// Raw is the entry's source, a part of the slice that was parsed.
	Raw []byte
}

// File is the pin of one shipped file.
type File struct {
	Path   string // relative to the folder, "/"-separated, passed ValidPath
	SHA256 string // 64 lower-case hex digits
	Size   int64  // bytes; -1 when the document does not say
}

// Manifest is a parsed connector.json, legacy forms brought into one shape.
type Manifest struct {
	ID, Name, Type, Scope      string
	Version                    Version
	VersionString, ReleaseDate string
	Tags, Requires             []string
	LaunchCommand, Transport   string
	Server                     Server
	Auth                       Auth
	Env                        []Field
	Verify                     *Verify
	Tools                      []Tool
	Docs                       []Doc
	Dependencies               []string
	SetupInstructions          []string
	Homepage                   string
	IconSmall, IconLarge       string
	// Permissions is nil when the manifest does not declare any.
	Permissions *Permissions
	// LegacyFiles is files[] inside the manifest; it counts only when the
	// index pins nothing.
	LegacyFiles []File
	// Engines maps a runtime to a semver range.
	Engines map[string]string
	// Broken is the reason why the manifest is shown but never activated.
	Broken string

	given given // what the document itself says, for Agree
}

// Server says how the connector is reached: a command when local, a URL when
// remote. A launch_command has been split into Command and Args already.
type Server struct {
	Command string
	Args    []string
	Env     []EnvVar // in document order
	URL     string
	// Transport is stdio, streamable-http or sse.
	Transport string
	Headers   []EnvVar // in document order
}

// EnvVar is one name and its value, tokens unfilled.
type EnvVar struct{ Name, Value string }

// Auth says what the connector needs to sign in. Type "" means nothing; a type
// that is not known is kept, see Unsupported.
type Auth struct {
	Type, Delivery, Param, Provider string
	Scopes                          []string
	Deliver                         *Deliver
}

// Deliver says how an OAuth credential reaches the connector.
type Deliver struct {
	As     string // env or file
	Format string
	Env    string // variable, for env
	Path   string // file, for file
}

// Field is one value that a person is asked for.
type Field struct {
	Name, Label, Description string
	Required, Secret         bool
	Default, Example         string
	// Type is string, number, boolean, url, email, path, directory, choice or
	// multiline.
	Type     string
	Choices  []string
	Pattern  string // a Go regular expression that the whole value must match
	Min, Max *float64
	HelpURL  string
}

// Verify is the connector's own test of the values.
type Verify struct {
	Command string
	Timeout time.Duration
}

// Doc is the text of one language.
type Doc struct{ Lang, Description, ShortDescription string }

// Permissions is what the connector says it needs. {ENV:} tokens are left in.
type Permissions struct {
	Hosts []string // host:port, *.host:port
	// HostsDeclared tells an empty list from a silent one.
	HostsDeclared            bool
	Read, Write              []string
	Loopback, Browser, Agent bool
}

// Tool is the display name of one tool.
type Tool struct{ Name, DisplayName string }

// given tells a default from a statement of the document.
type given struct {
	scope, auth, tools bool
}

// Remote tells whether the connector is an address (mcp_remote) and not a program.
func (m *Manifest) Remote() bool { return m.Type == typeRemote }

// Remote tells whether the entry is of a connector that is an address.
func (e Entry) Remote() bool { return e.Type == typeRemote }

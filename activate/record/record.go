// Package record holds what is true of each activation: HOME/activations/NAME.json (cli.md,
// "Activation record") and HOME/tools/NAME.json, the tool definitions that were accepted.
// Renaming a record into place is the commit point of every flow. It decides nothing, never
// holds a secret value, never takes a damaged file for an absent one, and never rewrites what a
// newer program wrote.
package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"skald-connectors/install"
	"skald-connectors/install/deps"
	"skald-connectors/internal/tooldef"
	"skald-connectors/manifest"
)

// recordSchema is the newest record schema that this program writes. A record
// with a greater one was written by a newer program: it is refused, never
// rewritten.
const recordSchema = 1

// State says whether an activation may run. Only Ready runs; every other state
// parks the session.
type State string

const (
	Ready        State = "ready"        // verify passed, or was not asked for
	Pending      State = "pending"      // saved without a passing verify
	Unauthorized State = "unauthorized" // a credential is missing
	Expired      State = "expired"      // a credential ran out or was revoked
)

// Record is one activation as HOME/activations/NAME.json holds it (cli.md,
// "Activation record"). It never holds a secret value. Members that this
// program does not know are kept when the record is rewritten.
type Record struct {
	Schema        int               `json:"schema"`
	Name          string            `json:"name"`
	Connector     string            `json:"connector"`
	Version       manifest.Version  `json:"version"`
	VersionString string            `json:"version_string,omitempty"`
	Digest        string            `json:"digest"` // of the version folder, 16 hex digits
	Index         IndexRef          `json:"index"`
	Files         []FilePin         `json:"files"`
	Type          string            `json:"type"`
	Scope         string            `json:"scope"`
	Auth          AuthRef           `json:"auth"`
	AuthState     State             `json:"auth_state"`
	Vault         int64             `json:"vault"` // generation; 0 = no vault
	Env           map[string]string `json:"env"`
	Secrets       []SecretRef       `json:"secrets"`
	MCPConfig     ServerRef         `json:"mcp_config"`
	Runtimes      []Runtime         `json:"runtimes,omitempty"`
	Deps          []DepsRef         `json:"deps,omitempty"`
	Verify        VerifyRef         `json:"verify"`
	Tools         []ToolRef         `json:"tools"`
	Probe         *Probe            `json:"probe,omitempty"`
	Grant         Grant             `json:"grant"`
	Sandbox       SandboxRef        `json:"sandbox"`
	Mounts        []MountRef        `json:"mounts"`
	InstalledAt   time.Time         `json:"installed_at"`
	UpdatedAt     time.Time         `json:"updated_at"`
	// Pinned says that upgrades leave it alone.
	Pinned bool `json:"pinned,omitempty"`
	// PassOver is the version that the user went back from: an upgrade passes over it
	// and all before it; 0 = none.
	PassOver manifest.Version `json:"pass_over,omitempty"`
	// Previous is the record of the version that is kept for a rollback, without a
	// previous one of its own; see Prior.
	Previous json.RawMessage `json:"previous,omitempty"`

	extra map[string]json.RawMessage
}

// IndexRef names the index that a version came from: its location, the SHA-256
// of its bytes (64 hex digits) and its signer ("" = unsigned).
type IndexRef struct {
	URL    string `json:"url"`
	Digest string `json:"digest"`
	Signer string `json:"signer"`
	// Expired says that the index had run out, and was taken from a bundle file because the user said so.
	Expired bool `json:"expired,omitempty"`
}

// AuthRef is the manifest's auth as it was accepted.
type AuthRef struct {
	Type     string      `json:"type"`
	Provider string      `json:"provider,omitempty"`
	Delivery string      `json:"delivery,omitempty"`
	Param    string      `json:"param,omitempty"`
	Scopes   []string    `json:"scopes,omitempty"`
	Deliver  *DeliverRef `json:"deliver,omitempty"`
}

// DeliverRef is the manifest's auth.deliver as it was accepted.
type DeliverRef struct {
	As     string `json:"as"`
	Format string `json:"format"`
	Env    string `json:"env,omitempty"`
	Path   string `json:"path,omitempty"`
}

// FilePin is one shipped file: its path, SHA-256 (64 hex digits) and size in
// bytes.
type FilePin struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// ServerRef is the manifest's mcp_config as it was accepted, tokens not filled
// in. Env and Headers keep their order as pairs of name and value.
type ServerRef struct {
	Command   string      `json:"command,omitempty"`
	Args      []string    `json:"args,omitempty"`
	Env       [][2]string `json:"env,omitempty"`
	URL       string      `json:"url,omitempty"`
	Transport string      `json:"transport,omitempty"`
	Headers   [][2]string `json:"headers,omitempty"`
}

// SecretRef names one secret of the vault: the handle, the store that keeps
// the vault's key, and when the value runs out (zero = never).
type SecretRef struct {
	Name      string    `json:"name"`
	Store     string    `json:"store"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// Runtime is an interpreter as it was found at activation (format.md section 6).
type Runtime struct {
	Program string `json:"program"`
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
}

// DepsRef names one tree of dependencies, HOME/deps/<hash>: what it was made from, and
// everything that came with what fixes its bytes. Scripts says that the user allowed
// install scripts and builds from source; Ran lists the packages whose scripts ran.
type DepsRef struct {
	Ecosystem string         `json:"ecosystem"`
	Hash      string         `json:"hash"`
	When      time.Time      `json:"when"`
	From      string         `json:"from"`
	Locked    bool           `json:"locked"`
	Scripts   bool           `json:"scripts"`
	Ran       []string       `json:"ran,omitempty"`
	Packages  []deps.Package `json:"packages"`
	Start     *deps.Start    `json:"start,omitempty"`
	// Digest is what the tree has to be, over its names and bytes; "" in records of an
	// older program.
	Digest string `json:"digest,omitempty"`
}

// VerifyRef is the outcome of the last verify. Ran is false where the
// connector has none or the user skipped it; Message says which.
type VerifyRef struct {
	Ran       bool      `json:"ran"`
	OK        bool      `json:"ok"`
	Message   string    `json:"message,omitempty"`
	When      time.Time `json:"when,omitzero"`
	ElapsedMS int64     `json:"elapsed_ms,omitempty"`
}

// ToolRef is one accepted tool: the digest is that of its definition
// (launcher.md section 2), whose whole text is in HOME/tools/NAME.json.
type ToolRef struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Digest  string `json:"digest"`
	Granted bool   `json:"granted"`
}

// Probe is what a server answered when it was started once: its initialize
// result for parked sessions (launcher.md section 4), and its tools.
type Probe struct {
	ProtocolVersion string          `json:"protocol_version"`
	Capabilities    json.RawMessage `json:"capabilities,omitempty"`
	ServerInfo      json.RawMessage `json:"server_info,omitempty"`
	Instructions    string          `json:"instructions,omitempty"`

	Tools []tooldef.Tool `json:"-"`
}

// SandboxRef says what was asked for (Mode, and what the user granted and
// withheld), which back end holds it, and what is enforced, in one sentence.
// Network is "all" or hosts with ports; Paths are the user's that are open to it.
type SandboxRef struct {
	Mode     string   `json:"mode"`
	Backend  string   `json:"backend"`
	Enforced string   `json:"enforced"`
	NotHeld  []string `json:"not_held,omitempty"`
	Network  []string `json:"network,omitempty"`
	Paths    []string `json:"paths,omitempty"`
	Grants   []string `json:"grants,omitempty"`
	Withheld []string `json:"withheld,omitempty"`
}

// MountRef names one client configuration that holds our entry.
type MountRef struct {
	Client string `json:"client"`
	File   string `json:"file"`
	Digest string `json:"digest,omitempty"`
}

// Ref names the version folder of the record.
func (r *Record) Ref() install.Ref {
	return install.Ref{Connector: r.Connector, Version: r.Version, Digest: r.Digest}
}

// Secret tells whether the record names a secret handle of that name.
func (r *Record) Secret(name string) bool {
	return slices.ContainsFunc(r.Secrets, func(s SecretRef) bool { return s.Name == name })
}

type recordFields Record // without the methods, so that encoding/json does not recurse

// MarshalJSON writes the known members in their order and the kept foreign
// ones after them, by name.
func (r Record) MarshalJSON() ([]byte, error) {
	known, err := json.Marshal(recordFields(r))
	if err != nil || len(r.extra) == 0 {
		return known, err
	}
	out := known[:len(known)-1]
	for _, key := range slices.Sorted(maps.Keys(r.extra)) {
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		out = append(append(append(append(out, ','), name...), ':'), r.extra[key]...)
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads a record; the caller has already refused repeated keys
// and case twins.
func (r *Record) UnmarshalJSON(data []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	var fields recordFields
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	known := map[string]bool{}
	for f := range reflect.TypeFor[recordFields]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known[name] = true
	}
	maps.DeleteFunc(all, func(key string, _ json.RawMessage) bool { return known[key] })
	*r = Record(fields)
	r.extra = all
	return nil
}

// check refuses a record that contradicts itself or its file name: such a
// record is damaged, and a damaged record is never taken for an absent one.
func (r *Record) check(name string) error {
	switch {
	case r.Name != name:
		return fmt.Errorf("it names the activation %q", r.Name)
	case manifest.ValidID(r.Connector) != nil:
		return fmt.Errorf("connector %q is not a valid id", r.Connector)
	case !slices.Contains([]State{Ready, Pending, Unauthorized, Expired}, r.AuthState):
		return fmt.Errorf("auth_state %q is not known", r.AuthState)
	case r.Vault < 0:
		return fmt.Errorf("vault generation %d is negative", r.Vault)
	}
	if _, err := r.Prior(); err != nil {
		return err
	}
	return nil
}

// Pins gives the record's files in the shape that other packages work with.
func (r *Record) Pins() []manifest.File {
	out := make([]manifest.File, len(r.Files))
	for i, f := range r.Files {
		out[i] = manifest.File(f)
	}
	return out
}

// Remote tells whether the connector is an address (mcp_remote) and not a program.
func (r *Record) Remote() bool { return (&manifest.Manifest{Type: r.Type}).Remote() }

// Package sandbox is the only way this program starts a process: a Policy
// becomes a running command or a refusal (format.md 6 and 8, launcher.md 5,
// security.md 3).
//
// Its law. A process never sees more than it is given: its environment, its
// working folder and its three streams are exactly those of the Command, with
// no descriptor and no terminal besides. A process never outlives its purpose:
// every end climbs a ladder of bounded steps and takes the whole tree along.
// Never: a shell, an inherited environment, a wait without an end, a signal to
// our own group, a policy that is weakened without saying so.
//
// Today there is one back end, the plain start. It takes care of processes and
// limits and enforces nothing else; Enforced says so.
//
// What a plain start cannot hold:
//   - Linux: a process that hides on purpose (tree_linux.go says how the tree is
//     found); when this program is killed by SIGKILL only the started process is
//     sure to die with it, a grandchild is not.
//   - macOS: a process that left the group (setsid) is not found; nothing dies
//     with this program; limits are not set.
//   - Windows: the polite step of the ladder does not exist; of the limits only
//     those on memory, processes and CPU time are set.
package sandbox

import (
	"net"
	"time"
)

// Mode names how a process is confined.
type Mode string

const (
	// Auto takes the strongest back end that works on this machine.
	Auto Mode = "auto"
	// Combined is Bubblewrap and Landlock together (Linux).
	Combined Mode = "bubblewrap+landlock"
	// Bubblewrap gives namespaces of its own: files, processes, network (Linux).
	Bubblewrap Mode = "bubblewrap"
	// Landlock restricts files by the kernel alone, with no helper program (Linux).
	Landlock Mode = "landlock"
	// SandboxExec is the system's own profile language (macOS).
	SandboxExec Mode = "sandbox-exec"
	// Job is a job object and a restricted token (Windows).
	Job Mode = "job"
	// Container runs in a container of the person's, by docker or podman.
	Container Mode = "container"
	// None starts the process plainly, because the user said so.
	None Mode = "none"
)

// Policy says what a process may do. It is what is wanted, not what holds: a
// back end turns it into a command or into an *UnenforceableError, and
// Sandbox.Enforced tells what is left of it. The zero value grants nothing.
type Policy struct {
	// Own are absolute paths that belong to the process: its folder and its state.
	// It may read and write them; they are none of the person's files.
	Own []string
	// Shared are absolute paths of this program that the process may read, such as
	// its dependencies; they are none of the person's files either.
	Shared []string
	// Programs are absolute paths of programs that it may start besides that of its
	// command, such as the interpreter that a shell command names: what they are
	// installed with is shown to it.
	Programs []string
	// Read and Write are absolute paths of the person's files and folders; a
	// writable path is readable too.
	Read, Write []string
	// Hidden are absolute paths that no path of Read and Write may be in or reach
	// around: where this program keeps secrets and other connectors. Mode None does
	// not hold it.
	Hidden  []string
	Network Network
	// Loopback grants the machine's own loopback addresses. Where the network is
	// filtered, those are the ports that Hosts names as "localhost:port".
	Loopback bool
	// Browser grants what a browser needs to confine its own pages: namespaces
	// of its own and shared memory.
	Browser bool
	// Agent is the path of the one Unix socket that may be used, of an SSH agent;
	// "" grants none.
	Agent  string
	Limits Limits
}

// Network says whom a process may talk to. The zero value is nobody.
type Network struct {
	// All grants everything but link-local and metadata addresses.
	All bool
	// Hosts are "host:port" pairs, with "*." in front for any name below, or an
	// address or range in CIDR form for the host. A name under a public domain that
	// leads to a private address is refused unless that address is in Hosts too.
	// With All only those of this machine matter: these ports of it are open.
	Hosts []string
}

// Limits bounds what a process may use. Zero means the default named at the
// field, or for a resource the limit that this program has itself; a resource
// limit is only ever lowered. Core dumps are always off.
type Limits struct {
	// Wall is the time to live. Default for Run: 2 minutes; for Start: none.
	Wall time.Duration
	// Grace is the time between TERM and KILL at the wall limit, at a cancelled
	// context and for what is left when the process has ended. Default 2 seconds.
	Grace time.Duration
	// Stdout and Stderr are the bytes that Run keeps of each stream: the last
	// ones, since results and errors stand at the end. The rest is read and
	// dropped. Defaults 1 MiB and 64 KiB; negative keeps nothing.
	Stdout, Stderr int64

	Memory    int64         // bytes of data a process may hold (RLIMIT_DATA)
	FileSize  int64         // bytes a file may grow to
	Files     int64         // open files a process
	Processes int64         // processes of this user; does not bind root
	CPU       time.Duration // processor time a process, rounded up to seconds
	// Disk bounds each private folder (home, temporary files); default 256 MiB.
	// Folders that outlive the process are not bounded, only each file in them.
	Disk int64
}

// Command is what to start.
type Command struct {
	// Argv is the program and its arguments; no shell reads them. A program
	// without a slash is looked up with LookPath in the PATH of Env.
	Argv []string
	// Dir is the working folder, absolute.
	Dir string
	// Env is the whole environment, "NAME=value" each, in this order.
	Env []string
}

// Result is how a process ended.
type Result struct {
	// Code is the exit status, -1 when a signal ended the process.
	Code int
	// Signal is the name of the signal that ended it ("SIGKILL"), or "".
	Signal string
	// Stdout and Stderr are the last bytes of each stream (Run only); where
	// StdoutCut or StderrCut is set, earlier ones were dropped and the first line
	// may be half a line.
	Stdout, Stderr       []byte
	StdoutCut, StderrCut bool
	// TimedOut tells that the process was still running at Limits.Wall.
	TimedOut bool
	// Elapsed is the time from the start until everything was over.
	Elapsed time.Duration
	// Left counts processes of the tree that could not be ended.
	Left int
	// Denied lists what was refused, as far as it is known, each once.
	Denied []Denial
}

// Denial is one thing that a process asked for and was refused.
type Denial struct {
	Kind   DenialKind
	Target string // "host:port", or the path of a file
	Why    string // the cause in plain words
}

// DenialKind is what kind of thing was refused.
type DenialKind string

const (
	DeniedNetwork DenialKind = "network"
	DeniedFile    DenialKind = "file"
)

// Enforcement is what holds on this machine for one policy.
type Enforcement struct {
	// Mode is the back end that is used, never Auto.
	Mode Mode
	// Sentence says in plain words what is enforced.
	Sentence string
	// NotHeld lists, in plain words, what the policy asks for and does not get.
	NotHeld []string
}

// Ladder holds the waits of Process.Close: after standard input was closed, and
// after TERM. A step with no wait is passed at once.
type Ladder struct {
	Stdin time.Duration
	Term  time.Duration
}

// Sandbox starts processes with one back end. It may be used by several
// goroutines.
type Sandbox struct {
	mode        Mode
	self, bwrap string // absolute paths, "" when there is none
	dir, path   string
	image, user string
	engine      string // of mode Container
	env         func(string) string
	resolver    *net.Resolver // nil for the system's
	facts       facts
}

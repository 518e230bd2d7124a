// Package mount puts our one entry into an MCP client's configuration and takes it
// out again (spec/mount.md; the facts about the clients are in spec/clients.md).
//
// Its law:
//   - Every byte that is not our entry stays as it was: order, indentation, comments,
//     line ends, byte order mark, mode, owner, symbolic links.
//   - An entry that we did not write is never touched: ours is one that a record
//     names by its digest, or that starts this program with `run NAME`. The name
//     alone says nothing, and no marker is written.
//   - What was written is parsed again before it replaces the file: all foreign
//     values must be equal, and ours must read back as the client reads it.
//   - A file that cannot be edited safely is refused with its line and left alone.
//   - A file that somebody else changes meanwhile is read again, never overwritten.
//
// It never writes a secret, a token or an environment reference, never starts a
// process, never reads the environment itself and never writes an activation record:
// its caller keeps what Result says.
package mount

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skald-connectors/manifest"
)

// ourProgram is the name of the command that mounted entries start.
const ourProgram = "skald-connectors"

// lockWait bounds the wait for another process of ours that writes the same file;
// a write takes milliseconds.
const lockWait = 10 * time.Second

// Options is what a Mounter is made from.
type Options struct {
	// Env looks up a variable of the environment; "" means not set.
	Env func(name string) string
	// OS is "linux", "darwin" or "windows": whose places for files are meant.
	OS string
	// State is the folder for backups and locks; it is made when needed.
	State string
	// Program is the command to write, see StableProgram.
	Program string
	// Home is the folder to name with --home, "" when it is the default one.
	Home string
	// LockWait bounds the wait for another process of ours; 0 stands for 10 s.
	LockWait time.Duration
	// Tries bounds how often a file that another program keeps changing is read again;
	// 0 stands for some seconds.
	Tries int
}

// Mounter edits the configurations of the clients of one user. It holds no state,
// and may be used by several goroutines.
type Mounter struct {
	o      Options
	settle time.Duration
	tries  int // writes against another writer, writeTries but in tests
}

// New makes a Mounter; it does no I/O.
func New(o Options) *Mounter {
	if o.LockWait == 0 {
		o.LockWait = lockWait
	}
	if o.Tries == 0 {
		o.Tries = writeTries
	}
	return &Mounter{o: o, settle: settlePause, tries: o.Tries}
}

// Request names what is to be mounted or unmounted where.
type Request struct {
	// Client is an id of the table, or "engine".
	Client string
	// Name is the name of the activation.
	Name string
	// File is one of the client's files, or another of the same kind (a project's, one
	// that a record names); "" stands for the first one.
	File string
	// Digests are those that the record has for this client and file: an entry with
	// one of them is ours, however it looks.
	Digests []string
	// Create allows to make the folders of a client that does not seem to be here.
	Create bool
	// DryRun computes the result and its difference and writes nothing.
	DryRun bool
	// ConfigDir is the configuration folder of the engine.
	ConfigDir string
}

// Result says what was done to one file.
type Result struct {
	Client string
	// File is the path as the client knows it; Target is where its symbolic links
	// lead, "" when it is no link.
	File, Target string
	// Changed is false when nothing had to be done.
	Changed bool
	// Digest identifies the entry, for the record; "" after Unmount.
	Digest string
	// Diff is a unified difference, "" when nothing changes.
	Diff string
	// Backup is the file that holds the bytes from before, "" when there were none.
	Backup string
	// Deleted says that Unmount took away a file that Mount had made.
	Deleted bool
	// Restart says that the client reads its file at its start only.
	Restart bool
}

// Mount writes the entry of one activation into one file. The same entry again
// changes nothing. An entry of ours that starts another program or has other
// arguments is brought up to date, members that a person added to it stay.
//
// Errors are *RefusedError; nothing was written then.
func (m *Mounter) Mount(ctx context.Context, r Request) (Result, error) {
	t, err := m.target(r)
	if err == nil {
		err = m.mayMount(t, r)
	}
	if err != nil {
		return Result{}, err
	}
	return m.change(ctx, t, r, t.mounting)
}

// mayMount refuses what the client is not ready for.
func (m *Mounter) mayMount(t *target, r Request) error {
	w := rowOf(t.client)
	switch {
	case w == nil: // the engine
	case w.noSpace && strings.ContainsAny(t.command, " \t"):
		return refusef(UnusableProgram, t.file, "%s cannot start a program whose path has a space: %q", w.name, t.command)
	case exists(t.real):
	case w.grade == 'C' && !exists(filepath.Dir(t.real)):
		return refusef(NotHere, t.file, "neither the file nor its folder exists, and this place is not certain enough to make it")
	case !r.Create && !m.client(w).Detected:
		return refusef(NotHere, t.file, "%s does not seem to be installed here", w.name)
	}
	return nil
}

// Unmount takes the entry out. A file whose bytes are as we left them becomes what
// it was before, byte for byte, or goes away when Mount had made it; another file
// loses the entry only. An entry that is not there is no error. An entry of the name
// that is not ours is refused as a conflict.
func (m *Mounter) Unmount(ctx context.Context, r Request) (Result, error) {
	t, err := m.target(r)
	if err != nil {
		return Result{}, err
	}
	if _, err := os.Lstat(t.real); errors.Is(err, fs.ErrNotExist) {
		return Result{Client: t.client, File: t.file}, nil // and makes no folder for its lock
	}
	return m.change(ctx, t, r, t.unmounting)
}

// target is one file with the rules for it.
type target struct {
	client  string
	file    string
	real    string // file with its links resolved
	ed      editor
	place   place
	shape   shape
	command string
	args    []string
	home    string
	lock    string // lock file
	strict  bool   // the engine's: an entry that differs at all is not ours unless recorded
	adapt   func(t *target, tree any)
	restart bool
	mkdir   bool // also lock as the client does
	settle  time.Duration
}

func (m *Mounter) target(r Request) (*target, error) {
	if r.Client == Engine {
		return m.engineTarget(r)
	}
	w := rowOf(r.Client)
	if w == nil {
		return nil, refusef(UnknownClient, "", "there is no client %q", r.Client)
	}
	if err := manifest.ValidID(r.Name); err != nil {
		return nil, refusef(InvalidName, "", "%v", err)
	}
	file := r.File
	if file == "" {
		c := m.client(w)
		if c.Problem != "" {
			return nil, refusef(UnknownFile, "", "%s", c.Problem)
		}
		file = c.Files[0]
	}
	t := m.rowTarget(w, file)
	if err := m.resolve(t); err != nil {
		return nil, err
	}
	t.args = []string{"run", r.Name}
	if m.o.Home != "" {
		t.args = append(t.args, "--home", m.o.Home)
	}
	t.lock = filepath.Join(m.o.State, stateKey(t.real)+".lock")
	return t, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

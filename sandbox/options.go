package sandbox

import (
	"os"
	"path/filepath"
)

// Options say how the back ends of this machine are found and used.
type Options struct {
	// Mode is the back end that is wanted.
	Mode Mode
	// Self is the absolute path of this program, which is started again inside a
	// sandbox: its first act must be a call of Main. Without it there is only None.
	Self string
	// Dir is a private folder of this program, absolute. What was found out about
	// the machine is kept there until the next boot, and folders that live as long
	// as a process. It is made when it is not there.
	Dir string
	// Path is where helper programs are looked for (a PATH value).
	Path string
	// Env reads a variable of the person's environment: the proxy and the files
	// with certificates. Nil reads none.
	Env func(name string) string
	// Image and User choose the container of mode Container.
	Image, User string
}

// New returns the sandbox for mode without any helper: None, and Auto as long as
// its caller gives no Options, start plainly, and Enforced says so. Other modes
// give an *UnenforceableError.
func New(mode Mode) (*Sandbox, error) {
	if mode == Auto {
		mode = None
	}
	return Open(Options{Mode: mode})
}

// Open returns the sandbox for o. Auto takes the strongest back end that really
// works here: each is tried once after a boot, with all that it would be given.
// Where none works, or the wanted one does not, the error is an
// *UnenforceableError; None is never a fallback.
func Open(o Options) (*Sandbox, error) {
	s := &Sandbox{mode: o.Mode, self: o.Self, dir: o.Dir, image: o.Image, user: o.User, path: o.Path, env: o.Env}
	if s.env == nil {
		s.env = func(string) string { return "" }
	}
	if o.Mode == None {
		return s, nil
	}
	if o.Mode == Container {
		return s, s.openContainer()
	}
	if !known(o.Mode) {
		return nil, &UnenforceableError{What: "mode " + quote(string(o.Mode)), Why: "there is no such back end"}
	}
	if !filepath.IsAbs(o.Self) {
		return nil, &UnenforceableError{What: "mode " + quote(string(o.Mode)), Why: "this program does not know its own path"}
	}
	if real, err := filepath.EvalSymlinks(o.Self); err == nil && filepath.Base(real) == filepath.Base(o.Self) {
		s.self = real
	}
	if err := s.choose(o.Mode); err != nil {
		return nil, err
	}
	return s, nil
}

func known(m Mode) bool {
	switch m {
	case Auto, Bubblewrap, Landlock, Combined, SandboxExec, Job:
		return true
	}
	return false
}

// privateFolder makes a folder with home and tmp in it, for one process. The
// returned function removes it.
func (s *Sandbox) privateFolder() (string, func(), error) {
	unusable := func(err error) error {
		return &UnenforceableError{What: "a private home folder", Why: plain(err)}
	}
	if !filepath.IsAbs(s.dir) {
		return "", nil, &UnenforceableError{What: "a private home folder", Why: "there is no folder to make it in"}
	}
	runs := filepath.Join(s.dir, "run")
	if err := os.MkdirAll(runs, 0o700); err != nil {
		return "", nil, unusable(err)
	}
	sweepRuns(runs)
	dir, err := os.MkdirTemp(runs, runPrefix())
	if err != nil {
		return "", nil, unusable(err)
	}
	for _, name := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return "", nil, unusable(err)
		}
	}
	return dir, func() { removeAll(dir) }, nil
}

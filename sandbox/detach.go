package sandbox

import (
	"errors"
	"os"
)

// Detach starts a program of the user's own that has nothing to do with a connector and outlives this one: a browser. It has no
// streams and no terminal. Errors: *StartError.
func Detach(c Command) error {
	if len(c.Argv) == 0 {
		return &StartError{Problem: "there is no command", Err: errors.New("no command")}
	}
	path, _, err := LookPath(c.Argv[0], pathOf(c.Env))
	if err != nil {
		return explain(program(c), c.Argv[0], err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return explain(program(c), os.DevNull, err)
	}
	defer null.Close()
	p, err := os.StartProcess(path, c.Argv, &os.ProcAttr{Dir: c.Dir, Env: c.Env, Files: []*os.File{null, null, null}, Sys: detached()})
	if err != nil {
		return explain(program(c), path, err)
	}
	go func() { _, _ = p.Wait() }() // it is nobody's zombie
	return nil
}

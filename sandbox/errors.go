package sandbox

import (
	"fmt"
	"strconv"
	"strings"
)

// StartError tells why a program could not be started. Callers tell the cases
// apart with errors.Is:
//
//	fs.ErrNotExist    no such program, or the interpreter that it names is missing
//	fs.ErrPermission  there, but not executable
//	syscall.EISDIR    a folder
//	syscall.ENOEXEC   made for another kind of machine, or no program at all
//	syscall.EAGAIN    the limit of processes is reached
//
// It never holds an argument or a value of the environment.
type StartError struct {
	// Program is the first word of the command, or the path that was found for it.
	Program string
	// Searched lists the folders that were looked into, in order; nil when the
	// program was given by its path.
	Searched []string
	// Problem is the case in plain words.
	Problem string
	Err     error
}

func (e *StartError) Error() string {
	s := fmt.Sprintf("starting %q: %s", e.Program, e.Problem)
	if len(e.Searched) > 0 {
		s += ", searched " + strings.Join(e.Searched, ", ")
	}
	return s
}

// Unwrap gives the cause that errors.Is compares.
func (e *StartError) Unwrap() error { return e.Err }

// UnenforceableError tells what of a policy cannot be held on this machine.
type UnenforceableError struct {
	What string // the part of the policy
	Why  string // the cause in plain words
	// Always tells that the policy itself is the cause: no back end would hold it.
	Always bool
}

func (e *UnenforceableError) Error() string {
	return fmt.Sprintf("enforcing %s: %s", e.What, e.Why)
}

func quote(s string) string { return strconv.Quote(s) }

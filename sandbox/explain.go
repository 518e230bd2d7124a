package sandbox

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// shebangLimit is the length of a script's first line that kernels read.
const shebangLimit = 256

// explain turns the error of starting the file at path into the words and the
// cause that StartError documents.
func explain(name, path string, err error) *StartError {
	e := &StartError{Program: name, Err: err}
	switch {
	case errors.Is(err, syscall.EISDIR):
		e.Problem = "it is a folder"
	case errors.Is(err, fs.ErrNotExist):
		e.Problem = whyMissing(path)
	case errors.Is(err, fs.ErrPermission):
		e.Problem = "it is not executable"
	case wrongFormat(err):
		e.Err = syscall.ENOEXEC
		e.Problem = whyNoProgram(path)
	case errors.Is(err, syscall.EAGAIN):
		e.Problem = "the limit of processes is reached"
	case errors.Is(err, syscall.ENOMEM):
		e.Problem = "not enough memory"
	case errors.Is(err, syscall.E2BIG):
		e.Problem = "arguments and environment are too long for this system"
	default:
		e.Problem = plain(err)
	}
	return e
}

// whyMissing tells a missing program from one whose interpreter is missing; the
// kernel reports both alike.
func whyMissing(path string) string {
	if _, err := os.Stat(path); err != nil {
		return "not found"
	}
	if interpreter := shebang(firstBytes(path, shebangLimit)); interpreter != "" {
		return "its interpreter " + quote(interpreter) + " is missing"
	}
	return "the loader that it needs is missing"
}

// whyNoProgram tells a binary for another machine from a file that is none.
func whyNoProgram(path string) string {
	head := firstBytes(path, 4)
	for _, magic := range []string{"\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xca\xfe\xba\xbe"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return "it is made for another kind of machine"
		}
	}
	return "it is neither a binary nor a script with a #! line"
}

// shebang returns the interpreter that a script with this beginning names, or "".
func shebang(head []byte) string {
	line, _, _ := strings.Cut(string(head), "\n")
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return ""
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// firstBytes reads up to n bytes of a regular file, none when it cannot.
func firstBytes(path string, n int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, n))
	return head
}

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// errCommand is the cause of a StartError whose command is unusable as written;
// it matches nothing, so that no caller takes it for a missing program.
var errCommand = errors.New("unusable command")

// LookPath finds the program name in the folders of path (a PATH value). Only
// absolute folders are searched: an empty or relative one would be the current
// folder. An absolute name is checked as it is. searched lists the folders in
// order, also on success. The error is a *StartError.
func LookPath(name, path string) (abs string, searched []string, err error) {
	if filepath.IsAbs(name) {
		abs, err = executable(name)
		if err != nil {
			return "", nil, explain(name, name, err)
		}
		return abs, nil, nil
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\:`) {
		return "", nil, &StartError{Program: name, Problem: "neither a plain name nor an absolute path", Err: errCommand}
	}
	var refused error // the first candidate that is there and cannot be used
	refusedAt := ""
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		searched = append(searched, dir)
		at := filepath.Join(dir, name)
		found, err := executable(at)
		if err == nil {
			return found, searched, nil
		}
		if refused == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.EISDIR) {
			refused, refusedAt = err, at
		}
	}
	if refused != nil {
		e := explain(refusedAt, refusedAt, refused)
		e.Searched = searched
		return "", searched, e
	}
	e := &StartError{Program: name, Searched: searched, Problem: "not found", Err: fs.ErrNotExist}
	if len(searched) == 0 {
		e.Problem = "not found, PATH names no absolute folder"
	}
	return "", searched, e
}

// resolve checks c and returns the absolute path of its program.
func resolve(c Command) (string, error) {
	if problem := unusable(c); problem != "" {
		return "", &StartError{Program: program(c), Problem: problem, Err: errCommand}
	}
	path, _, err := LookPath(c.Argv[0], pathOf(c.Env))
	return path, err
}

// unusable says what is wrong with c as written, or "". It never quotes a value.
func unusable(c Command) string {
	if problem := unusableAnywhere(c); problem != "" {
		return problem
	}
	if fi, err := os.Stat(c.Dir); err != nil {
		return "working folder " + quote(c.Dir) + ": " + plain(err)
	} else if !fi.IsDir() {
		return "working folder " + quote(c.Dir) + " is not a folder"
	}
	return ""
}

// unusableAnywhere is unusable without a look at this machine's files.
func unusableAnywhere(c Command) string {
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return "no program is named"
	case hasNUL(c.Argv) || hasNUL(c.Env) || hasNUL([]string{c.Dir}):
		return "the command holds a NUL byte"
	case !filepath.IsAbs(c.Dir):
		return "working folder " + quote(c.Dir) + " is not absolute"
	}
	for _, kv := range c.Env {
		if strings.IndexByte(kv, '=') < 1 {
			return "an entry of the environment has no name"
		}
	}
	return ""
}

func hasNUL(list []string) bool {
	for _, s := range list {
		if strings.IndexByte(s, 0) >= 0 {
			return true
		}
	}
	return false
}

// pathOf returns the first PATH of env, as the process itself would read it.
func pathOf(env []string) string {
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); isPathName(name) {
			return value
		}
	}
	return ""
}

// program is what an error may show of c: never an argument.
func program(c Command) string {
	if len(c.Argv) == 0 {
		return ""
	}
	return c.Argv[0]
}

// plain is the text of err without operation and path.
func plain(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

//go:build linux || darwin

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestStartErrors(t *testing.T) {
	eachSandbox(t, func(t *testing.T, s *Sandbox) {
		dir := t.TempDir()
		file := func(name, content string, mode fs.FileMode) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(content), mode); err != nil {
				t.Fatal(err)
			}
			return path
		}
		tests := []struct {
			name    string
			argv0   string
			is      error
			problem string
		}{
			{"missing", filepath.Join(dir, "missing"), fs.ErrNotExist, "not found"},
			{"not executable", file("data", "x", 0o600), fs.ErrPermission, "it is not executable"},
			{"folder", dir, syscall.EISDIR, "it is a folder"},
			{"other machine", file("alien", "\x7fELF\x02\x01\x01"+strings.Repeat("\x00", 11)+"\xff\x7f"+strings.Repeat("\x00", 64), 0o700), syscall.ENOEXEC, "it is made for another kind of machine"},
			{"no program", file("text", "hello\n", 0o700), syscall.ENOEXEC, "it is neither a binary nor a script with a #! line"},
			{"no interpreter", file("script", "#! /no/such/interpreter -x\n", 0o700), fs.ErrNotExist, `its interpreter "/no/such/interpreter" is missing`},
			{"relative", "./data", nil, "neither a plain name nor an absolute path"},
			{"empty", "", nil, "no program is named"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				_, err := runIn(t.Context(), s, Policy{}, Command{Argv: []string{tt.argv0, "hidden"}, Dir: dir, Env: []string{"S=hidden"}}, nil)
				se, ok := errors.AsType[*StartError](err)
				if !ok || se.Problem != tt.problem || (tt.is != nil && !errors.Is(err, tt.is)) {
					t.Fatalf("got %v, want %q", err, tt.problem)
				}
				if tt.is == nil && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
					t.Errorf("%v would be taken for a missing program", err)
				}
				if strings.Contains(err.Error(), "hidden") {
					t.Errorf("%v shows an argument or a value", err)
				}
			})
		}
	})
}

func TestUnusableCommands(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		command Command
		problem string
	}{
		{Command{Dir: dir}, "no program is named"},
		{Command{Argv: []string{"/bin/sh"}}, `working folder "" is not absolute`},
		{Command{Argv: []string{"/bin/sh"}, Dir: "here"}, `working folder "here" is not absolute`},
		{Command{Argv: []string{"/bin/sh"}, Dir: "/no/such/folder"}, `working folder "/no/such/folder": no such file or directory`},
		{Command{Argv: []string{"/bin/sh"}, Dir: "/bin/sh"}, `working folder "/bin/sh" is not a folder`},
		{Command{Argv: []string{"/bin/sh", "a\x00b"}, Dir: dir}, "the command holds a NUL byte"},
		{Command{Argv: []string{"/bin/sh"}, Dir: dir, Env: []string{"A=\x00"}}, "the command holds a NUL byte"},
		{Command{Argv: []string{"/bin/sh"}, Dir: dir, Env: []string{"secret"}}, "an entry of the environment has no name"},
		{Command{Argv: []string{"/bin/sh"}, Dir: dir, Env: []string{"=x"}}, "an entry of the environment has no name"},
	}
	for _, tt := range tests {
		_, err := plainSandbox(t).Run(t.Context(), Policy{}, tt.command, nil)
		if se, ok := errors.AsType[*StartError](err); !ok || se.Problem != tt.problem {
			t.Errorf("got %v, want %q", err, tt.problem)
		}
	}
}

func TestProcessLimitIsNamed(t *testing.T) {
	e := explain("/bin/x", "/bin/x", &fs.PathError{Op: "fork/exec", Path: "/bin/x", Err: syscall.EAGAIN})
	if want := `starting "/bin/x": the limit of processes is reached`; e.Error() != want || !errors.Is(e, syscall.EAGAIN) {
		t.Errorf("got %v, want %v", e, want)
	}
}

func TestProcessLimitIsReached(t *testing.T) {
	got, err := plainSandbox(t).Run(t.Context(), Policy{}, childOf(t, nil, "crowded"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "starting \"/bin/sh\": the limit of processes is reached\n"
	if got.Code != 0 || string(got.Stdout) != want {
		t.Errorf("got code %d, %q, %s", got.Code, got.Stdout, got.Stderr)
	}
}

func TestLookPath(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, f := range []struct {
		path string
		mode fs.FileMode
	}{{filepath.Join(a, "half"), 0o600}, {filepath.Join(b, "half"), 0o700}, {filepath.Join(b, "tool"), 0o700}, {filepath.Join(a, "data"), 0o600}} {
		if err := os.WriteFile(f.path, []byte("#!/bin/sh\n"), f.mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(a, "tool"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(b)
	path := strings.Join([]string{"", ".", a, "relative", b}, ":")
	tests := []struct {
		name, path string
		abs        string
		searched   []string
		text       string
	}{
		{"tool", path, filepath.Join(b, "tool"), []string{a, b}, ""},
		{"half", path, filepath.Join(b, "half"), []string{a, b}, ""},
		{"tool", ".:", "", nil, `starting "tool": not found, PATH names no absolute folder`},
		{"gone", path, "", []string{a, b}, `starting "gone": not found, searched ` + a + ", " + b},
		{"data", path, "", []string{a, b}, `starting "` + filepath.Join(a, "data") + `": it is not executable, searched ` + a + ", " + b},
		{"./tool", path, "", nil, `starting "./tool": neither a plain name nor an absolute path`},
		{"..", path, "", nil, `starting "..": neither a plain name nor an absolute path`},
		{filepath.Join(b, "tool"), "", filepath.Join(b, "tool"), nil, ""},
	}
	for _, tt := range tests {
		abs, searched, err := LookPath(tt.name, tt.path)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if abs != tt.abs || !slices.Equal(searched, tt.searched) || text != tt.text {
			t.Errorf("LookPath(%q, %q) = %q, %q, %q; want %q, %q, %q", tt.name, tt.path, abs, searched, text, tt.abs, tt.searched, tt.text)
		}
	}
}

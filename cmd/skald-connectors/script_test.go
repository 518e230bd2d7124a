package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/zalando/go-keyring"

	"skald-connectors/connectors"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/sandbox"
)

func TestMain(m *testing.M) {
	// Inside a sandbox this binary is started again as the helper, under another
	// name: without this it would run all tests there, and so on.
	if code, handled := sandbox.Main(os.Args[1:]); handled {
		syscall.Exit(code) // os.Exit of a race build waits a second
	}
	if len(os.Args) > 1 && os.Args[1] == "run" && filepath.Base(os.Args[0]) != program {
		os.Exit(99) // status or call within a test would start all tests again; use a script
	}
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // or each start of the program takes a second longer under the race detector
	}
	testscript.Main(m, map[string]func(){program: testProgram, "browser": testBrowser})
}

// testWork makes passphrases cheap: the race detector makes one of the real cost take
// many seconds.
const testWork = 8

// testProgram is the program with the seams that scripts steer by variables:
// SKALD_TEST_KILL_AT ends the process as kill -9 does before the named step,
// SKALD_TEST_KEYCHAIN names a folder that plays the keychain, or is "os" for
// the real one.
func testProgram() {
	h := hooks{now: time.Now, builtin: connectors.Tree(), keychain: noKeychain{}, work: testWork, public: os.Getenv("SKALD_TEST_PUBLIC")}
	switch dir := os.Getenv("SKALD_TEST_KEYCHAIN"); dir {
	case "":
	case "os":
		h.keychain = nil
	default:
		h.keychain = dirKeychain(dir)
	}
	h.impatient = os.Getenv("SKALD_TEST_IMPATIENT") != ""
	h.answer, _ = time.ParseDuration(os.Getenv("SKALD_TEST_ANSWER"))
	if at := os.Getenv("SKALD_TEST_KILL_AT"); at != "" {
		at, times, _ := strings.Cut(at, "#")
		left, _ := strconv.Atoi(times) // "write-record#2" is the second one
		h.step = func(name string) {
			if name == at {
				left--
			}
			if name == at && left <= 0 {
				p, _ := os.FindProcess(os.Getpid())
				_ = p.Kill()
				time.Sleep(time.Hour)
			}
		}
	}
	if log := os.Getenv("SKALD_TEST_STEPS"); log != "" {
		h.step = func(name string) {
			f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, _ = f.WriteString(name + "\n")
				_ = f.Close()
			}
		}
	}
	os.Exit(runWith(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr, h))
}

// noKeychain is a machine without a keychain.
type noKeychain struct{}

var errNoKeychain = errors.New("no keychain on this machine")

func (noKeychain) Get(string, string) (string, error) { return "", errNoKeychain }
func (noKeychain) Set(string, string, string) error   { return errNoKeychain }
func (noKeychain) Delete(string, string) error        { return errNoKeychain }

// dirKeychain keeps items as files of a folder, so that several processes of
// one script share it.
type dirKeychain string

func (d dirKeychain) file(user string) string { return filepath.Join(string(d), user) }

func (d dirKeychain) Get(_, user string) (string, error) {
	data, err := os.ReadFile(d.file(user))
	if errors.Is(err, fs.ErrNotExist) {
		return "", keyring.ErrNotFound
	}
	return string(data), err
}

func (d dirKeychain) Set(_, user, value string) error {
	return os.WriteFile(d.file(user), []byte(value), 0o600)
}

func (d dirKeychain) Delete(_, user string) error {
	err := os.Remove(d.file(user))
	if errors.Is(err, fs.ErrNotExist) {
		return keyring.ErrNotFound
	}
	return err
}

// needPython skips where the test connectors cannot run; CI refuses to skip.
func needPython(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("SKALD_TEST_REQUIRE") != "" {
			t.Fatal("python3 is missing and SKALD_TEST_REQUIRE is set")
		}
		t.Skip("python3 is missing; the test connectors are Python programs")
	}
	return path
}

func TestScripts(t *testing.T) {
	python := needPython(t)
	market, err := filepath.Abs("testdata/market")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", e.Getenv("PATH")+string(filepath.ListSeparator)+filepath.Dir(python)+string(filepath.ListSeparator)+"/usr/bin:/bin")
			self, err := exec.LookPath(program) // for scripts that change PATH
			if err != nil {
				return err
			}
			e.Setenv("SK", self)
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Setenv("SKALD_CONNECTORS_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("SKALD_CONNECTORS_INDEX", filepath.Join(e.WorkDir, "market"))
			e.Setenv("SKALD_CONNECTORS_KEYSTORE", "keyfile")
			return copyMarket(market, filepath.Join(e.WorkDir, "market"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"nowhere": cmdNowhere, "tree": cmdTree, "mode": cmdMode, "bump": cmdBump,
			"exitcode": cmdExitcode, "tamper": cmdTamper, "plant": cmdPlant, "expand": cmdExpand, "held": cmdHeld, "old": cmdOld, "google": cmdGoogle,
		},
		RequireUniqueNames: true,
	})
}

// copyMarket copies the source tree of the test marketplace and compiles it.
func copyMarket(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return compileMarket(to)
}

func compileMarket(to string) error {
	var out strings.Builder
	code := runWith(context.Background(), []string{"catalog", "compile", to}, nil, strings.NewReader(""), &out, &out, hooks{now: time.Now})
	if code != exitDone {
		return errors.New("compiling the test marketplace: " + out.String())
	}
	return nil
}

// nowhere TEXT: no file below the working folder and no output so far holds
// the text, in the encodings that leaks come in.
func cmdNowhere(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: nowhere TEXT")
	}
	for _, needle := range encodings(args[0]) {
		for _, stream := range []string{"stdout", "stderr"} {
			if strings.Contains(ts.ReadFile(stream), needle) {
				ts.Fatalf("%s holds the secret", stream)
			}
		}
		root := ts.Getenv("WORK")
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.Contains(path, "/.tmp/") || isInput(filepath.Base(path)) {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(data), needle) {
				ts.Fatalf("%s holds the secret", path)
			}
			return err
		})
		ts.Check(err)
	}
}

// isInput tells the files by which a script gives a secret to the program.
func isInput(name string) bool { return strings.Contains(name, "pw") || name == "answers.json" }

// tree FILE: writes the names and modes below the home to a file, for cmp.
func cmdTree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: tree FILE")
	}
	home := ts.Getenv("SKALD_CONNECTORS_HOME")
	var b strings.Builder
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(home, path)
		top, _, _ := strings.Cut(rel, string(filepath.Separator))
		if top == "cache" || top == "locks" || top == "sandbox" || rel == top && d.IsDir() || strings.HasSuffix(rel, ".lock") {
			return nil // downloads that are kept, lock files and empty tops change no state
		}
		b.WriteString(d.Type().String() + " " + filepath.ToSlash(rel) + "\n")
		return nil
	})
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o600))
}

// mode MODE FILE…: each file has exactly this permission.
func cmdMode(ts *testscript.TestScript, neg bool, args []string) {
	for _, file := range args[1:] {
		info, err := os.Stat(ts.MkAbs(file))
		ts.Check(err)
		if got := info.Mode().Perm().String(); (got == args[0]) == neg {
			ts.Fatalf("%s has mode %s", file, got)
		}
	}
}

// bump CONNECTOR: raises its version by one and compiles the marketplace.
func cmdBump(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(bump(filepath.Join(ts.Getenv("WORK"), "market"), args[0]))
	ts.Check(ts.Exec(program, "catalog", "compile", filepath.Join(ts.Getenv("WORK"), "market")))
}

// bump raises the version of a connector in a marketplace tree by one.
func bump(market, id string) error {
	for _, file := range []string{"fragment.json", "connector.json"} {
		path := filepath.Join(market, id, file)
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for v := 8; v > 0; v-- {
			old, now := strconv.Itoa(v), strconv.Itoa(v+1)
			text := strings.ReplaceAll(string(data), `"version": `+old, `"version": `+now)
			data = []byte(strings.ReplaceAll(text, `"`+old+`.0.0"`, `"`+now+`.0.0"`))
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// exitcode CODE COMMAND…: the command ends with exactly this code.
func cmdExitcode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if want := args[0]; strconv.Itoa(got) != want {
		ts.Fatalf("exit code %d, want %s", got, want)
	}
}

// plant FOLDER FILE SOURCE: replaces FILE of the only version below FOLDER.
func cmdPlant(ts *testscript.TestScript, neg bool, args []string) {
	found, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*", args[1]))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%d files %s below %s", len(found), args[1], args[0])
	}
	ts.Check(os.WriteFile(found[0], []byte(ts.ReadFile(args[2])), 0o600))
}

// tamper FOLDER FILE: appends a byte to the read-only FILE of the only version
// below FOLDER.
func cmdTamper(ts *testscript.TestScript, neg bool, args []string) {
	found, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*", args[1]))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%d files %s below %s", len(found), args[1], args[0])
	}
	ts.Check(os.Chmod(found[0], 0o600))
	data, err := os.ReadFile(found[0])
	ts.Check(err)
	ts.Check(os.WriteFile(found[0], append(data, '#'), 0o600))
}

// expand FROM TO: copies a file with $WORK filled in.
func cmdExpand(ts *testscript.TestScript, neg bool, args []string) {
	text := strings.ReplaceAll(ts.ReadFile(args[0]), "$WORK", ts.Getenv("WORK"))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// held FILE COMMAND…: runs another command of the script while this process holds the
// lock file.
func cmdHeld(ts *testscript.TestScript, neg bool, args []string) {
	unlock, ok, err := atomicfile.TryLock(ts.MkAbs(args[0]))
	ts.Check(err)
	if !ok || args[1] != "exitcode" {
		ts.Fatalf("usage: held FILE exitcode CODE COMMAND…")
	}
	defer unlock()
	cmdExitcode(ts, neg, args[2:])
}

// old FILE SOURCE: copies a file and makes it one that nobody has written lately.
func cmdOld(ts *testscript.TestScript, neg bool, args []string) {
	past := time.Now().Add(-time.Hour)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(ts.ReadFile(args[1])), 0o600))
	ts.Check(os.Chtimes(ts.MkAbs(args[0]), past, past))
}

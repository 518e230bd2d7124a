package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// anchors are the programs of testdata/bench, built for this run.
type anchors struct {
	dir         string
	echo, relay string
	inC         string // "" without a C compiler
}

// built is where they are, once something needs them.
var built struct {
	once sync.Once
	anchors
	err error
}

func buildAnchors() (anchors, error) {
	built.once.Do(func() { built.anchors, built.err = newAnchors() })
	return built.anchors, built.err
}

func newAnchors() (a anchors, err error) {
	if a.dir, err = os.MkdirTemp("", "anchors"); err != nil {
		return a, err
	}
	name := func(base string) string {
		if runtime.GOOS == "windows" {
			base += ".exe"
		}
		return filepath.Join(a.dir, base)
	}
	a.echo, a.relay = name("echo"), name("relay")
	out, err := exec.Command("go", "build", "-o", a.dir, "../testdata/bench/echo", "../testdata/bench/relay").CombinedOutput()
	if err != nil {
		return a, fmt.Errorf("building the anchors: %w: %s", err, out)
	}
	if cc, err := exec.LookPath("cc"); err == nil && exec.Command(cc, "-O2", "-o", name("relay-c"), "../testdata/bench/relay.c").Run() == nil {
		a.inC = name("relay-c")
	}
	return a, nil
}

// removeAnchors removes what was built, if anything was.
func removeAnchors() {
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
}

package main

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestEndlessIndex: an index without an end stops at its limit, in little memory, and is not kept.
func TestEndlessIndex(t *testing.T) {
	if raced {
		t.Skip("looks at the memory of the program; the run without the race detector has it")
	}
	l := newLiar(t)
	l.lie("/connectors.json", func(w http.ResponseWriter, r *http.Request) {
		junk := make([]byte, 64<<10)
		for r.Context().Err() == nil {
			if _, err := w.Write(junk); err != nil {
				return
			}
		}
	})
	self, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "install", "plain", "--yes")
	cmd.Env = append(os.Environ(), "SKALD_CONNECTORS_HOME="+l.home, "SKALD_CONNECTORS_INDEX="+l.server.URL, "SSL_CERT_FILE="+l.ca, "SSL_CERT_DIR=")
	said, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "the index is larger than") {
		t.Errorf("%v: %s", err, said)
	}
	const most = 150 << 20
	if use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); !ok || use.Maxrss<<10 > most {
		t.Errorf("it took %d MiB of memory", use.Maxrss>>10)
	}
	l.nothingInstalled()
	if left := l.everything(); left != "" {
		t.Errorf("left:\n%s", left)
	}
}

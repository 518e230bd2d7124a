package keystore

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// updates is how often each of the processes adds; KEYSTORE_TEST_UPDATES raises it.
func updates(t *testing.T) int {
	n := 60
	if text := os.Getenv("KEYSTORE_TEST_UPDATES"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(t, err)
	}
	return n
}

func TestProcessesLoseNoUpdate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keystore")
	s := fileStore(dir)
	must(t, s.Put(t.Context(), "shared", 1, handles("TOTAL", "0")))
	n := updates(t)
	const processes = 3
	var cmds []*exec.Cmd
	for i := range processes {
		cmd := child(t, "add", dir, strconv.Itoa(i), strconv.Itoa(n))
		cmd.Stderr = &bytes.Buffer{}
		must(t, cmd.Start())
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, cmd.Stderr)
		}
	}
	hs, err := s.Load(t.Context(), "shared", 1)
	must(t, err)
	got := map[string]string{}
	for _, h := range hs {
		got[h.Name] = h.Value.Reveal()
	}
	if got["TOTAL"] != strconv.Itoa(n*processes) {
		t.Errorf("total %s, want %d", got["TOTAL"], n*processes)
	}
	for i := range processes {
		if got[fmt.Sprint("OWN_", i)] != strconv.Itoa(n) {
			t.Errorf("process %d: %v", i, got)
		}
	}
}

func TestProcessesMakeOneKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keystore")
	var cmds []*exec.Cmd
	for i := range 4 {
		cmd := child(t, "add", dir, strconv.Itoa(i), "0")
		cmd.Stderr = &bytes.Buffer{}
		must(t, cmd.Start())
		cmds = append(cmds, cmd)
	}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, cmd.Stderr)
		}
		hs, err := fileStore(dir).Load(t.Context(), fmt.Sprint("own-", i), 1)
		if err != nil || len(hs) != 1 {
			t.Errorf("vault %d: %v, %v", i, hs, err)
		}
	}
}

func TestKillLeavesOldOrNew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keystore")
	s := fileStore(dir)
	must(t, s.Put(t.Context(), "shared", 1, handles("TOTAL", "0")))
	before := 0
	for round := range 8 {
		cmd := child(t, "churn", dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		said := 0
		for lines.Scan() {
			said, err = strconv.Atoi(lines.Text())
			must(t, err)
			if said == 1+round {
				must(t, cmd.Process.Kill())
			}
		}
		_ = cmd.Wait()
		hs, err := fileStore(dir).Load(t.Context(), "shared", 1)
		must(t, err)
		now, err := strconv.Atoi(hs[0].Value.Reveal())
		must(t, err)
		if now != before+said && now != before+said+1 {
			t.Fatalf("round %d: %d after %d and %d said", round, now, before, said)
		}
		must(t, increase(fileStore(dir), "TOTAL"))
		before = now + 1
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*.age"))
	if len(left) != 1 || !strings.HasSuffix(left[0], "shared.1.age") {
		t.Errorf("vaults %v", left)
	}
}

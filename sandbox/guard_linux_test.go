package sandbox

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestKilledLauncherLeavesNobody: the program ends first of all, with its input or
// by the guard; what left its session is ended all the same, each time.
func TestKilledLauncherLeavesNobody(t *testing.T) {
	openMode(t, Landlock) // skips where it does not work
	const script = `
import os, sys, time
for i in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(300)
        os._exit(0)
print("ready", flush=True)
sys.stdin.read()
`
	dir := filepath.Join(t.TempDir(), "box")
	for range 12 {
		m := marker()
		c := python(t, script)
		c.Env = append(c.Env, m)
		text, err := json.Marshal(map[string]any{"Mode": Landlock, "Dir": dir, "Policy": Policy{Network: Network{All: true}}, "Command": c})
		if err != nil {
			t.Fatal(err)
		}
		exe, _ := os.Executable()
		cmd := exec.Command(exe, "child", "holder", string(text))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if l, err := bufio.NewReader(out).ReadString('\n'); l != "ready\n" {
			t.Errorf("%q, %v", l, err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if !gone(m) {
			t.Fatal("processes of a killed launcher live on")
		}
	}
}

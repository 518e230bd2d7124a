package mount

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// play is what another process of ours does.
func play(role string, args []string) error {
	m := New(Options{Env: func(k string) string { return map[string]string{"HOME": args[0]}[k] }, OS: "linux", State: args[1], Program: "/opt/skald/bin/skald-connectors"})
	ctx := context.Background()
	switch role {
	case "mount":
		for _, name := range args[3:] {
			if _, err := m.Mount(ctx, Request{Client: args[2], Name: name}); err != nil {
				return err
			}
		}
	case "unmount":
		for _, name := range args[3:] {
			if _, err := m.Unmount(ctx, Request{Client: args[2], Name: name}); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("no role %q", role)
	}
	return nil
}

func process(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "MOUNT_TEST_ROLE="+role, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// Processes that mount into one file at the same time lose none of the entries, and
// taking all of them out gives the file back.
func TestTwoProcesses(t *testing.T) {
	w := newWorld(t, "linux")
	file := w.file("cursor")
	src := []byte("{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}\n")
	w.write(file, src)
	names := func(p int) []string {
		var out []string
		for i := range 6 {
			out = append(out, fmt.Sprintf("p%d-%d", p, i))
		}
		return out
	}
	both := func(role string) {
		var wg sync.WaitGroup
		for p := range 3 {
			cmd := process(t, role, append([]string{w.home, w.m.o.State, "cursor"}, names(p)...)...)
			wg.Go(func() {
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v %s", role, err, out)
				}
			})
		}
		wg.Wait()
	}
	both("mount")
	var got struct{ McpServers map[string]any }
	check(t, json.Unmarshal(w.read(file), &got))
	if len(got.McpServers) != 19 {
		t.Errorf("%d entries, want 19", len(got.McpServers))
	}
	both("unmount")
	w.same(file, src, "all out")
	w.clean(file)
}

// counter is another program that rewrites its own file every 5 ms, as a client with
// a history in it does. Each time it checks that nothing it wrote is gone.
type counter struct {
	file    string
	inPlace bool
	last    int
	err     error
}

func (c *counter) step() {
	data, err := os.ReadFile(c.file)
	var doc map[string]any
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err != nil {
		c.err = fmt.Errorf("torn: %v %q", err, data)
		return
	}
	if n, _ := doc["counter"].(float64); int(n) < c.last {
		// Between the two exchanges of a write that is given back, ours is seen: for a
		// moment, which a busy machine makes longer.
		for range 400 {
			time.Sleep(time.Millisecond)
			data, _ = os.ReadFile(c.file)
			json.Unmarshal(data, &doc)
			if n, _ = doc["counter"].(float64); int(n) >= c.last {
				break
			}
		}
		if int(n) < c.last {
			c.err = fmt.Errorf("the counter went back from %d to %d", c.last, int(n))
			return
		}
	}
	c.last++
	doc["counter"] = c.last
	if data, err = json.MarshalIndent(doc, "", "  "); err != nil {
		c.err = err
		return
	}
	if c.inPlace {
		c.err = os.WriteFile(c.file, data, 0o600)
		return
	}
	tmp := c.file + ".theirs"
	if c.err = os.WriteFile(tmp, data, 0o600); c.err == nil {
		c.err = os.Rename(tmp, c.file)
	}
}

func TestParallelMountsAgainstAWriter(t *testing.T) {
	for _, inPlace := range []bool{false, true} {
		t.Run(fmt.Sprintf("in place %v", inPlace), func(t *testing.T) {
			w := newWorld(t, "linux")
			w.m.settle = settlePause
			w.m.o.LockWait = time.Minute
			file := w.file("claude-code")
			w.write(file, []byte(`{"counter": 0, "mcpServers": {"theirs": {"command": "x"}}}`))
			c := &counter{file: file, inPlace: inPlace}
			stop, done := make(chan bool), make(chan bool)
			go func() {
				defer close(done)
				tick := time.NewTicker(5 * time.Millisecond)
				defer tick.Stop()
				for c.err == nil {
					select {
					case <-stop:
						return
					case <-tick.C:
						c.step()
					}
				}
			}()
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					if _, err := w.m.Mount(t.Context(), Request{Client: "claude-code", Name: fmt.Sprintf("c-%d", i)}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			close(stop)
			<-done
			if c.err != nil {
				t.Error(c.err)
			}
			var doc struct{ McpServers map[string]any }
			check(t, json.Unmarshal(w.read(file), &doc))
			if len(doc.McpServers) != 21 {
				t.Errorf("%d servers, want 21, after %d writes of the other program", len(doc.McpServers), c.last)
			}
			t.Logf("%d writes of the other program", c.last)
			w.clean(filepath.Join(filepath.Dir(file), "x"))
		})
	}
}

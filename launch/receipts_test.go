package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowFile takes a moment for each write, and none at all while it is full.
type slowFile struct {
	*memory
	full bool
}

func (f *slowFile) Write(p []byte) (int, error) {
	time.Sleep(20 * time.Millisecond)
	if f.full {
		return 0, errors.New("no space left on device")
	}
	return f.memory.Write(p)
}

// TestReceiptsOfABurst holds that every call has its receipt when very many are answered at
// once, and that a line says how many have none where the file did not take them.
func TestReceiptsOfABurst(t *testing.T) {
	const calls = 5000
	for _, full := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			file := &slowFile{newMemory(0), full}
			b := &bench{t: t, client: newMemory(0), out: newMemory(0), log: newMemory(0), up: newUpstream(), done: make(chan Outcome, 1)}
			o := options()
			o.Client, o.Out, o.Log, o.Receipts, o.Upstream = b.client, b.out, b.log, file, b.up.given()
			b.s = New(o)
			go func() { b.done <- b.s.Run(t.Context()) }()
			var asked, answered strings.Builder
			for i := range calls {
				fmt.Fprintf(&asked, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a"}}`+"\n", i)
				fmt.Fprintf(&answered, `{"jsonrpc":"2.0","id":%d,"result":{}}`+"\n", i)
			}
			io.WriteString(b.client, asked.String())
			synctest.Wait()
			io.WriteString(b.up.out, answered.String())
			time.Sleep(time.Minute)
			file.full = false
			b.send(`{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"a"}}`)
			b.serve(`{"jsonrpc":"2.0","id":"last","result":{}}`)
			b.end()
			there, left := 0, 0
			for _, line := range linesOf(file.taken()) {
				var r struct {
					Tool string `json:"tool"`
					Left int    `json:"left_out"`
				}
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatalf("the line %q: %v", line, err)
				}
				left += r.Left
				if r.Tool != "" {
					there++
				}
			}
			if there+left != calls+1 || !full && left > 0 || full && there != 1 {
				t.Errorf("full %v: %d receipts, %d left out", full, there, left)
			}
		})
	}
}

package launch

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestEndsWithoutReader ends a session with very many open requests, whose client does not read
// the answers and does not go away either: the connector is ended, and then the session is over.
func TestEndsWithoutReader(t *testing.T) {
	for what, end := range map[string]func(b *bench, stop func()){
		"the connector ends":      func(b *bench, _ func()) { b.up.out.Close(); b.up.errs.Close() },
		"the client's input ends": func(b *bench, _ func()) { b.client.Close() },
		"it is told to end":       func(_ *bench, stop func()) { stop() },
		"the connector stalls":    func(b *bench, _ func()) { b.s.happen(event{kind: upstreamStalled}) },
		"it is parked":            func(b *bench, stop func()) { go b.s.Park(b.s.o.Parking); time.Sleep(time.Second); stop() },
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			b := &bench{t: t, client: newMemory(0), out: newMemory(1 << 10), log: newMemory(0), up: newUpstream(), done: make(chan Outcome, 1)}
			o := options()
			o.Client, o.Out, o.Log, o.Upstream = b.client, b.out, b.log, b.up.given()
			b.s = New(o)
			go func() { b.done <- b.s.Run(ctx) }()
			var asked strings.Builder
			for i := range 5000 { // the answers are more than is left to a busy writer
				fmt.Fprintf(&asked, `{"jsonrpc":"2.0","id":%d,"method":"x"}`+"\n", i)
			}
			io.WriteString(b.client, asked.String())
			synctest.Wait()
			go end(b, stop)
			select {
			case <-b.done:
			case <-time.After(30 * time.Second):
				t.Errorf("%s: the session is not over", what)
			}
			if !b.up.stopped {
				t.Errorf("%s: the connector was not ended", what)
			}
			b.out.Close() // what still writes to it ends
			b.client.Close()
			for _, m := range []*memory{b.up.in, b.up.out, b.up.errs} {
				m.Close()
			}
		})
	}
}

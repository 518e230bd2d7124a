//go:build unix

package launch

import (
	"context"
	"io"
	"os"
	"testing"
	"time"
)

// TestKilledClientIsNotWaitedFor: a client whose two pipes are gone gets no
// time for answers.
func TestKilledClientIsNotWaitedFor(t *testing.T) {
	clientEnd, client, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	up := newUpstream()
	o.Client, o.Out, o.Upstream = clientEnd, outEnd, up.given()
	done := make(chan Outcome, 1)
	go func() { done <- New(o).Run(context.Background()) }()
	io.WriteString(client, `{"jsonrpc":"2.0","id":1,"method":"slow"}`+"\n")
	up.in.Read(make([]byte, 1))
	if hungUp(outEnd) {
		t.Error("a client that is there is taken for gone")
	}
	began := time.Now()
	out.Close()
	client.Close()
	if end := <-done; end.Cause != ClientEnded || time.Since(began) >= drainLimit {
		t.Errorf("%v after %v", end, time.Since(began))
	}
}

package launch

import (
	"io"
	"testing"
	"time"

	"skald-connectors/keystore"
)

// quietSession is an open session whose lines are handed to it by the test.
func quietSession(tb testing.TB, secretCount int) (client, up *turn, l *link) {
	tb.Helper()
	now := time.Now()
	s := New(Options{Name: "mail", Connector: "imap", Out: io.Discard, Log: io.Discard, Receipts: io.Discard,
		Redactor: keystore.NewRedactor(secrets(secretCount)), Now: func() time.Time { return now },
		Grant: Grant{Deny: []string{"other"}, Accepted: map[string]string{"small": ""}}})
	l = &link{in: newOut(io.Discard, false), redact: s.o.Redactor, Upstream: Upstream{Stop: func() {}}}
	s.link, s.state = l, state{phase: open, greeted: true}
	s.publish()
	client, up = &turn{s: s}, &turn{s: s, link: l}
	up.scanner.replies = true
	tb.Cleanup(s.notes.close)
	return client, up, l
}

var (
	aCall         = []byte(`{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"small","arguments":{"text":"ping"}}}` + "\n")
	anAnswer      = []byte(smallReply)
	aNotification = []byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"message":"working on it"}}` + "\n")
)

// roundTrip is one call with its answer and a notification.
func roundTrip(tb testing.TB, client, up *turn, l *link) {
	client.fromClient(aCall)
	if !client.pass {
		tb.Fatalf("the call did not pass: %s", client.toClient)
	}
	client.carryOut()
	for _, line := range [][]byte{aNotification, anAnswer} {
		if up.fromUpstream(l, line, l.redact.Find(line) != nil); !up.pass {
			tb.Fatalf("the connector's line did not pass: %s", up.toClient)
		}
		up.carryOut()
	}
}

func TestSmallMessagesAllocateNothing(t *testing.T) {
	for _, n := range secretCounts {
		client, up, l := quietSession(t, n)
		if got := testing.AllocsPerRun(2000, func() { roundTrip(t, client, up, l) }); got != 0 {
			t.Errorf("with %d secrets: %v allocations a call, answer and notification", n, got)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	client, up, l := quietSession(b, 10)
	b.ReportAllocs()
	for b.Loop() {
		roundTrip(b, client, up, l)
	}
}

func BenchmarkNotification(b *testing.B) {
	_, up, l := quietSession(b, 10)
	for b.Loop() {
		if up.fromUpstream(l, aNotification, false); !up.pass {
			b.Fatal("it did not pass")
		}
	}
}

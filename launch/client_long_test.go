package launch

import (
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// TestClientTooLong sends lines that are too long: a request is told so under its id, and
// a notification is not answered.
func TestClientTooLong(t *testing.T) {
	if raced {
		t.Skip("messages of 64 MiB; the run without the race detector has them")
	}
	const note = "skald-connectors: kept from imap: a notification of the client's: the line is longer than 64 MiB\n"
	for _, c := range []struct{ head, tail, id, logged string }{
		{`{"jsonrpc":"2.0","method":"m","params":"`, `"}`, "", note},
		{`{"params":{"a":"`, `"},"method":"m","jsonrpc":"2.0"}`, "", note},
		{`{"jsonrpc":"2.0","id":"<7>","method":"tools/call","params":{"name":"`, `"}}`, `"<7>"`, ""},
		{`{"params":"`, `","method":"m","id":8}`, "8", ""},
		{`{"params":"`, `","method":"m","id":8.5}`, "null", ""},
		{`{"params":"`, `","method":"m","id":8,"id":9}`, "null", ""},
		{`{"result":"`, `","id":8}`, "null", ""},
		{`[{"method":"m","params":"`, `"}]`, "null", ""},
		{`{"method":"m","params":"`, `"`, "null", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := begin(t, options(), false)
			for range 2 {
				io.WriteString(b.client, c.head+strings.Repeat("a", lineLimit)+c.tail+"\n")
			}
			if got := b.send(`{"jsonrpc":"2.0","method":"next"}`); got != `{"jsonrpc":"2.0","method":"next"}`+"\n" {
				t.Errorf("%s: the connector got %.80q", c.head, got)
			}
			want := ""
			if c.id != "" {
				want = strings.Repeat(`{"jsonrpc":"2.0","id":`+c.id+`,"error":{"code":-32600,"message":"the line is longer than 64 MiB","data":{"code":"connector.internal"}}}`+"\n", 2)
			}
			if got := b.out.taken(); got != want {
				t.Errorf("%s…%s: the client got %q", c.head, c.tail, got)
			}
			if got := b.logged(); got != c.logged {
				t.Errorf("%s…%s: the log has %q", c.head, c.tail, got)
			}
			b.end()
		})
	}
}

// TestClientEndless holds that a line without an end is not remembered.
func TestClientEndless(t *testing.T) {
	if raced {
		t.Skip("a message of 256 MiB; the run without the race detector has it")
	}
	for what, part := range map[string]string{
		"keys":      strings.Repeat(`"0123456789":0,`, 1<<16),
		"one key":   strings.Repeat("k", 1<<20),
		"one value": `"":"` + strings.Repeat("v", 1<<20) + `",`,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := begin(t, options(), false)
			b.client.limit = 1 << 20
			head := `{"jsonrpc":"2.0","method":"m","params":{`
			if what == "one key" {
				head += `"`
			}
			io.WriteString(b.client, head)
			var before, after runtime.MemStats
			for i := range 256 << 20 / len(part) {
				io.WriteString(b.client, part)
				if i == 128<<20/len(part) {
					runtime.GC()
					runtime.ReadMemStats(&before)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if more := int64(after.HeapAlloc) - int64(before.HeapAlloc); more > 8<<20 {
				t.Errorf("%s: 128 MiB more of a line hold %d bytes more", what, more)
			}
			b.end()
		})
	}
}

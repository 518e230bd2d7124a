package launch

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// TestTooLong: a connector's line without an end ends the session, and every request is answered.
func TestTooLong(t *testing.T) {
	if raced {
		t.Skip("messages of 64 MiB; the run without the race detector has them")
	}
	for _, head := range []string{`noise `, `{"jsonrpc":"2.0","method":"m","params":"`, `{"params":"`, `{"jsonrpc":"2.0","id":7,"result":"`, `{"jsonrpc":"2.0","id":7,"result":bad"`} {
		synctest.Test(t, func(t *testing.T) {
			b := begin(t, options(), false)
			b.send(`{"jsonrpc":"2.0","id":7,"method":"x"}`)
			first := b.serve(`{"jsonrpc":"2.0","method":"first"}`)
			io.WriteString(b.up.out, head)
			for range lineLimit/heldLimit + 1 {
				io.WriteString(b.up.out, strings.Repeat("a", heldLimit))
				synctest.Wait()
			}
			end := <-b.done
			got := linesOf(b.out.taken())
			if first == "" || end.Cause != LineTooLong || end.Detail != "the connector wrote a line of more than 64 MiB" || !b.up.stopped {
				t.Errorf("%s: %v", head, end)
			}
			if last := got[len(got)-1]; !strings.Contains(last, `"id":7,"error"`) || !strings.Contains(last, end.Detail) && !strings.Contains(last, textUnreadable) {
				t.Errorf("%s: the request got %.100q", head, last)
			}
			b.client.Close()
		})
	}
}

// TestStreamsAreCut holds that a long line whose end makes it another message
// is taken for no message at all.
func TestStreamsAreCut(t *testing.T) {
	for _, tail := range []string{`","id":2}`, `","Method":"x"}`, "\x01\"}", `"]`, `"`, `"} x`} {
		synctest.Test(t, func(t *testing.T) {
			b := begin(t, options(), false)
			b.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`)
			io.WriteString(b.up.out, `{"jsonrpc":"2.0","id":1,"result":"`+strings.Repeat("y", 2*heldLimit))
			synctest.Wait()
			io.WriteString(b.up.out, tail+"\n")
			synctest.Wait()
			got := linesOf(b.out.taken())
			var s scanner
			if len(got) != 2 || s.scan([]byte(got[0])) || !strings.HasPrefix(got[1], `{"jsonrpc":"2.0","id":1,"error":{"code":-32603`) {
				t.Errorf("%q: %d lines, the last %.100q", tail, len(got), got[len(got)-1])
			}
			if log := b.logged(); !strings.Contains(log, `"outcome":"error"`) {
				t.Errorf("log %q", log)
			}
			b.end()
		})
	}
}

// TestLongAndBad holds that a long line that is no message gets what a short one gets:
// its request is answered once, and the log shows the beginning without secret values.
func TestLongAndBad(t *testing.T) {
	secret := "qv7-secret value"
	fill := strings.Repeat("a", 2*heldLimit)
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":"` + "\xff" + fill + `"}`:                                    textUnreadable,
		`{"id":1,"result":"` + strings.Repeat("a", 2*noteLimit) + `","jsonrpc":"2.0",bad` + fill + `}`: textUnreadable,
		`{"jsonrpc":"2.0","result":"` + strings.Repeat("a", 2*noteLimit) + `","id":1,bad` + fill + `}`: textUnreadable,
		`{"jsonrpc":"2.0","id":2,"result":"` + "\xff" + fill + `"}`:                                    "",
		`[{"jsonrpc":"2.0","id":1,"result":"` + fill + `"}]`:                                           "",
		strings.Repeat("a", noteLimit-len(secret)/2) + secret + fill:                                   "",
	} {
		synctest.Test(t, func(t *testing.T) {
			b := begin(t, options(handle("T", secret)), false)
			b.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`)
			got := b.serve(line)
			if want == "" && got != "" || want != "" && (strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"error"`) || !strings.Contains(got, want)) {
				t.Errorf("%.50q: the client got %.100q", line, got)
			}
			log := b.logged()
			if strings.Contains(log, secret[:4]) || len(log) > 3*noteLimit || strings.Contains(log, "in the middle") || !strings.Contains(log, "kept from the client") {
				t.Errorf("%.50q: the log has %.300q…%q", line, log, log[max(0, len(log)-100):])
			}
			if strings.Contains(log, `"outcome":"error"`) != (want != "") {
				t.Errorf("%.50q: another receipt: %q", line, log[max(0, len(log)-200):])
			}
			b.end()
		})
	}
}

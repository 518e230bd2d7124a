package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// TestRandomLives wakes, parks, grants and ends at random moments of a busy session: each
// request is answered once, and no connector sees a second initialize.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			b := begin(t, options(), true)
			var ups []*played
			sent := map[string]bool{}
			sendOne := func(i int) {
				id := fmt.Sprintf(`"c%d"`, i)
				method := []string{"initialize", "ping", "tools/list", "resources/list", "x", "tools/call"}[r.IntN(6)]
				sent[id] = true
				fmt.Fprintf(b.client, `{"jsonrpc":"2.0","id":%s,"method":"%s","params":{"name":"a","protocolVersion":"2025-11-25"}}`+"\n", id, method)
			}
			for i := range 60 {
				switch r.IntN(9) {
				case 0:
					p := playUpstream(r.IntN(4) > 0)
					ups = append(ups, p)
					b.s.Wake(*p.up.given())
				case 1:
					b.s.Park(Parking{State: "expired", Code: AuthExpired, Message: "gone"})
				case 2:
					b.s.SetGrant(Grant{Deny: []string{"b"}})
				case 3:
					io.WriteString(b.client, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
				default:
					sendOne(i)
				}
				if r.IntN(2) == 0 {
					synctest.Wait()
				}
			}
			time.Sleep(time.Second)
			b.end()
			answers := map[string]int{}
			for _, line := range linesOf(b.out.taken()) {
				var m struct {
					ID     json.RawMessage
					Method string
				}
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				if m.Method == "" {
					answers[string(m.ID)]++
				}
			}
			for id := range sent {
				if answers[id] != 1 {
					t.Errorf("seed %d: %s has %d answers", seed, id, answers[id])
				}
			}
			for _, p := range ups {
				synctest.Wait()
				if p.greetings > 1 || !p.up.stopped {
					t.Errorf("seed %d: %d times initialize, stopped %v", seed, p.greetings, p.up.stopped)
				}
			}
		})
	}
}

// played is a connector that answers everything, after a moment.
type played struct {
	up        *upstream
	greetings int
}

func playUpstream(answering bool) *played {
	p := &played{up: newUpstream()}
	go func() {
		in := newLines(p.up.in)
		for {
			line, err := in.next(lineLimit)
			if err != nil {
				return
			}
			var m struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.Unmarshal(line, &m)
			result := `{"tools":[],"resources":[]}`
			if m.Method == "initialize" {
				p.greetings++
				result = `{"protocolVersion":"2025-11-25","capabilities":{"resources":{}}}`
			}
			if m.ID != nil && answering {
				time.Sleep(time.Millisecond)
				fmt.Fprintf(p.up.out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
			}
		}
	}()
	return p
}

// TestStopWithoutReader ends although the client reads nothing.
func TestStopWithoutReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		up := newUpstream()
		o.Upstream = up.given()
		out, client := newMemory(1<<10), newMemory(0)
		o.Out, o.Client = out, client
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan Outcome)
		go func() { done <- New(o).Run(ctx) }()
		io.WriteString(up.out, strings.Repeat(`{"jsonrpc":"2.0","method":"n"}`+"\n", 1000))
		synctest.Wait()
		began := time.Now()
		stop()
		if end := <-done; end.Cause != Stopped || time.Since(began) > 5*lastWords {
			t.Errorf("%v after %v", end, time.Since(began))
		}
		out.Close()
		client.Close()
	})
}

// FuzzUpstream holds that whatever a connector writes, the client gets whole
// JSON-RPC messages, none with a value, and those that were good as they were.
func FuzzUpstream(f *testing.F) {
	for _, seed := range scanSeeds {
		f.Add([]byte(seed))
		f.Add([]byte(strings.Replace(seed, "{", `{"jsonrpc":"2.0",`, 1)))
	}
	f.Add([]byte("Content-Length: 12\r\n\r\n{\"jsonrpc\"\n:\"2.0\",\"id\":12345,\"result\":\"sk-000-\"}\n"))
	client, up, l := quietSession(f, 1)
	secret := secrets(1)[0].Value.Reveal()
	f.Add([]byte(`{"jsonrpc":"2.0","id":12345,"error":"` + secret + `"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		client.fromClient(aCall)
		for line := range strings.Lines(string(text)) {
			dirty := l.redact.Find([]byte(line)) != nil
			up.fromUpstream(l, []byte(line), dirty)
			out := string(up.toClient)
			if up.pass {
				out = line + out
			}
			for _, got := range linesOf(out) {
				var m map[string]json.RawMessage
				if !utf8.ValidString(got) || json.Unmarshal([]byte(got), &m) != nil || string(m["jsonrpc"]) != `"2.0"` {
					t.Fatalf("the client got %q", got)
				}
			}
			if strings.Contains(out, secret) {
				t.Fatalf("the value got through: %q", out)
			}
		}
		if c := client.s.ledger.find([]byte("12345")); c != nil {
			client.s.ledger.remove(c)
		}
	})
}

// FuzzClient holds that no reader of what is forwarded sees a call of a tool
// that is not granted.
func FuzzClient(f *testing.F) {
	for _, seed := range scanSeeds {
		f.Add([]byte(seed))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"other"}}`))
	f.Add([]byte(`{"method":"tools/call","params":{"name":"small"},"params":{"Name":"other"}}`))
	client, _, _ := quietSession(f, 0)
	f.Fuzz(func(t *testing.T, line []byte) {
		client.fromClient(line)
		client.s.ledger.each(client.s.ledger.remove)
		if !client.pass {
			return
		}
		var exact map[string]json.RawMessage
		var folding struct {
			Method string
			Params struct{ Name any }
		}
		if err := json.Unmarshal(line, &exact); err != nil {
			t.Fatalf("forwarded %q: %v", line, err)
		}
		_ = json.Unmarshal(line, &folding) // a member may be of another type
		if folding.Method == "tools/call" && folding.Params.Name != "small" {
			t.Fatalf("a call of %v is forwarded: %q", folding.Params.Name, line)
		}
		if folding.Method == "initialize" {
			t.Fatalf("a second initialize is forwarded: %q", line)
		}
	})
}

package launch

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skald-connectors/keystore"
)

// odd are members that re-encoding would change.
var odd = []string{`"n":9007199254740993`, `"n":1.50E+3`, `"s":"<>&\u2028\u00e9\ud800"`, `"s":"` + "é\u2028😀" + `"`, `"A":1,"a":2`, `"deep":[[[{"id":1,"id":2}]]]`, `"e":""`, `"b": [ true ,null ]`}

func oddObject(r *rand.Rand) string {
	if r.IntN(20) == 0 {
		return `{"s":"` + strings.Repeat("x\\n", r.IntN(700_000)) + `"}`
	}
	return "{" + odd[r.IntN(len(odd))] + "}"
}

// inParts writes text in pieces of random size.
func inParts(r *rand.Rand, w io.Writer, text string) {
	for text != "" {
		n := min(1+r.IntN(1<<r.IntN(20)), len(text))
		io.WriteString(w, text[:n])
		text = text[n:]
	}
}

// TestLinesArriveUnchanged sends random lines both ways at once, cut anywhere.
func TestLinesArriveUnchanged(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			b := begin(t, options(handle("T", "some-secret-value"), handle("PIN", "4711")), false)
			b.greet(`{"resources":{}}`)
			b.up.in.taken()
			var up, down strings.Builder
			ends := []string{"\n", "\n", "\r\n", "\n\n", " \t\n"}
			for i := range 40 {
				end := ends[r.IntN(len(ends))]
				switch r.IntN(5) {
				case 0:
					fmt.Fprintf(&up, `{"params":%s,"id":%d,"jsonrpc":"2.0","method":"tools/call"}`+end, strings.Replace(oddObject(r), "{", `{"name":"x",`, 1), i)
					fmt.Fprintf(&down, `{"result":%s,"jsonrpc":"2.0","id":%d}`+end, oddObject(r), i)
				case 1:
					fmt.Fprintf(&up, `{"jsonrpc":"2.0","id":"%d\u00e9","method":"x/y"}`+end, i)
					fmt.Fprintf(&down, `{"jsonrpc":"2.0","id":"%dé","error":%s}`+end, i, oddObject(r))
				case 2:
					fmt.Fprintf(&up, `{"jsonrpc":"2.0","method":"notifications/x","params":%s}`+end, oddObject(r))
				case 3:
					fmt.Fprintf(&down, `{"jsonrpc":"2.0","method":"notifications/x","params":%s}`+end, oddObject(r))
				case 4:
					fmt.Fprintf(&down, `{"jsonrpc":"2.0","method":"roots/list","id":%d}`+end, i)
					fmt.Fprintf(&up, `{"jsonrpc":"2.0","result":%s,"id":%d}`+end, oddObject(r), i)
				}
			}
			inParts(r, b.client, up.String())
			synctest.Wait()
			inParts(r, b.up.out, down.String())
			synctest.Wait()
			sameLines(t, "to the connector", b.up.in.taken(), up.String())
			sameLines(t, "to the client", b.out.taken(), down.String())
			if end := b.end(); end.Cause != ClientEnded {
				t.Errorf("it ended because %s", end.Cause)
			}
		})
	}
}

// sameLines compares byte for byte; lines of white space are skipped.
func sameLines(t *testing.T, what, got, sent string) {
	t.Helper()
	var want strings.Builder
	for line := range strings.Lines(sent) {
		if strings.TrimSpace(line) != "" {
			want.WriteString(line)
		}
	}
	if got != want.String() {
		i := 0
		for i < min(len(got), want.Len()) && got[i] == want.String()[i] {
			i++
		}
		t.Fatalf("%s: %d bytes, want %d; they differ at %d: %.80q", what, len(got), want.Len(), i, got[min(i, len(got)):])
	}
}

// TestEveryCut cuts a session at each byte, and ends it without a line end.
func TestEveryCut(t *testing.T) {
	up := "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\r\n\n" + `{"jsonrpc":"2.0","method":"é"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"x"}`
	down := "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\r\n" + `{"jsonrpc":"2.0","method":"é"}` + "\n" + `{"jsonrpc":"2.0","id":2,"result":{}}`
	for cut := range max(len(up), len(down)) + 1 {
		synctest.Test(t, func(t *testing.T) {
			b := begin(t, options(handle("T", "some-secret-value")), false)
			for _, part := range []string{up[:min(cut, len(up))], up[min(cut, len(up)):]} {
				io.WriteString(b.client, part)
				synctest.Wait()
			}
			b.client.Close()
			synctest.Wait()
			for _, part := range []string{down[:min(cut, len(down))], down[min(cut, len(down)):]} {
				io.WriteString(b.up.out, part)
				synctest.Wait()
			}
			b.up.out.Close()
			synctest.Wait()
			sameLines(t, "to the connector", b.up.in.taken(), up[3:]+"\n")
			sameLines(t, "to the client", b.out.taken(), down[3:]+"\n")
			<-b.done
		})
	}
}

// TestLengths sends lines of telling lengths both ways.
func TestLengths(t *testing.T) {
	for _, n := range []int{1, firstBuffer - 1, firstBuffer, firstBuffer + 1, heldLimit - 1, heldLimit, heldLimit + 1, heldLimit + firstBuffer + 1, 5 << 20, lineLimit - 1} {
		if raced && n > 5<<20 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			b := begin(t, options(handle("T", "some-secret-value")), false)
			head, tail := `{"jsonrpc":"2.0","method":"m","params":"`, `"}`
			line := head + strings.Repeat("a", max(n-len(head)-len(tail), 0)) + tail + "\n"
			io.WriteString(b.client, line)
			io.WriteString(b.up.out, line)
			synctest.Wait()
			if got := b.up.in.taken(); got != line {
				t.Errorf("%d bytes: %d reached the connector", len(line), len(got))
			}
			if got := b.out.taken(); got != line {
				t.Errorf("%d bytes: %d reached the client", len(line), len(got))
			}
			b.end()
		})
	}
}

// TestWithheldAtEveryOffset moves a value through a line, in several encodings, with
// the line held and streamed.
func TestWithheldAtEveryOffset(t *testing.T) {
	secret := `sk-ant/"secret"+value`
	r := keystore.NewRedactor([]keystore.Handle{handle("T", secret)})
	for _, form := range []string{`sk-ant/\"secret\"+value`, "sk-ant%2F%22secret%22%2Bvalue", "c2stYW50LyJzZWNyZXQiK3ZhbHVl", "736b2d616e742f22736563726574222b76616c7565"} {
		for _, fill := range []int{10, heldLimit + 2*firstBuffer} {
			synctest.Test(t, func(t *testing.T) {
				o := options()
				o.Redactor = r
				b := begin(t, o, false)
				for at := range 24 / (1 + fill/heldLimit*5) {
					b.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, at))
					text := strings.Repeat("y", fill) + strings.Repeat("z", at) + form
					inParts(rand.New(rand.NewPCG(uint64(at), 2)), b.up.out, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"%s"}`+"\n", at, text))
					synctest.Wait()
					got := b.out.taken()
					if r.Find([]byte(got)) != nil || strings.Contains(got, form[5:]) {
						t.Fatalf("%s at %d of %d got through", form, at, fill)
					}
					want := `"error":{"code":-32603`
					if fill > heldLimit {
						want = strings.Repeat("z", at) + strings.Repeat("*", len(form)) + `"}`
					}
					if !strings.Contains(got, want) {
						t.Fatalf("%s at %d of %d: the client got ...%q", form, at, fill, got[max(0, len(got)-100):])
					}
				}
				if log := b.logged(); !strings.Contains(log, "secret value of T") || r.Find([]byte(log)) != nil {
					t.Errorf("log %q", log)
				}
				b.end()
			})
		}
	}
}

func TestStalledConnector(t *testing.T) {
	ends := map[string]func() (io.WriteCloser, io.Reader){
		"a pipe with deadlines":    func() (io.WriteCloser, io.Reader) { r, w := net.Pipe(); return w, r },
		"a pipe without deadlines": func() (io.WriteCloser, io.Reader) { m := newMemory(8); return m, m },
	}
	for name, pipe := range ends {
		synctest.Test(t, func(t *testing.T) {
			w, r := pipe()
			o := options()
			up := newUpstream()
			o.Upstream = up.given()
			o.Upstream.Input = w
			b := begin(t, o, false)
			b.up = up
			io.WriteString(b.client, `{"jsonrpc":"2.0","id":1,"method":"slowly"}`+"\n")
			time.Sleep(29 * time.Second)
			_, limited := w.(deadliner)
			if limited {
				r.Read(make([]byte, 4)) // it took something
				time.Sleep(29 * time.Second)
			}
			if len(b.done) > 0 {
				t.Errorf("%s: it is slow and taken for stalled", name)
			}
			began := time.Now()
			end := <-b.done
			latest := stallLimit + 2*stallTick - 29*time.Second // since it took the last byte
			if waited := time.Since(began); end.Cause != UpstreamStalled || end.Detail != "the connector took none of its pending input for 30 s" || waited > latest || !strings.Contains(b.out.taken(), `"id":1,"error"`) {
				t.Errorf("%s: %v after %v", name, end, waited)
			}
			w.Close()
			b.client.Close()
		})
	}
}

// TestBackPressure holds that a slow reader makes nobody hold much.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		b := begin(t, o, false)
		b.out.limit = 1 << 16
		line := `{"jsonrpc":"2.0","method":"m","params":"` + strings.Repeat("a", 1000) + "\"}\n"
		io.WriteString(b.up.out, strings.Repeat(line, 5000))
		synctest.Wait()
		b.up.out.mu.Lock()
		left := len(b.up.out.buf)
		b.up.out.mu.Unlock()
		if taken := 5000*len(line) - left; taken > 2<<20 {
			t.Errorf("%d bytes are held for a client that does not read", taken)
		}
		// The client's requests are still taken, and refusals do not get lost.
		for i := range 20 {
			io.WriteString(b.client, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d.5,"method":"ping"}`+"\n", i))
		}
		if got := b.send(`{"jsonrpc":"2.0","method":"n"}`); got == "" {
			t.Error("the client's line waits for the client to read")
		}
		var got bytes.Buffer
		for got.Len() < 5000*len(line) {
			got.WriteString(b.out.taken())
			synctest.Wait()
		}
		if n := strings.Count(got.String(), `-32600`); strings.Count(got.String(), line) != 5000 || n != 20 {
			t.Errorf("%d lines, %d refusals", strings.Count(got.String(), line), n)
		}
		b.end()
	})
}

// TestStderrNeverStalls floods stderr while nobody reads the log.
func TestStderrNeverStalls(t *testing.T) {
	for _, line := range []string{strings.Repeat("noise ", 100) + "\n", strings.Repeat("noise without an end ", 100)} {
		synctest.Test(t, func(t *testing.T) {
			b := begin(t, options(handle("T", "some-secret-value")), false)
			b.log.limit = 1 << 10
			b.up.errs.limit = 1 << 16
			io.WriteString(b.up.errs, strings.Repeat(line, 5<<20/len(line)))
			b.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
			if got := b.serve(`{"jsonrpc":"2.0","id":1,"result":{}}`); got == "" {
				t.Error("no answer")
			}
			if end := b.end(); end.Cause != ClientEnded {
				t.Error(end)
			}
			b.log.Close()
		})
	}
	synctest.Test(t, func(t *testing.T) { // a log that is closed
		b := begin(t, options(), false)
		b.log.Close()
		io.WriteString(b.up.errs, "x\n")
		b.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		if got := b.serve(`{"jsonrpc":"2.0","id":1,"result":{}}`); got == "" {
			t.Error("no answer")
		}
		b.end()
	})
}

func TestBurstThenEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, options(), false)
		go func() { // answers in turn, a second each
			in := newLines(b.up.in)
			for i := 0; ; i++ {
				if _, err := in.next(lineLimit); err != nil {
					return
				}
				time.Sleep(time.Second)
				fmt.Fprintf(b.up.out, `{"jsonrpc":"2.0","id":%d,"result":{}}`+"\n", i)
			}
		}()
		for i := range 50 {
			fmt.Fprintf(b.client, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a"}}`+"\n", i)
		}
		if end := b.end(); end.Cause != ClientEnded {
			t.Error(end)
		}
		if got := b.out.taken(); strings.Count(got, `"result"`) != 50 || strings.Contains(got, "error") {
			t.Errorf("%d answers: %s", strings.Count(got, `"result"`), got)
		}
		if n := strings.Count(b.receipts.taken(), `"outcome":"ok"`); n != 50 {
			t.Errorf("%d receipts", n)
		}
	})
}

func TestClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, options(), false)
		b.out.Close()
		b.serve(`{"jsonrpc":"2.0","method":"n"}`)
		if end := <-b.done; end.Cause != ClientEnded || !b.up.stopped {
			t.Error(end)
		}
		b.client.Close()
	})
}

func TestWakeAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, options(), true)
		b.end()
		late := newUpstream()
		b.s.Wake(*late.given())
		synctest.Wait()
		if !late.stopped {
			t.Error("a connector that came too late runs on")
		}
		b.s.SetGrant(Grant{})
		b.s.Park(Parking{})
	})
}

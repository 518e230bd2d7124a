package launch

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"

	"skald-connectors/keystore"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// TestTranscripts plays the sessions of testdata/session. A file has a part
// "options" (one setting a line), a part "accepted" (one tool definition a
// line) and a part "session", in which these lines act:
//
//	> LINE   the client writes
//	v LINE   the connector writes
//	= VERB   eof, connector-ends, stop, wake, park, deny TOOL, advance DURATION, stderr TEXT
//
// and these are what came of it: "< LINE" the client reads, "^ LINE" the
// connector reads, "! LINE" the log, "* TEXT" the rest.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/session/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			arch, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]*txtar.File{}
			for i := range arch.Files {
				parts[arch.Files[i].Name] = &arch.Files[i]
			}
			session := parts["session"]
			var got string
			synctest.Test(t, func(t *testing.T) {
				got = play(t, parts, string(session.Data))
			})
			if got == string(session.Data) {
				return
			}
			if *update {
				session.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(arch), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s", diff.Diff("want", session.Data, "got", []byte(got)))
		})
	}
}

// play runs a script and gives the whole transcript.
func play(t *testing.T, parts map[string]*txtar.File, script string) string {
	o, parked := settings(t, parts)
	b := begin(t, o, parked)
	var out strings.Builder
	ended := false
	tell := func() {
		synctest.Wait()
		time.Sleep(2 * sinkDelay)
		synctest.Wait()
		for _, from := range []struct {
			mark string
			m    *memory
		}{{"^", b.up.in}, {"<", b.out}, {"!", b.log}} {
			for _, line := range linesOf(b.steady(from.m.taken())) {
				fmt.Fprintf(&out, "%s %s\n", from.mark, line)
			}
		}
		select {
		case end := <-b.done:
			ended = true
			fmt.Fprintf(&out, "* over: %s; %s\n", end.Cause, end.Detail)
		default:
		}
	}
	tell()
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		verb, text, _ := strings.Cut(line, " ")
		switch verb {
		case "", "#":
			fmt.Fprintln(&out, line)
		case ">", "v", "=":
			fmt.Fprintln(&out, line)
			b.act(verb, text, &out)
			tell()
		}
	}
	if b.client.Close(); !ended {
		b.end()
	}
	return out.String()
}

func (b *bench) act(verb, text string, out io.Writer) {
	switch verb {
	case ">":
		io.WriteString(b.client, text+"\n")
		return
	case "v":
		io.WriteString(b.up.out, strings.ReplaceAll(text, "OWN/", b.s.ownID)+"\n")
		return
	}
	verb, arg, _ := strings.Cut(text, " ")
	switch verb {
	case "eof":
		b.client.Close()
	case "connector-ends":
		b.up.out.Close()
	case "stop":
		b.s.happen(event{kind: stopNow})
	case "wake":
		b.up = newUpstream()
		b.s.Wake(*b.up.given())
	case "park":
		old := b.up
		b.s.Park(Parking{State: "expired", Code: AuthExpired, Message: "the credential of mail has expired; run: skald-connectors auth mail", AuthorizeURL: "https://login.example/start"})
		synctest.Wait()
		fmt.Fprintf(out, "* the connector was stopped: %v\n", old.stopped)
	case "deny":
		b.s.SetGrant(Grant{Deny: strings.Fields(arg), Accepted: b.s.tools.grant.Accepted})
	case "advance":
		d, err := time.ParseDuration(arg)
		if err != nil {
			b.t.Fatal(err)
		}
		time.Sleep(d)
	case "stderr":
		io.WriteString(b.up.errs, arg+"\n")
	default:
		b.t.Fatalf("no verb %q", verb)
	}
}

// settings reads the parts before the session.
func settings(t *testing.T, parts map[string]*txtar.File) (o Options, parked bool) {
	var hs []keystore.Handle
	o = options()
	if p := parts["options"]; p != nil {
		for _, line := range linesOf(string(p.Data)) {
			key, value, _ := strings.Cut(line, " ")
			switch key {
			case "parked":
				parked = true
			case "secret":
				name, v, _ := strings.Cut(value, "=")
				hs = append(hs, handle(name, v))
			case "deny":
				o.Grant.Deny = strings.Fields(value)
			case "allow":
				o.Grant.Allow = strings.Fields(value)
			case "login":
				o.LoginTool = value
			case "probe":
				version, capabilities, _ := strings.Cut(value, " ")
				o.Probe = &Probe{ProtocolVersion: version, Capabilities: capabilities, Instructions: "Ask before you \"send\"."}
			case "title":
				name, v, _ := strings.Cut(value, "=")
				o.Titles = map[string]string{name: v}
			default:
				t.Fatalf("no option %q", key)
			}
		}
	}
	if p := parts["accepted"]; p != nil {
		o.Grant.Accepted = accepted(t, linesOf(string(p.Data))...)
	}
	o.Redactor = keystore.NewRedactor(hs)
	return o, parked
}

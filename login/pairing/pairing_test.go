package pairing

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skald-connectors/form"
	"skald-connectors/internal/qrcode"
)

func TestStep(t *testing.T) {
	answer := func(state, text string) event {
		return event{kind: evAnswer, reply: reply{state: state, text: text}}
	}
	late := func(e event) event { e.late = true; return e }
	alone := func(e event) event { e.alone = true; return e }
	atScan := state{phase: scanning, scanned: true, reply: reply{state: "need_scan", text: "A"}}
	_, shown := atScan.showing(saysScan, reply{state: "need_scan", text: "A"}, effect{})
	atScan.view = shown[0].view
	atJoin := state{phase: joining, scanned: true, view: form.QRView{State: saysJoining}}
	atStart := state{view: form.QRView{State: saysStarting}}
	for _, c := range []struct {
		name  string
		from  state
		event event
		want  state // phase, scanned, resets and odd
		todo  string
	}{
		{"begin", state{}, event{kind: evBegin}, state{}, "show(The connector is starting.) ask"},
		{"connecting", atStart, answer("connecting", ""), state{}, "rest"},
		{"ready at once", atStart, answer("ready", ""), state{}, "end"},
		{"a code", atStart, answer("need_scan", "A"), state{phase: scanning, scanned: true}, "show(Read this code with your phone. Waiting for it. A) rest"},
		{"a code, odd before", state{odd: 5}, answer("need_scan", "A"), state{phase: scanning, scanned: true}, "show(Read this code with your phone. Waiting for it. A) rest"},
		{"no code yet", atStart, answer("need_scan", ""), state{phase: scanning, scanned: true}, "show(Waiting for the code.) rest"},
		{"the same code", atScan, answer("need_scan", "A"), state{phase: scanning, scanned: true}, "rest"},
		{"another code", atScan, answer("need_scan", "B"), state{phase: scanning, scanned: true}, "show(Read this code with your phone. Waiting for it. B) rest"},
		{"the code is gone", atScan, answer("need_scan", ""), state{phase: scanning, scanned: true}, "show(Waiting for the code.) rest"},
		{"scanned", atScan, answer("connecting", ""), state{phase: joining, scanned: true}, "show(The code was read, or has run out: signing in, or getting a new one.) rest"},
		{"paired", atJoin, answer("ready", ""), state{phase: joining, scanned: true}, "end"},
		{"paired in the last moment", atJoin, late(answer("ready", "")), state{phase: joining, scanned: true}, "end"},
		{"the phone gave up", atJoin, answer("need_scan", "C"), state{phase: scanning, scanned: true}, "show(Read this code with your phone. Waiting for it. C) rest"},
		{"logged out", atStart, answer("logged_out", ""), state{resets: 1}, "show(It was logged out. Waiting for a new code.) reset"},
		{"reset is done", state{resets: 1}, event{kind: evDone}, state{resets: 1}, "rest"},
		{"still logged out", state{resets: 1, view: form.QRView{State: saysReset}}, answer("logged_out", ""), state{resets: 2}, "rest"},
		{"logged out for good", state{resets: resetLimit}, answer("logged_out", ""), state{resets: resetLimit + 1}, "end(pairing: the connector says that it was logged out, and offers no new code)"},
		{"logged out, then a code", state{resets: 3}, answer("need_scan", "A"), state{phase: scanning, scanned: true}, "show(Read this code with your phone. Waiting for it. A) rest"},
		{"rested", atScan, event{kind: evRested}, atScan, "ask"},
		{"odd", atScan, event{kind: evOdd, detail: "x"}, state{phase: scanning, scanned: true, odd: 1}, "rest"},
		{"odd for too long", state{odd: oddLimit - 1}, event{kind: evOdd, detail: "it says moo"}, state{odd: oddLimit}, "end(pairing: the connector's answers make no sense: it says moo)"},
		{"late", atScan, late(answer("need_scan", "B")), atScan, "end(pairing: no phone has read the code within 5 minutes)"},
		{"late after a pause", atScan, late(event{kind: evRested}), atScan, "end(pairing: no phone has read the code within 5 minutes)"},
		{"nobody there", atStart, alone(answer("need_scan", "A")), state{}, "end(pairing: a phone has to read a code, and there is no terminal to show it on)"},
		{"nobody there, logged out", atStart, alone(answer("logged_out", "")), state{resets: 1}, "end(pairing: the connector says that it was logged out, and offers no new code)"},
		{"late without a code", atStart, late(answer("connecting", "")), state{}, "end(pairing: the connector did not get ready, and offered no code)"},
		{"nobody there, ready", atStart, alone(answer("ready", "")), state{}, "end"},
		{"nobody there, connecting", atStart, alone(answer("connecting", "")), state{}, "rest"},
	} {
		got, todo := step(c.from, c.event)
		if got.phase != c.want.phase || got.scanned != c.want.scanned || got.resets != c.want.resets || got.odd != c.want.odd {
			t.Errorf("%s: %+v", c.name, got)
		}
		if said := effectsText(todo); said != c.todo {
			t.Errorf("%s: %s, want %s", c.name, said, c.todo)
		}
	}
}

func effectsText(todo []effect) string {
	var out []string
	for _, e := range todo {
		text := []string{"ask", "reset", "rest", "show", "end"}[e.kind]
		switch {
		case e.err != nil:
			text += "(" + e.err.Error() + ")"
		case e.kind == doShow && e.view.Code != nil:
			text += "(" + e.view.State + " " + e.view.Code.Text() + ")"
		case e.kind == doShow:
			text += "(" + e.view.State + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// structured is the result of a tool call with structuredContent.
func structured(t *testing.T, status map[string]any) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"content": []any{}, "structuredContent": status})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestReadResult(t *testing.T) {
	code, err := qrcode.Encode("A")
	if err != nil {
		t.Fatal(err)
	}
	url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(code.PNG())
	in := func(status map[string]any) string { return string(structured(t, status)) }
	for name, c := range map[string]struct{ in, want string }{
		"ready":               {in(map[string]any{"state": "ready"}), "ready"},
		"as text":             {`{"content":[{"type":"text","text":"{\"state\":\"logged_out\",\"message\":\"bye\"}"}]}`, "logged_out bye"},
		"after other text":    {`{"content":[{"type":"text","text":"hello"},{"type":"text","text":"{\"state\":\"ready\"}"}]}`, "ready"},
		"qr null":             {in(map[string]any{"state": "need_scan", "qr": nil}), "need_scan"},
		"image":               {in(map[string]any{"state": "need_scan", "qr": url}), fmt.Sprintf("need_scan image %d", len(code.PNG()))},
		"text":                {in(map[string]any{"state": "need_scan", "qr": "2@x"}), "need_scan text 2@x"},
		"text as a URL":       {in(map[string]any{"state": "need_scan", "qr": "data:text/plain,a%20b"}), "need_scan text a b"},
		"text as base64":      {in(map[string]any{"state": "need_scan", "qr": "data:text/plain;base64,YSBi"}), "need_scan text a b"},
		"the qr of a ready":   {in(map[string]any{"state": "ready", "qr": 7}), "ready"},
		"message too long":    {in(map[string]any{"state": "connecting", "message": strings.Repeat("ä", 400)}), "connecting " + strings.Repeat("ä", 300) + "…"},
		"unknown state":       {in(map[string]any{"state": "pairing"}), `odd: the state "pairing" is not known`},
		"no state":            {in(map[string]any{}), `odd: the state "" is not known`},
		"state of wrong kind": {in(map[string]any{"state": 1}), `odd: the state "" is not known`},
		"huge qr":             {in(map[string]any{"state": "need_scan", "qr": "data:image/png;base64," + strings.Repeat("A", 3<<20)}), "odd: its code has 3145750 bytes"},
		"long text":           {in(map[string]any{"state": "need_scan", "qr": strings.Repeat("A", 3000)}), "odd: its code would say 3000 bytes"},
		"broken URL":          {in(map[string]any{"state": "need_scan", "qr": "data:image/png;base64,*"}), "odd: its code is a data URL that cannot be read"},
		"URL without data":    {in(map[string]any{"state": "need_scan", "qr": "data:image/png"}), "odd: its code is a data URL without data"},
		"error":               {`{"isError":true,"content":[{"type":"text","text":"not now"}]}`, "odd: the tool login_status says: not now"},
		"no object":           {`[1]`, "odd: its answer is no object"},
		"nothing":             {``, "odd: its answer is no object"},
		"other text":          {`{"content":[{"type":"text","text":"fine"}]}`, "odd: its answer names no state"},
		"content of strings":  {`{"content":["x"]}`, "odd: its answer names no state"},
	} {
		e := readResult([]byte(c.in))
		got := "odd: " + e.detail
		if e.kind == evAnswer {
			got = e.reply.state
			if e.reply.text != "" {
				got += " text " + e.reply.text
			}
			if e.reply.image != nil {
				got += fmt.Sprintf(" image %d", len(e.reply.image))
			}
			if e.reply.message != "" {
				got += " " + e.reply.message
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// FuzzReadResult: whatever a server answers, it is read or odd, bounded, and can be shown.
func FuzzReadResult(f *testing.F) {
	f.Add([]byte(`{"structuredContent":{"state":"need_scan","qr":"data:image/png;base64,iVBORw0KGgo="}}`))
	f.Add([]byte(`{"content":[{"type":"text","text":"{\"state\":\"need_scan\",\"qr\":\"data:text/plain,%41\"}"}]}`))
	f.Fuzz(func(t *testing.T, result []byte) {
		e := readResult(result)
		if e.kind != evAnswer && e.kind != evOdd || len(e.reply.text) > textLimit || len(e.reply.message) > 4*messageLimit+4 {
			t.Errorf("%+v", e)
		}
		s, todo := step(state{}, e)
		if len(todo) == 0 || s.phase > joining {
			t.Errorf("%+v leads to nothing", e)
		}
	})
}

// A scripted server answers login_status with one state after the other, and repeats the last.
type scripted struct {
	t      *testing.T
	states []any // what login_status says: a map, raw bytes, or an error
	calls  []string
}

func (s *scripted) Call(_ context.Context, tool string) ([]byte, error) {
	s.calls = append(s.calls, tool)
	if tool == LogoutTool {
		return []byte(`{"content":[]}`), nil
	}
	now := s.states[0]
	if len(s.states) > 1 {
		s.states = s.states[1:]
	}
	switch now := now.(type) {
	case error:
		return nil, now
	case string:
		return []byte(now), nil
	}
	return structured(s.t, now.(map[string]any)), nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func TestRun(t *testing.T) {
	status := func(state string, more ...string) map[string]any {
		m := map[string]any{"state": state}
		for i := 0; i+1 < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	died := errors.New("it ended before it answered")
	for name, c := range map[string]struct {
		states  []any
		alone   bool
		scanned bool
		want    string // the error
		shown   string
		took    time.Duration
		calls   int
	}{
		"paired": {states: []any{status("connecting"), status("need_scan", "qr", "A"), status("need_scan", "qr", "A"), status("need_scan", "qr", "B"), status("connecting", "message", "syncing"), status("ready")},
			scanned: true, shown: "starting|A|B|joining", took: 5 * pollPause, calls: 6},
		"paired already":      {states: []any{status("ready")}, shown: "starting", calls: 1},
		"endless code":        {states: []any{status("need_scan", "qr", "A", "message", "scan me")}, scanned: true, want: "pairing: no phone has read the code within 5 minutes: scan me", shown: "starting|A", took: scanLimit, calls: 120},
		"endless connecting":  {states: []any{status("connecting")}, want: "pairing: the connector did not get ready, and offered no code", shown: "starting", took: scanLimit, calls: 120},
		"logged out at first": {states: []any{status("logged_out"), status("connecting"), status("need_scan", "qr", "A"), status("ready")}, scanned: true, shown: "starting|reset|starting|A", took: 3 * pollPause, calls: 5},
		"logged out for good": {states: []any{status("logged_out")}, want: "pairing: the connector says that it was logged out, and offers no new code", shown: "starting|reset", took: 12 * pollPause, calls: 14},
		"a few odd ones":      {states: []any{`null`, `{"isError":true}`, &Refusal{"busy"}, status("huh"), status("ready")}, shown: "starting", took: 4 * pollPause, calls: 5},
		"only odd ones":       {states: []any{status("huh")}, want: `pairing: the connector's answers make no sense: the state "huh" is not known`, shown: "starting", took: 11 * pollPause, calls: 12},
		"it dies":             {states: []any{status("need_scan", "qr", "A"), died}, scanned: true, want: died.Error(), shown: "starting|A", took: pollPause, calls: 2},
		"nobody is there":     {states: []any{status("connecting"), status("need_scan")}, alone: true, want: "pairing: a phone has to read a code, and there is no terminal to show it on", took: lookPause, calls: 2},
		"picture":             {states: []any{status("need_scan", "qr", "data:image/png;base64,AAAA"), status("ready")}, scanned: true, shown: "starting|picture", took: pollPause, calls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &scripted{t: t, states: slices.Clone(c.states)}
				var shown []string
				p := &Pairing{Server: server, Now: time.Now, Wait: wait, Show: func(v form.QRView) {
					word := map[string]string{saysStarting: "starting", saysReset: "reset", saysPicture: "picture", saysJoining: "joining", saysWaiting: "waiting"}[v.State]
					if v.Code != nil {
						word = v.Code.Text()
					}
					if len(shown) == 0 || shown[len(shown)-1] != word {
						shown = append(shown, word)
					}
				}}
				if c.alone {
					p.Show = nil
				}
				began := time.Now()
				scanned, err := p.Run(t.Context())
				text := ""
				if err != nil {
					text = err.Error()
				}
				if text != c.want || scanned != c.scanned {
					t.Errorf("scanned %v, error %q", scanned, text)
				}
				if got := strings.Join(shown, "|"); got != c.shown {
					t.Errorf("shown: %s", got)
				}
				if took := time.Since(began); took != c.took || len(server.calls) != c.calls {
					t.Errorf("%d calls in %s", len(server.calls), took)
				}
			})
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := errors.New("left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(left) })
		p := &Pairing{Server: &scripted{t: t, states: []any{map[string]any{"state": "connecting"}}}, Show: func(form.QRView) {}, Now: time.Now, Wait: wait}
		if _, err := p.Run(ctx); !errors.Is(err, left) {
			t.Errorf("%v", err)
		}
	})
}

package activate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/internal/tooldef"
	"skald-connectors/keystore"
	"skald-connectors/login/pairing"
	"skald-connectors/sandbox"
)

// callLimit bounds one call of a connector's own tools: it has to ask its service
// at most once for it.
const callLimit = 30 * time.Second

// upstream is a local server that was started to be asked by us. One goroutine
// uses it.
type upstream struct {
	t       *trial
	process *sandbox.Process
	policy  sandbox.Policy
	command sandbox.Command
	peer    *stdioPeer
	redact  *keystore.Redactor
	tail    *tailWriter // of its stderr
	drained chan struct{}
	calls   int
	late    atomic.Int64 // the limit that it did not keep, in ns; 0 = none
}

// startUpstream starts the server of a trial. It ends with ctx. Errors: *ProbeError.
func (a *Activator) startUpstream(ctx context.Context, t *trial) (*upstream, error) {
	argv, err := serverArgv(t)
	if err != nil {
		return nil, err
	}
	env, _ := connectorEnviron(t.base(a), t.manifest, t.values, t.dir)
	u := &upstream{t: t, policy: t.policy(a), command: sandbox.Command{Argv: argv, Dir: t.dir, Env: env},
		redact: keystore.NewRedactor(t.values.handles()), tail: &tailWriter{limit: probeStderr}, drained: make(chan struct{})}
	if u.process, err = t.box.Start(ctx, u.policy, u.command); err != nil {
		return nil, &ProbeError{Connector: t.manifest.ID, Err: err}
	}
	go func() {
		defer close(u.drained)
		struck := u.redact.Writer(u.tail) // before the tail is cut: half a value is not found
		_, _ = io.Copy(struck, u.process.Stderr)
		_ = struck.Close()
	}()
	u.peer = newStdioPeer(u.process.Stdin, u.process.Stdout)
	return u, nil
}

// within ends the server where do takes longer than the limit.
func (u *upstream) within(limit time.Duration, do func() error) error {
	timer := time.AfterFunc(limit, func() {
		u.late.Store(int64(limit))
		u.process.Close(sandbox.Ladder{})
	})
	defer timer.Stop()
	return do()
}

// greet completes the handshake and lists the tools. Those for the sign-in are
// this program's business: they are not among the connector's tools.
func (u *upstream) greet() (p *record.Probe, err error) {
	err = u.within(probeLimit, func() error {
		p, err = handshake(u.peer)
		return err
	})
	if err != nil {
		return nil, err
	}
	if signsInByQR(u.t.manifest) {
		if !slices.ContainsFunc(p.Tools, func(t tooldef.Tool) bool { return t.Name == pairing.StatusTool }) {
			return nil, fmt.Errorf("it signs in by a QR code and has no tool %s", pairing.StatusTool)
		}
		p.Tools = slices.DeleteFunc(p.Tools, func(t tooldef.Tool) bool {
			return t.Name == pairing.StatusTool || t.Name == pairing.LogoutTool
		})
	}
	strike(p, u.redact)
	return p, nil
}

// Call calls a tool without arguments; it is pairing.Server.
func (u *upstream) Call(ctx context.Context, tool string) (result []byte, err error) {
	u.calls++
	err = u.within(callLimit, func() error {
		doc, raw, err := u.peer.call(probePages+1+u.calls, "tools/call", map[string]any{"name": tool, "arguments": map[string]any{}})
		if err == nil {
			result = []byte(u.redact.String(string(raw[doc.Start:doc.End])))
		}
		return err
	})
	var refused *answerError
	switch {
	case errors.As(err, &refused):
		return nil, &pairing.Refusal{Message: u.redact.String(refused.message)}
	case err != nil:
		return nil, u.failed(ctx, err)
	}
	return result, nil
}

// end ends the server and waits for its last words.
func (u *upstream) end(l sandbox.Ladder) sandbox.Result {
	end := u.process.Close(l)
	<-u.drained
	return end
}

// failed ends a server that did not answer as it should, and says so: a
// *ProbeError, or the context's error.
func (u *upstream) failed(ctx context.Context, err error) error {
	end := u.end(probeLadder)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) {
		err = fmt.Errorf("it ended before it answered (%s)", ending(end))
	}
	if limit := time.Duration(u.late.Load()); limit > 0 {
		err = fmt.Errorf("it did not answer within %d s%s", int(limit.Seconds()), u.peer.instead(u.redact))
	}
	denied := append(end.Denied, u.t.box.Explain(u.policy, u.command, []byte(u.tail.String()))...)
	return &ProbeError{Connector: u.t.manifest.ID, Err: safeError(u.redact, err), Stderr: safeLines(u.tail.String()), Denied: denied}
}

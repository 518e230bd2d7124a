package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/install"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/keystore"
	"skald-connectors/launch"
	"skald-connectors/login/pairing"
	"skald-connectors/sandbox"
)

const (
	// logSize and callsSize bound one file of a journal; two older ones are kept.
	logSize, callsSize = 2 << 20, 4 << 20
)

// sessionLadder is how a connector ends (launcher.md section 5).
var sessionLadder = sandbox.Ladder{Stdin: 5 * time.Second, Term: 2 * time.Second}

type runOptions struct {
	name, mode, transport, configDir string
	configGiven                      bool
}

func (a *app) runCommand() *cobra.Command {
	o := &runOptions{}
	c := &cobra.Command{
		Use:     "run NAME",
		GroupID: "main",
		Short:   "Serve an installed connector to an MCP client",
		Long: "run is what an MCP client starts. It starts the connector in its sandbox, with its secrets,\n" +
			"and stands between the two until the client ends. Standard output carries MCP messages and\n" +
			"nothing else. Without credentials it serves a status that says what to do, and starts the\n" +
			"connector as soon as they are there.",
		Example: "  skald-connectors run email",
		Args: func(cmd *cobra.Command, args []string) error {
			a.serving = "NAME"
			if len(args) != 1 {
				return usagef("run takes NAME; given: %d", len(args))
			}
			a.serving = args[0]
			return nil
		},
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name, o.configGiven = args[0], cmd.Flags().Changed("config-dir")
			return a.serve(cmd.Context(), o)
		},
	}
	c.Flags().StringVar(&o.mode, "mode", "standalone", "how it is used: standalone (`MODE`)")
	c.Flags().StringVar(&o.transport, "transport", "stdio", "how it speaks to the client: stdio (`TRANSPORT`)")
	c.Flags().StringVar(&o.configDir, "config-dir", "", "configuration folder of the engine that starts it (`DIR`, an absolute path)")
	return c
}

// check refuses what cannot be served before anything is looked at.
func (o *runOptions) check() error {
	switch {
	case o.mode != "standalone":
		return usagef("--mode %q: this program serves standalone only", o.mode)
	case o.transport != "stdio":
		return usagef("--transport %q: this program serves stdio only", o.transport)
	case o.configGiven && !filepath.IsAbs(o.configDir):
		return usagef("--config-dir %q is not an absolute path", o.configDir)
	}
	return nil
}

// served is one session as cmd sees it: the record that it follows, the
// journals, and what is running.
type served struct {
	app   *app
	act   *activate.Activator
	name  string
	start *activate.Start
	sess  *launch.Session
	log   io.Writer
	up    *runningUpstream // nil while parked
	seen  recordState
	told  bool                 // that another version was put in place
	used  *activate.InUseError // another session has the one upstream; nil = none
	out   chan struct{}        // the connector says that nobody is signed in
	again bool                 // it was parked: the record is looked at again when the connector has ended
	held  heldKeeper
	// renewAt is when the sign-in of a running local server is looked after; zero = never, or that is under way.
	renewAt time.Time
	renewBy time.Time      // the same by the time that passes, however the clock is set meanwhile
	renewed chan time.Time // holds one
}

// serve is `run`. What ends it is told as an exit code and one line.
func (a *app) serve(ctx context.Context, o *runOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	a.noInput = true // whoever started this is a program
	act, err := a.openHome()
	if err != nil {
		return err
	}
	s := &served{app: a, act: act, name: o.name, out: make(chan struct{}, 1), renewed: make(chan time.Time, 1), held: heldKeeper{path: heldPath(act.Home, o.name)}}
	s.seen = s.lookAtRecord()
	if s.start, err = act.Prepare(ctx, o.name); err != nil {
		return err
	}
	defer func() { s.start.Release() }()
	calls, closeJournals := s.openJournals()
	defer closeJournals()
	opts := s.options(calls)
	s.noteLine("session begins: version %s, %s", displayVersion(s.start.Record), orElse(parkedWord(s.start), "ready"))
	kill, stopKill := sessionSignals()
	defer stopKill()
	s.sess = launch.New(opts)
	if !s.start.Parked() {
		up, run, err := s.connect(ctx, s.start, kill)
		switch {
		case errors.As(err, &s.used):
			s.noteLine("it is parked: %v", err)
			s.sess.Park(parkingOf(s.start, err))
		case err != nil:
			s.noteLine("session ends: %v", err)
			return err
		default:
			s.up = run
			s.renewNext(s.start.RenewAt())
			s.sess.Wake(*up)
		}
	}
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); s.follow(watching, kill) }()
	out := s.sess.Run(ctx)
	stop()
	<-watched
	s.keepHeld()
	act.Settle()
	s.noteLine("session ends: %s", strings.TrimSpace(out.Cause.String()+" "+out.Detail))
	return s.ended(ctx, out)
}

// ended turns the end of a session into the program's end.
func (s *served) ended(ctx context.Context, out launch.Outcome) error {
	if ctx.Err() != nil || out.Cause == launch.ClientEnded || out.Cause == launch.Stopped {
		return nil
	}
	reason := orElse(out.Detail, out.Cause.String())
	if s.up != nil && s.up.process != nil && out.Cause == launch.UpstreamEnded {
		reason += " (" + endOf(s.up.process.Wait()) + ")"
	}
	err := &exitError{exitConnector, fmt.Errorf("%s: %s", s.name, reason)}
	if out.Cause == launch.RestartClient {
		return withHint(err, "restart the client, so that it begins a new session")
	}
	return err
}

func endOf(r sandbox.Result) string {
	if r.Signal != "" {
		return "signal " + r.Signal
	}
	return fmt.Sprintf("exit code %d", r.Code)
}

func (s *served) options(calls io.Writer) launch.Options {
	rec := s.start.Record
	o := launch.Options{
		Name: s.name, Connector: rec.Connector, Version: versionString(), Client: s.app.stdin, Out: s.app.protocol(),
		Log: s.log, Receipts: calls, Redactor: s.start.Redactor, Grant: grantOf(rec), Titles: s.start.Titles,
		Parking: parkingOf(s.start, nil), Now: s.app.hooks.now, Clean: form.Clean, Held: s.held.set,
	}
	if isQR(rec) {
		o.LoginTool = pairing.StatusTool
		o.SignedOut = func() {
			select {
			case s.out <- struct{}{}:
			default: // it is known already
			}
		}
	}
	if p := rec.Probe; p != nil {
		o.Probe = &launch.Probe{ProtocolVersion: p.ProtocolVersion, Capabilities: string(p.Capabilities), Instructions: p.Instructions}
	}
	return o
}

// protocol is the stream that the client reads: the file itself, where there is one.
func (a *app) protocol() io.Writer {
	if f := fileOf(a.stdout); f != nil {
		return f
	}
	return a.stdout
}

func grantOf(rec *record.Record) launch.Grant {
	g := launch.Grant{Allow: rec.Grant.Allow, Deny: rec.Grant.Deny}
	if isQR(rec) { // these are for us
		g.Deny = append(slices.Clone(g.Deny), pairing.StatusTool, pairing.LogoutTool)
	}
	if rec.Probe == nil {
		return g // nothing was ever accepted
	}
	g.Accepted = map[string]string{}
	for _, t := range rec.Tools {
		g.Accepted[t.Name] = t.Digest
	}
	return g
}

// sessionSignals closes a channel at the second signal that asks us to end.
func sessionSignals() (<-chan struct{}, func()) {
	ch, second, done := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A client that closed its end of standard output or standard error is an
	// error of a write, not our death.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	go func() {
		for range 2 {
			select {
			case <-ch:
			case <-done:
				return
			}
		}
		close(second)
	}()
	return second, func() { signal.Stop(ch); signal.Stop(pipe); close(done) }
}

// openJournals opens the log and the receipts of the activation. A disk that
// cannot be written to is told and keeps nobody from working.
func (s *served) openJournals() (calls io.Writer, closeAll func()) {
	logPath, callsPath := s.act.JournalPaths(s.name)
	s.log = s.app.stderr
	var opened []*launch.Journal
	open := func(path, what string, size int64) *launch.Journal {
		err := atomicfile.PrivateDir(filepath.Dir(path))
		var j *launch.Journal
		if err == nil {
			j, err = launch.OpenJournal(path, size)
		}
		if err != nil {
			s.app.say("note: %s of this session is kept: %v", what, err)
			return nil
		}
		opened = append(opened, j)
		return j
	}
	if j := open(logPath, "no log", logSize); j != nil {
		s.log = &teeLog{file: j, stream: s.app.stderr, now: s.app.hooks.now}
	}
	if j := open(callsPath, "no receipt", callsSize); j != nil {
		calls = j
	}
	return calls, func() {
		for _, j := range opened {
			_ = j.Close() // nothing is buffered
		}
	}
}

// noteLine writes a line of ours into the log of the activation only.
func (s *served) noteLine(format string, args ...any) { s.note(s.start.Redactor, format, args...) }

func (s *served) note(r *keystore.Redactor, format string, args ...any) {
	if t, ok := s.log.(*teeLog); ok {
		text := form.Clean(r.String(fmt.Sprintf(format, args...)))
		t.write([]byte(program + "[" + fmt.Sprint(os.Getpid()) + "]: " + text + "\n"))
	}
}

// teeLog writes lines to the log file, each with its time, and to standard
// error as they are.
type teeLog struct {
	file   io.Writer
	stream io.Writer
	now    func() time.Time
}

func (t *teeLog) Write(lines []byte) (int, error) {
	t.write(lines)
	return t.stream.Write(lines)
}

func (t *teeLog) write(lines []byte) {
	stamp := t.now().UTC().Format("2006-01-02T15:04:05.000Z ")
	var out strings.Builder
	for line := range strings.Lines(string(lines)) {
		out.WriteString(stamp + line)
	}
	_, _ = t.file.Write([]byte(out.String())) // the log is not worth the session
}

// runCode is the exit code and the code word of what ended `run` (launcher.md
// section 1): it knows 0, 1, 2, 4 and 5.
func runCode(err error) (int, string) {
	var changed *install.ChangedError
	if errors.As(err, &changed) {
		return exitUsage, "connector.changed"
	}
	switch code, _ := classify(err); {
	case code == exitInterrupted:
		return exitDone, ""
	case code == exitNotFound:
		return exitNotFound, "connector.not_installed"
	case code == exitConnector:
		return exitConnector, "connector.internal"
	}
	return exitUsage, "connector.internal"
}

// finishRun says in one line what ended `run`.
func (a *app) finishRun(err error) int {
	code, word := runCode(err)
	if code == exitDone {
		return code
	}
	reason := words(err)
	_, hint := classify(err)
	if word == "connector.changed" {
		hint = "repair it with " + program + " verify " + a.serving
	}
	if hint != "" {
		reason += "; " + hint
	}
	fmt.Fprintf(a.stderr, "%s: %s: %s\n", program, word, reason)
	return code
}

package launch

import (
	"context"
	"crypto/rand"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"skald-connectors/keystore"
)

// lastWords bounds the wait for a client that does not take the last lines of a
// session that is over.
const lastWords = 2 * time.Second

// Cause says why a session ended.
type Cause uint8

const (
	ClientEnded     Cause = iota // the client's input ended, or it no longer reads
	Stopped                      // the context was cancelled
	UpstreamEnded                // the connector ended by itself
	UpstreamStalled              // the connector took none of its input for 30 s
	LineTooLong                  // the connector wrote a line of more than 64 MiB
	RestartClient                // the woken connector speaks another protocol version
)

// Options is what a session is given. All but the marked ones are needed.
type Options struct {
	Name, Connector string    // the activation and the connector's id
	Version         string    // of this program, for serverInfo of a parked session
	Client          io.Reader // what the client writes
	Out             io.Writer // what the client reads
	// Log gets whole lines, the program's prefix on each, no control characters:
	// notes, receipts, and the connector's stderr. It may block or fail; the
	// protocol does not wait for it.
	Log io.Writer
	// Receipts gets one JSON line for each answered tools/call; nil: nowhere.
	Receipts io.Writer
	Redactor *keystore.Redactor
	Grant    Grant
	Titles   map[string]string // by tool: the manifest's display names; may be nil
	Probe    *Probe            // what the install probe recorded; may be nil
	Upstream *Upstream         // nil: the session begins parked
	Parking  Parking           // why it is parked, or what it says when Park has not said it
	// LoginTool is asked after initialize and after a failed call, at most once
	// a minute; when it says logged_out or need_scan the session parks. "": none.
	LoginTool string
	// SignedOut is told, in a goroutine of its own, that it parked for that reason;
	// nil: nobody.
	SignedOut func()
	// Held is told which tools are held back, by name with the digest of the
	// definition that was seen ("" where it has none). whole: the list of tools was
	// seen to its end; else only a part of it, and there is more than was told
	// before. It must not wait for anything; nil: nobody.
	Held  func(held map[string]string, whole bool)
	Now   func() time.Time
	Clean func(string) string // makes foreign text safe for a terminal, on one line
}

// Probe is what a connector answered to initialize when it was started once.
// The members are JSON, "" when there are none.
type Probe struct {
	ProtocolVersion string
	Capabilities    string
	Instructions    string // text, not JSON
}

// Parking says why nothing upstream can serve the session.
type Parking struct {
	State        string // of the status: "unauthorized" or "expired"
	Code         string // AuthRequired or AuthExpired
	Message      string // one sentence that says what to run
	AuthorizeURL string // where to sign in; "" when there is none
}

// The error codes of data.code that a Parking may have.
const (
	AuthRequired = "connector.auth_required"
	AuthExpired  = "connector.auth_expired"
)

// Upstream is a connector that has been started.
type Upstream struct {
	Input  io.WriteCloser
	Output io.Reader
	Errors io.Reader // its stderr; nil when it has none
	// Stop ends it and returns when it has ended; Output ends soon after. It is
	// called once, in a goroutine of its own, when the session is done with
	// it, also when it ended by itself.
	Stop     func()
	Redactor *keystore.Redactor // its secrets; nil: those of the options
}

// Outcome is how a session ended.
type Outcome struct {
	Cause  Cause
	Detail string // one clean sentence; "" when there is nothing to say
}

// Session is one client's session. Its methods may be called by several
// goroutines.
type Session struct {
	o      Options
	uri    string // of the status resource
	ownID  string // prefix of the ids of the launcher's own requests
	client *out
	notes  *notes

	mu        sync.Mutex
	state     state
	ledger    *ledger
	tools     toolbox
	gather    gather
	link      *link
	redactor  *keystore.Redactor
	parking   Parking
	greeting  []byte // the params of the client's initialize, for waking
	wishes    wishes
	capable   capable // of wishes, the woken connector
	requested string  // the protocol version that the client asked for
	told      string  // the protocol version that the client was told
	ownCount  int
	asked     time.Time // when LoginTool was asked last
	askLater  bool      // it is asked again when a minute has passed
	drain     *time.Timer
	detail    string
	done      chan struct{}
	passing   atomic.Pointer[link] // whose requests and notifications go on
	links     []*link              // all that were taken
	readers   sync.WaitGroup       // of their output
	lost      sync.Once
	longTold  bool // that a notification was too long
}

// link is an upstream with its writing end.
type link struct {
	Upstream
	in      *out
	redact  *keystore.Redactor
	stop    sync.Once
	stopped chan struct{}
	seen    foreignSeen
}

// New prepares a session; nothing is read or written before Run.
func New(o Options) *Session {
	if o.Clean == nil {
		o.Clean = printable
	}
	s := &Session{
		o: o, uri: "connector://" + o.Name + "/status", ownID: "skald-connectors/" + rand.Text() + "/",
		client: newOut(o.Out, false), notes: newNotes(o), ledger: newLedger(), redactor: o.Redactor,
		parking: o.Parking, done: make(chan struct{}),
	}
	s.tools.set(o.Grant)
	return s
}

// printable shows what is not printable as escapes.
func printable(s string) string {
	var out strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			out.WriteRune(r)
		} else {
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return out.String()
}

// Run serves the session to its end. The client's input may still be read in
// the background when it returns, if it cannot be interrupted.
func (s *Session) Run(ctx context.Context) Outcome {
	widen(s.o.Client)
	widen(s.o.Out)
	if s.o.Upstream != nil {
		s.Wake(*s.o.Upstream)
	}
	go s.pumpClient()
	select {
	case <-s.done:
	case <-ctx.Done():
		s.happen(event{kind: stopNow})
		<-s.done
	}
	if d, ok := s.o.Client.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = d.SetReadDeadline(time.Unix(1, 0))
	}
	for _, l := range s.links { // no more come when the session is over
		s.end(l)
		<-l.stopped
	}
	within(lastWords, s.readers.Wait)
	within(lastWords, func() { s.client.begin(); _ = s.client.end() })
	s.notes.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Outcome{Cause: s.state.cause, Detail: s.detail}
}

// Wake hands a started connector to a parked session. Any other session stops
// it again.
func (s *Session) Wake(up Upstream) {
	l := &link{Upstream: up, in: newOut(up.Input, true), stopped: make(chan struct{})}
	if l.redact = up.Redactor; l.redact == nil {
		l.redact = s.o.Redactor
	}
	widen(up.Input)
	widen(up.Output)
	t := &turn{s: s, offered: l}
	s.mu.Lock()
	t.decide(event{kind: wakeUp})
	s.mu.Unlock()
	t.carryOut()
}

// Park ends the connector of an open session and answers in its place from now
// on; in a parked session it changes what is said.
func (s *Session) Park(p Parking) {
	s.mu.Lock()
	s.parking = p
	s.mu.Unlock()
	s.happen(event{kind: parkNow})
}

// SetGrant changes at once what is let through.
func (s *Session) SetGrant(g Grant) {
	s.mu.Lock()
	s.tools.set(g)
	s.mu.Unlock()
	s.happen(event{kind: newGrant})
}

// happen is for events that have no line.
func (s *Session) happen(e event) {
	t := &turn{s: s}
	s.mu.Lock()
	e.waiting = s.ledger.waiting
	t.decide(e)
	s.mu.Unlock()
	t.carryOut()
}

// take makes l the session's upstream; the lock is held.
func (s *Session) take(l *link) {
	s.link = l
	s.links = append(s.links, l)
	s.redactor = l.redact
	s.readers.Add(1)
	go s.pumpUpstream(l)
	if l.Errors != nil {
		s.readers.Add(1)
		go s.pumpErrors(l)
	}
}

// end stops an upstream, once. When its reader does not come to the end
// soon after, because the client takes nothing, the session does not wait for it.
func (s *Session) end(l *link) {
	l.stop.Do(func() {
		go func() {
			l.Stop()
			close(l.stopped)
			select {
			case <-s.done:
			case <-time.After(lastWords):
				s.mu.Lock()
				current := s.link == l
				s.mu.Unlock()
				if current {
					s.happen(event{kind: upstreamEnd})
				}
			}
		}()
	})
}

// within calls wait and returns when it has returned, or after the limit.
func within(limit time.Duration, wait func()) {
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		wait()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-waited:
	case <-timer.C:
	}
}

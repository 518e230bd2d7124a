package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// confined is one command made ready for its back end.
type confined struct {
	program string   // what is started: bubblewrap, or this program
	argv    []string // of program
	extra   []*os.File
	orders  orders
	signal  syscall.Signal // at the parent's death
	undo    []func()
	egress  *egress                     // nil where the network is not filtered
	judge   func(netip.AddrPort) string // nil where connects are not judged
	unix    socketRules
	refused denied
	group   cgroup
}

// release takes back what prepare made.
func (cf *confined) release() {
	for _, f := range cf.extra {
		_ = f.Close()
	}
	cf.extra = nil
	if cf.unix.root >= 0 {
		_ = unix.Close(cf.unix.root)
		cf.unix.root = -1
	}
	for _, undo := range slices.Backward(cf.undo) {
		undo()
	}
	cf.undo = nil
}

// begin starts c under the back end of s.
func (s *Sandbox) begin(p Policy, c Command, path string, pipes *pipes) (*child, func() []Denial, error) {
	cf, err := s.prepare(p, c, path)
	if err != nil {
		return nil, nil, err
	}
	ch, err := s.spawnConfined(cf, c, pipes)
	if err != nil {
		cf.release()
		return nil, nil, err
	}
	return ch, cf.settle, nil
}

// settle takes back what was made for the process, which is over, and tells what
// it was refused.
func (cf *confined) settle() []Denial {
	var denied []Denial
	cf.release()
	if cf.egress != nil {
		denied = cf.egress.denials()
	}
	return append(denied, cf.refused.all()...)
}

// prepare turns policy and command into what the back end starts.
func (s *Sandbox) prepare(p Policy, c Command, path string) (*confined, error) {
	if err := s.refuses(p); err != nil {
		return nil, err
	}
	sp, err := s.spotsOf(p, c, path)
	if err != nil {
		return nil, err
	}
	m, err := newMark()
	if err != nil {
		return nil, err
	}
	cf := &confined{signal: syscall.SIGKILL, unix: newSocketRules(p, sp)}
	cf.orders = orders{Path: []byte(path), Argv: bytesOf(c.Argv), Env: bytesOf(c.Env), Dir: []byte(c.Dir), Mark: m, Resources: p.Limits.resources()}
	cf.orders.Calls = callRules{Unix: needsUnix(p), Namespaces: p.Browser}
	if s.mode == Landlock {
		err = s.prepareLandlock(cf, p, c, sp)
	} else {
		err = s.prepareBwrap(cf, p, c, sp)
	}
	if err == nil {
		err = cf.limitProcesses(p.Limits)
	}
	if err != nil {
		cf.release()
		return nil, err
	}
	return cf, nil
}

// prepareBwrap: namespaces outside, the filter for calls inside, and Landlock as
// well where the kernel has it.
func (s *Sandbox) prepareBwrap(cf *confined, p Policy, c Command, sp spots) error {
	share := p.Network.All || onlyLoopback(p)
	w, err := s.wrap(p, sp, share)
	cf.extra = w.files
	if err != nil {
		return err
	}
	cf.program, cf.argv = s.bwrap, append([]string{s.bwrap}, w.args...)
	if !share {
		if cf.egress, err = s.newEgress(p); err != nil {
			return err
		}
		cf.undo = append(cf.undo, cf.egress.close)
		cf.orders.Env = bytesOf(withoutProxy(c.Env)) // there is nothing to reach a proxy by, and no need of one
		cf.orders.Forward, cf.orders.Ports = true, cf.egress.ports()
	}
	if share {
		s.share(cf, p)
	} else if needsUnix(p) {
		// The network is the forwarder's matter; only what has a path is judged.
		cf.orders.Calls.AskConnect, cf.judge = true, func(netip.AddrPort) string { return "" }
	}
	if s.mode == Combined {
		cf.orders.Landlock = s.facts.Landlock
		cf.orders.Paths = pathRules{Read: []string{"/"}, Write: slices.Concat(sp.write, devices, present("/tmp", "/dev/shm", sp.home, sp.tmp))}
		if p.Browser {
			cf.orders.Paths.Write = append(cf.orders.Paths.Write, "/proc") // it maps the users of its namespaces there
		}
		cf.orders.Paths.NoBind = cf.orders.Calls.NoListen
	}
	return nil
}

// onlyLoopback tells whether p grants this machine's own addresses and no other.
func onlyLoopback(p Policy) bool {
	return p.Loopback && !p.Network.All && len(p.Network.Hosts) == 0
}

// share sets the rules for a process in the machine's own network.
func (s *Sandbox) share(cf *confined, p Policy) {
	calls := &cf.orders.Calls
	calls.NoDatagrams = !p.Network.All
	// A listener lets the outside in; with the whole network that is needed for
	// nothing but sign-ins and browsers, which talk to this machine.
	calls.NoListen = !p.Browser && (!p.Loopback || !p.Network.All)
	if s.facts.Watch == "" {
		calls.AskConnect, calls.AskBind = true, needsUnix(p) // a name without a file could be another program's
		cf.unix.noListen = calls.NoListen
		cf.judge = judgement(p, nameservers())
	}
}

// needsUnix tells whether p grants something that talks over sockets of the Unix family.
func needsUnix(p Policy) bool { return p.Agent != "" || p.Browser }

func present(paths ...string) []string {
	return slices.DeleteFunc(paths, func(p string) bool { return p == "" })
}

// prepareLandlock: the rules of the kernel on the machine's own tree. There are
// no mounts, so home and temporary folder are other folders, and the environment
// names them.
func (s *Sandbox) prepareLandlock(cf *confined, p Policy, c Command, sp spots) error {
	cf.program, cf.argv, cf.signal = s.self, []string{s.self, stageWord}, orphanSignal
	o := &cf.orders
	o.Guard, o.Landlock = true, s.facts.Landlock
	o.Paths.Read = slices.Concat(systemFolders, systemFiles, nameFiles, machineFiles, sp.read)
	o.Paths.Write = slices.Concat(sp.write, devices)
	if p.Network.All || onlyLoopback(p) {
		s.share(cf, p)
	} else {
		o.Calls.NoInet = true
	}
	o.Paths.NoBind, o.Paths.NoConnect = o.Calls.NoInet || o.Calls.NoListen, o.Calls.NoInet
	home, remove, err := s.privateFolder()
	if err != nil {
		return err
	}
	cf.undo = append(cf.undo, remove)
	o.Paths.Write = append(o.Paths.Write, home)
	o.Env = bytesOf(private(c.Env, home, sp.write))
	return nil
}

// withoutProxy leaves the proxy variables out.
func withoutProxy(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
}

// spawnConfined starts cf and returns when the program itself runs.
func (s *Sandbox) spawnConfined(cf *confined, c Command, p *pipes) (*child, error) {
	w, theirs, err := newWire()
	if err != nil {
		return nil, fmt.Errorf("starting %q: %w", program(c), err)
	}
	defer w.close()
	ch := &child{ended: make(chan struct{}), stage: true, mark: cf.orders.Mark}
	outer := Command{Argv: cf.argv, Dir: "/"}
	err = ch.bound(func() (err error) {
		all := slices.Concat(p.theirs[:], []*os.File{theirs}, cf.extra)
		ch.proc, err = startProcess(cf.program, outer, all, syscall.SysProcAttr{Pdeathsig: cf.signal})
		if err == nil {
			ch.pid = ch.proc.Pid
		}
		return err
	})
	_ = theirs.Close()
	p.closeTheirs() // else the end of standard error is never seen below
	if err != nil {
		return nil, &UnenforceableError{What: "mode " + quote(string(s.mode)), Why: explain(cf.program, cf.program, err).Error()}
	}
	if err := cf.handshake(w); err != nil {
		return nil, s.failed(ch, cf, c, err, p.ours[2])
	}
	return ch, nil
}

// errStage is what the stage reported.
type errStage struct{ report }

func (e *errStage) Error() string { return e.Text }

// handshake gives the orders and returns when the program runs.
func (cf *confined) handshake(w *wire) error {
	if err := w.setPatience(); err != nil {
		return err
	}
	if err := w.tell(cf.orders); err != nil {
		return err
	}
	var r report
	if err := unpack(w, &r); err != nil {
		return err
	}
	if r.Stage != "here" {
		return &errStage{r}
	}
	if cf.egress != nil {
		fds := w.fds
		w.fds = nil
		if err := cf.egress.serve(fds); err != nil {
			return err
		}
	}
	if err := cf.group.enter(w.pid); err != nil {
		return err
	}
	if cf.orders.Calls.Unix { // before anything of the connector's runs
		root, err := unix.Open(fmt.Sprintf("/proc/%d/root", w.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("opening the files of the sandbox: %w", err)
		}
		cf.unix.root = root
	}
	if _, err := w.send([]byte{1}); err != nil {
		return err
	}
	if err := unpack(w, &r); err != nil {
		return err
	}
	if r.Stage != "bound" {
		return &errStage{r}
	}
	if cf.judge != nil {
		if err := cf.watch(w); err != nil {
			return err
		}
	}
	switch err := unpack(w, &r); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return &errStage{r}
}

// watch takes the descriptor on which the kernel asks about connects.
func (cf *confined) watch(w *wire) error {
	if len(w.fds) != 1 {
		return fmt.Errorf("the helper gave %d descriptors, not one", len(w.fds))
	}
	fd := w.fds[0]
	w.fds = nil
	watcher, err := newWatcher(fd, cf.judge, cf.unix, &cf.refused)
	cf.unix.root = -1
	if err == nil {
		cf.undo = append(cf.undo, watcher.close)
	}
	return err
}

// failed ends what was begun and says why it came to nothing: the program could
// not be started, or the back end does not hold.
func (s *Sandbox) failed(ch *child, cf *confined, c Command, cause error, stderr *os.File) error {
	ch.kill()
	<-ch.ended
	_, _ = ch.reap()
	if e, ok := errors.AsType[*errStage](cause); ok {
		if e.Stage == "start" && e.Errno != 0 {
			err := explain(program(c), string(cf.orders.Path), syscall.Errno(e.Errno))
			return s.unseen(err, cf, c)
		}
		return &UnenforceableError{What: "mode " + quote(string(s.mode)), Why: e.Text}
	}
	why := lastLine(stderr)
	if why == "" {
		why = plain(cause)
		if errors.Is(cause, io.EOF) || errors.Is(cause, unix.EPIPE) || errors.Is(cause, unix.ECONNRESET) {
			why = "the helper ended before it was done"
		}
	}
	return &UnenforceableError{What: "mode " + quote(string(s.mode)), Why: why}
}

// unseen tells a folder or program that is there but not shown inside.
func (s *Sandbox) unseen(e *StartError, cf *confined, c Command) *StartError {
	if errors.Is(e, os.ErrNotExist) || errors.Is(e, os.ErrPermission) {
		if !cf.shows(c.Dir) {
			e.Problem = "the working folder " + quote(c.Dir) + " is not visible in the sandbox"
		} else if !cf.shows(string(cf.orders.Path)) {
			e.Problem = "it is not visible in the sandbox"
		}
	}
	return e
}

// shows tells whether path is in something that the process may read.
func (cf *confined) shows(path string) bool {
	if cf.orders.Guard {
		return below(path, slices.Concat(cf.orders.Paths.Read, cf.orders.Paths.Write))
	}
	return below(path, slices.Concat(systemFolders, cf.shown()))
}

// shown lists the paths that the arguments of bubblewrap show.
func (cf *confined) shown() []string {
	var list []string
	for i, a := range cf.argv[:max(0, len(cf.argv)-2)] {
		switch a {
		case "--bind", "--ro-bind":
			list = append(list, cf.argv[i+2])
		}
	}
	return list
}

// lastLine reads the last line that the helper wrote before its end.
func lastLine(f *os.File) string {
	const limit = 4096 // an error of bubblewrap is one line
	_ = f.SetReadDeadline(time.Now().Add(drainWait))
	text, _ := io.ReadAll(io.LimitReader(f, limit))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "bwrap: ")
}

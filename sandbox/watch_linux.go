package sandbox

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where a process shares the machine's network, each of its connects is judged by
// this program: the kernel holds the call (seccomp's user notification), we read
// the address, and either refuse or connect the very socket ourselves. The call
// is never let through to be carried out inside, since another thread could have
// changed the address by then. Single datagrams to an address are not seen. So are
// the sockets of the Unix family judged under a grant that needs some (unix_linux.go).

const (
	// longestAddress is the size of struct sockaddr_storage.
	longestAddress = 128
	// mostWaiting bounds the connects of one process that wait for an answer of
	// the other side.
	mostWaiting = 256
)

// watcher judges the connects of one process.
type watcher struct {
	fd      int
	stop    [2]int // a pipe: closing the second end ends run
	judge   func(netip.AddrPort) (why string)
	unix    socketRules
	refused *denied
	slots   chan struct{}
	wg      sync.WaitGroup // of run
	open    sync.WaitGroup // of decisions, which use fd
}

func newWatcher(fd int, judge func(netip.AddrPort) string, sockets socketRules, refused *denied) (*watcher, error) {
	w := &watcher{fd: fd, judge: judge, unix: sockets, refused: refused, slots: make(chan struct{}, mostWaiting)}
	if err := unix.Pipe2(w.stop[:], unix.O_CLOEXEC); err != nil {
		_ = unix.Close(fd)
		_ = unix.Close(sockets.root)
		return nil, err
	}
	w.wg.Go(w.run)
	return w, nil
}

// close ends the judging; the process is over by then. A connect that still waits
// for the other side ends when the kernel gives it up.
func (w *watcher) close() {
	_ = unix.Close(w.stop[1])
	w.wg.Wait()
	_ = unix.Close(w.stop[0])
	go func() {
		w.open.Wait()
		_ = unix.Close(w.fd)
		_ = unix.Close(w.unix.root)
	}()
}

func (w *watcher) run() {
	for {
		fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}, {Fd: int32(w.stop[0]), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if fds[1].Revents != 0 || fds[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
			return
		}
		if fds[0].Revents&unix.POLLIN == 0 {
			continue
		}
		var n notification
		if w.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != 0 {
			continue // the caller is gone
		}
		select {
		case w.slots <- struct{}{}:
			w.open.Go(func() {
				defer func() { <-w.slots }()
				w.decide(n)
			})
		default:
			w.answer(n.ID, unix.EAGAIN)
		}
	}
}

// notification is struct seccomp_notif.
type notification struct {
	ID         uint64
	PID, Flags uint32
	Nr         int32
	Arch       uint32
	Pointer    uint64
	Args       [6]uint64
}

func (w *watcher) ioctl(request uint, arg unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.fd), uintptr(request), uintptr(arg))
	return errno
}

// answer ends the call with errno, 0 for success.
func (w *watcher) answer(id uint64, errno unix.Errno) {
	resp := struct {
		ID    uint64
		Value int64
		Error int32
		Flags uint32
	}{ID: id, Error: -int32(errno)}
	_ = w.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&resp)) // gone is no fault
}

// decide judges one connect or bind and carries it out.
func (w *watcher) decide(n notification) {
	address, errno := w.read(n)
	held := -1
	if errno == 0 {
		address, held, errno = w.meant(address, n.Nr)
	}
	if held >= 0 {
		defer unix.Close(held)
	}
	if errno != 0 {
		w.answer(n.ID, errno)
		return
	}
	fd, errno := w.borrow(n)
	if errno != 0 {
		w.answer(n.ID, errno)
		return
	}
	defer unix.Close(fd)
	if n.Nr == unix.SYS_BIND && !w.unix.mayBind(fd, address) {
		w.answer(n.ID, unix.EACCES)
		return
	}
	w.answer(n.ID, carryOut(n.Nr, fd, address))
}

// meant gives the address by which we reach what the process named, with a
// descriptor that must stay open until then (else -1), or why it must not be.
func (w *watcher) meant(address []byte, call int32) ([]byte, int, unix.Errno) {
	switch family := binary.NativeEndian.Uint16(address); {
	case family == unix.AF_UNSPEC && call == unix.SYS_CONNECT:
		return address, -1, 0 // it takes a connection back
	case family == unix.AF_UNIX:
		return w.unix.find(address, call)
	case family == unix.AF_NETLINK && call == unix.SYS_BIND:
		return address, -1, 0
	}
	to, ok := addressOf(address)
	if !ok {
		return nil, -1, unix.EACCES
	}
	if call == unix.SYS_BIND {
		return address, -1, 0
	}
	if why := w.judge(to); why != "" {
		w.refused.add(Denial{Kind: DeniedNetwork, Target: to.String(), Why: why})
		return nil, -1, unix.EACCES
	}
	return address, -1, 0
}

// addressOf reads a struct sockaddr_in or sockaddr_in6.
func addressOf(b []byte) (netip.AddrPort, bool) {
	family := binary.NativeEndian.Uint16(b)
	switch {
	case family == unix.AF_INET && len(b) >= 8:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:])), true
	case family == unix.AF_INET6 && len(b) >= 24:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), binary.BigEndian.Uint16(b[2:])), true
	}
	return netip.AddrPort{}, false
}

// read copies the address out of the caller's memory, and makes sure that the
// caller is still the one that asks.
func (w *watcher) read(n notification) ([]byte, unix.Errno) {
	size := n.Args[2]
	if size < 2 || size > longestAddress {
		return nil, unix.EINVAL
	}
	f, err := os.Open("/proc/" + strconv.Itoa(int(n.PID)) + "/mem")
	if err != nil {
		return nil, unix.EACCES
	}
	defer f.Close()
	b := make([]byte, size)
	if _, err := f.ReadAt(b, int64(n.Args[1])); err != nil {
		return nil, unix.EFAULT
	}
	if w.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.ID)) != 0 {
		return nil, unix.EINTR
	}
	return b, 0
}

// borrow takes a copy of the caller's socket.
func (w *watcher) borrow(n notification) (int, unix.Errno) {
	pidfd, err := unix.PidfdOpen(groupOf(int(n.PID)), 0)
	if err != nil {
		return -1, unix.EACCES
	}
	defer unix.Close(pidfd)
	if w.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.ID)) != 0 {
		return -1, unix.EINTR // else pid may be somebody else by now
	}
	fd, err := unix.PidfdGetfd(pidfd, int(int32(n.Args[0])), 0)
	if errors.Is(err, unix.EBADF) {
		return -1, unix.EBADF
	}
	if err != nil {
		return -1, unix.EACCES
	}
	return fd, 0
}

// groupOf gives the process that a thread belongs to.
func groupOf(thread int) int {
	const statusLimit = 4096
	status := string(firstBytes("/proc/"+strconv.Itoa(thread)+"/status", statusLimit))
	_, rest, _ := strings.Cut(status, "\nTgid:")
	line, _, _ := strings.Cut(rest, "\n")
	if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
		return pid
	}
	return thread
}

// judgement makes the rule for a process that shares the machine's network:
// everything but link-local and metadata addresses, or this machine only.
func judgement(p Policy, nameservers []netip.Addr) func(netip.AddrPort) string {
	named, _ := parseHosts(p.Network.Hosts) // refused before, where they cannot be read
	return func(to netip.AddrPort) string {
		addr := to.Addr().Unmap().WithZone("")
		kind := special(addr)
		for _, server := range nameservers {
			if p.Network.All && to.Port() == dnsPort && addr == server {
				return ""
			}
		}
		switch {
		case kind == kindLoopback && namesHere(named, addr, int(to.Port())):
			return ""
		case kind == kindLoopback && !p.Loopback:
			return "this machine's own addresses are not granted"
		case kind != kindLoopback && !p.Network.All:
			return "only this machine's own addresses are granted"
		case kind == kindLink:
			return "it is " + kind
		}
		return ""
	}
}

// namesHere tells whether one of the hosts is this port of this machine.
func namesHere(list []hostRule, addr netip.Addr, port int) bool {
	return slices.ContainsFunc(list, func(r hostRule) bool {
		here := r.name == "localhost" && !r.below && addr.IsLoopback() || r.prefix.IsValid() && r.prefix.Bits() == addr.BitLen() && r.prefix.Addr() == addr
		return here && r.port == port
	})
}

// nameservers reads the servers for names of this machine.
func nameservers() []netip.Addr {
	const resolvLimit = 64 << 10
	var list []netip.Addr
	for line := range strings.Lines(string(firstBytes("/etc/resolv.conf", resolvLimit))) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if addr, err := netip.ParseAddr(words[1]); err == nil {
			list = append(list, addr.Unmap().WithZone(""))
		}
	}
	return list
}

package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// callRules says how the filter differs between policies; the deny-list of
// security.md 3.2 is always in it.
type callRules struct {
	// NoInet refuses sockets of the internet families: there is no network and
	// no namespace that takes it away.
	NoInet bool
	// NoDatagrams leaves only streams of the internet families.
	NoDatagrams bool
	// NoListen refuses listening for connections.
	NoListen bool
	// Unix allows sockets of the Unix family, for connections; it comes with AskConnect.
	Unix bool
	// Namespaces allows namespaces of its own: a browser confines its pages with them.
	Namespaces bool
	// AskConnect leaves each connect to the parent (watch_linux.go), AskBind each bind.
	AskConnect, AskBind bool
}

// always are the calls that are refused with EPERM under every policy.
var always = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// ownNamespaces are the flags of clone that make a namespace.
const ownNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME

const (
	protoMPTCP    = 262        // IPPROTO_MPTCP: a TCP that Landlock does not see (security.md 0.2)
	tiocLinux     = 0x541c     // TIOCLINUX: types into a console
	typeMask      = 0xf        // the type of a socket without its flags
	fastOpen      = 0x20000000 // MSG_FASTOPEN: a connect inside a send
	x32Bit        = 0x40000000 // the calls of the x32 world, on amd64
	dataNr        = 0          // offsets in struct seccomp_data
	dataArch      = 4
	dataArgs      = 16
	setModeFilter = 1 // SECCOMP_SET_MODE_FILTER
)

// allow, kill and ask are the answers of a filter; refuse makes the others.
const (
	allow uint32 = unix.SECCOMP_RET_ALLOW
	kill  uint32 = unix.SECCOMP_RET_KILL_PROCESS
	ask   uint32 = unix.SECCOMP_RET_USER_NOTIF
)

func refuse(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// filter is a program of the classic BPF machine under construction. Blocks end
// with an answer, so that a jump only ever skips forward over one block.
type filter []unix.SockFilter

func (f *filter) op(code uint16, k uint32) {
	*f = append(*f, unix.SockFilter{Code: code, K: k})
}

func (f *filter) load(offset uint32) { f.op(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset) }

// arg loads the low half of argument n: the kernel reads no more of an int, and
// both machines of native are little-endian.
func (f *filter) arg(n uint32) { f.load(dataArgs + 8*n) }

func (f *filter) answer(a uint32) { f.op(unix.BPF_RET|unix.BPF_K, a) }

// equal runs body when the loaded word is k; body ends with an answer.
func (f *filter) equal(k uint32, body func(*filter)) { f.branch(unix.BPF_JEQ, k, body) }

// anyBit runs body when the loaded word has one of the bits of k.
func (f *filter) anyBit(k uint32, body func(*filter)) { f.branch(unix.BPF_JSET, k, body) }

func (f *filter) branch(test uint16, k uint32, body func(*filter)) {
	var b filter
	body(&b)
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jf: uint8(len(b)), K: k})
	*f = append(*f, b...)
}

func answer(a uint32) func(*filter) { return func(f *filter) { f.answer(a) } }

// build makes the filter. A call with a rule of its own is answered in its block;
// all others fall through to allow.
func (r callRules) build(machine arch) filter {
	var f filter
	f.load(dataArch)
	f.op(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, machine.audit)
	f[len(f)-1].Jt = 1
	f.answer(kill) // a 32-bit program would have other numbers for its calls
	f.load(dataNr)
	if machine.x32 {
		f.op(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, x32Bit)
		f[len(f)-1].Jf = 1
		f.answer(kill)
	}
	for _, nr := range append(append([]uint32(nil), always...), machine.more...) {
		f.equal(nr, answer(refuse(unix.EPERM)))
	}
	for _, nr := range []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3} {
		f.equal(nr, answer(refuse(unix.ENOSYS))) // libraries know kernels without them
	}
	r.sockets(&f)
	r.others(&f)
	f.answer(allow)
	return f
}

func (r callRules) sockets(f *filter) {
	f.equal(unix.SYS_SOCKET, r.socket)
	f.equal(unix.SYS_SOCKETPAIR, connections)
	if r.NoListen {
		f.equal(unix.SYS_LISTEN, answer(refuse(unix.EACCES)))
	}
	if !r.AskConnect {
		return
	}
	f.equal(unix.SYS_CONNECT, answer(ask))
	if r.AskBind {
		f.equal(unix.SYS_BIND, answer(ask))
	}
	for nr, flags := range map[uint32]uint32{unix.SYS_SENDTO: 3, unix.SYS_SENDMSG: 2, unix.SYS_SENDMMSG: 3} {
		f.equal(nr, func(f *filter) {
			f.arg(flags)
			f.anyBit(fastOpen, answer(refuse(unix.EOPNOTSUPP)))
			f.answer(allow)
		})
	}
}

// connections allows sockets that talk to one other, for a socket of the Unix
// family: with one for datagrams sendto reaches any such socket by its name, and
// one of type RAW is one for datagrams too.
func connections(f *filter) {
	f.arg(1)
	f.op(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, typeMask)
	f.equal(unix.SOCK_STREAM, answer(allow))
	f.equal(unix.SOCK_SEQPACKET, answer(allow))
	f.answer(refuse(unix.EACCES))
}

// socket allows the internet families and netlink (which tells a program its own
// addresses), and nothing else.
func (r callRules) socket(f *filter) {
	inet := func(f *filter) {
		if r.NoInet {
			f.answer(refuse(unix.EACCES))
			return
		}
		if r.NoDatagrams {
			f.arg(1)
			f.op(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, typeMask)
			f.op(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SOCK_STREAM)
			(*f)[len(*f)-1].Jt = 1
			f.answer(refuse(unix.EACCES))
		}
		f.arg(2)
		f.equal(protoMPTCP, answer(refuse(unix.EPROTONOSUPPORT)))
		f.answer(allow)
	}
	f.arg(0)
	f.equal(unix.AF_INET, inet)
	f.equal(unix.AF_INET6, inet)
	f.equal(unix.AF_NETLINK, answer(allow))
	if r.Unix {
		f.equal(unix.AF_UNIX, connections)
	} else {
		f.equal(unix.AF_UNIX, answer(refuse(unix.EACCES)))
	}
	f.answer(refuse(unix.EAFNOSUPPORT))
}

func (r callRules) others(f *filter) {
	f.equal(unix.SYS_IOCTL, func(f *filter) {
		f.arg(1)
		f.equal(unix.TIOCSTI, answer(refuse(unix.EPERM)))
		f.equal(tiocLinux, answer(refuse(unix.EPERM)))
		f.answer(allow)
	})
	if !r.Namespaces {
		f.equal(unix.SYS_CLONE, func(f *filter) {
			f.arg(0)
			f.anyBit(ownNamespaces, answer(refuse(unix.EPERM)))
			f.answer(allow)
		})
		for _, nr := range []uint32{unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT} {
			f.equal(nr, answer(refuse(unix.EPERM)))
		}
	}
	// The mark by which the tree is found (tree_linux.go) stays.
	f.equal(unix.SYS_SETRLIMIT, func(f *filter) {
		f.arg(0)
		f.equal(unix.RLIMIT_RTTIME, answer(refuse(unix.EPERM)))
		f.answer(allow)
	})
	f.equal(unix.SYS_PRLIMIT64, func(f *filter) {
		f.arg(1)
		f.equal(unix.RLIMIT_RTTIME, func(f *filter) {
			for _, half := range []uint32{0, 4} { // reading it has no new value
				f.load(dataArgs + 8*2 + half)
				f.op(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0)
				(*f)[len(*f)-1].Jt = 1
				f.answer(refuse(unix.EPERM))
			}
			f.answer(allow)
		})
		f.answer(allow)
	})
}

// arch is a machine whose numbers of calls we know.
type arch struct {
	audit uint32
	x32   bool
	more  []uint32 // calls to refuse that only this machine has
}

// install puts the filter on the calling thread, which has no_new_privs. With
// AskConnect it returns the descriptor on which the questions arrive, else -1.
func (r callRules) install() (int, error) {
	if native.audit == 0 {
		return -1, fmt.Errorf("no filter for system calls is written for %s", runtime.GOARCH)
	}
	code := r.build(native)
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	var flags uintptr
	if r.AskConnect {
		// A signal must not send the caller back to ask again while we connect.
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, flags, uintptr(unsafe.Pointer(&prog)))
	if errno == unix.EINVAL && r.AskConnect { // kernels before 5.19
		fd, _, errno = unix.Syscall(unix.SYS_SECCOMP, setModeFilter, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&prog)))
	}
	runtime.KeepAlive(code)
	switch {
	case errno != 0:
		return -1, errno
	case !r.AskConnect:
		return -1, nil
	}
	return int(fd), nil
}

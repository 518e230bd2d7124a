package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// The parent and the second start of this program inside the sandbox (the stage,
// stage_linux.go) talk over a pair of sockets, descriptor stageFD of the stage:
//
//	parent → stage   orders: what to restrict and what to run; with the
//	                 environment, which so is in no argument and not in the
//	                 environment of bubblewrap
//	stage → parent   report "here", with the sockets that it opened in its network
//	parent → stage   one byte: go on
//	stage → parent   report "bound" when the restrictions hold, then, where the
//	                 program could not be started, a report with the cause
//
// The end of the stream after "bound" tells that the program runs. A message is
// four bytes of length, big-endian, and JSON.

// stageFD is where the stage finds its end.
const stageFD = 3

// orderLimit bounds one message: the kernel takes no longer arguments and
// environment than a quarter of the stack limit, which is 8 MiB by default.
const orderLimit = 16 << 20

// orders are what the stage does. Strings of the system are bytes, since JSON
// would change those that are no UTF-8.
type orders struct {
	Path      []byte
	Argv, Env [][]byte
	Dir       []byte
	// Guard keeps the stage as the parent of the program, to end what it leaves
	// when this program is killed.
	Guard bool
	// Forward opens the sockets of the forwarder, for these TCP ports.
	Forward bool
	Ports   []int

	Mark      mark
	Resources []resource
	Landlock  int // version, 0 for none
	Paths     pathRules
	Calls     callRules
}

// report is a message of the stage.
type report struct {
	Stage string // "here", "bound", or what failed
	Errno int    // of a failed start, else 0
	Text  string // of any other failure
}

func bytesOf(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func stringsOf(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}

// pack makes one message.
func pack(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(body) > orderLimit {
		return nil, fmt.Errorf("arguments and environment are longer than %d bytes", orderLimit)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), nil
}

// unpack reads one message. io.EOF means that the other end is gone.
func unpack(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > orderLimit {
		return fmt.Errorf("a message of %d bytes", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}

// wire is one end of the channel. Descriptors and credentials that arrive with
// the bytes are kept.
type wire struct {
	fd  int
	pid int   // of the stage, as we number it; 0 until a message came
	fds []int // received and not yet taken
}

// newWire makes both ends; ours also learns who writes.
func newWire() (ours *wire, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs = os.NewFile(uintptr(pair[1]), "stage")
	if err := unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		_ = unix.Close(pair[0])
		_ = theirs.Close()
		return nil, nil, err
	}
	return &wire{fd: pair[0]}, theirs, nil
}

// patience bounds each wait for the other end, in seconds: making the namespaces
// takes milliseconds, on a machine under load seconds.
const patience = 30

func (w *wire) setPatience() error {
	return unix.SetsockoptTimeval(w.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: patience})
}

func (w *wire) Write(p []byte) (int, error) { return w.send(p) }

// send writes p, with fds attached to its first byte.
func (w *wire) send(p []byte, fds ...int) (int, error) {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	sent := 0
	for sent < len(p) {
		n, err := unix.SendmsgN(w.fd, p[sent:], rights, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return sent, err
		}
		sent, rights = sent+n, nil
	}
	return sent, nil
}

// mostFDs is the most descriptors in one message (SCM_MAX_FD).
const mostFDs = 253

func (w *wire) Read(p []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4*mostFDs)+unix.CmsgSpace(unix.SizeofUcred))
	for {
		n, oobn, _, _, err := unix.Recvmsg(w.fd, p, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, err
		}
		w.take(oob[:oobn])
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}
}

// take keeps what came beside the bytes.
func (w *wire) take(oob []byte) {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return
	}
	for i := range list {
		if fds, err := unix.ParseUnixRights(&list[i]); err == nil {
			w.fds = append(w.fds, fds...)
		}
		if cred, err := unix.ParseUnixCredentials(&list[i]); err == nil && cred.Pid > 0 {
			w.pid = int(cred.Pid)
		}
	}
}

// tell sends one message.
func (w *wire) tell(v any, fds ...int) error {
	msg, err := pack(v)
	if err != nil {
		return err
	}
	_, err = w.send(msg, fds...)
	return err
}

// close ends the channel and what nobody took.
func (w *wire) close() {
	_ = unix.Close(w.fd)
	for _, fd := range w.fds {
		_ = unix.Close(fd)
	}
	w.fds = nil
}

package sandbox

import (
	"encoding/binary"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sockets of the Unix family under a grant that needs them (an agent, a browser).
// A name is looked up by us, in the files of the sandbox as they were at its
// beginning (the process may change its root), through no link; what is then
// connected to is the file that was found, and no name any more.

// socketRules say which sockets of the Unix family a process may name.
type socketRules struct {
	agent    string   // may be connected to; a path of the machine
	own      []string // folders in which it may have sockets; paths of the sandbox
	foreign  []string // what is shown to it of others, also in a folder of own
	root     int      // the root of the sandbox, -1 where none is needed
	noListen bool     // TCP ports may not be bound
}

// newSocketRules makes those of p. Its own folders are those that only the
// connector itself can put sockets into.
func newSocketRules(p Policy, sp spots) socketRules {
	u := socketRules{agent: p.Agent, root: -1, foreign: slices.Clone(sp.read), own: present("/tmp", "/dev/shm", sp.home, sp.tmp)}
	for _, folder := range p.Own {
		u.own = both(u.own, filepath.Clean(folder))
	}
	for _, folder := range p.Write {
		u.foreign = both(u.foreign, filepath.Clean(folder))
	}
	return u
}

// mine tells whether name, which is clean, is in a folder of the connector's own.
func (u socketRules) mine(name string) bool {
	nearest := func(list []string) (long int) {
		for _, folder := range list {
			if name != folder && below(name, []string{folder}) {
				long = max(long, len(folder))
			}
		}
		return long
	}
	return !slices.Contains(u.foreign, name) && nearest(u.own) > nearest(u.foreign)
}

// find turns an address that a process named into one by which we reach the same
// file. The caller closes the descriptor, -1 where there is none.
func (u socketRules) find(address []byte, call int32) (found []byte, fd int, errno unix.Errno) {
	name := string(address[2:])
	if i := slices.Index(address[2:], 0); i >= 0 {
		name = name[:i]
	}
	if call == unix.SYS_CONNECT && u.agent != "" && name == u.agent {
		return unixAddress(name), -1, 0
	}
	if !path.IsAbs(name) || !u.mine(path.Clean(name)) {
		return nil, -1, unix.EACCES // also a name without a file, and one that depends on the folder of the caller
	}
	name, rest := path.Clean(name), ""
	if call == unix.SYS_BIND {
		name, rest = path.Dir(name), "/"+path.Base(name)
	}
	fd, err := unix.Openat2(u.root, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err == unix.ENOENT || err == unix.ENOTDIR {
		return nil, -1, err.(unix.Errno)
	}
	if err != nil {
		return nil, -1, unix.EACCES
	}
	found = unixAddress("/proc/self/fd/" + strconv.Itoa(fd) + rest)
	if len(found) > unix.SizeofSockaddrUnix {
		_ = unix.Close(fd)
		return nil, -1, unix.ENAMETOOLONG
	}
	return found, fd, 0
}

// unixAddress makes a struct sockaddr_un.
func unixAddress(name string) []byte {
	return append(append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), name...), 0)
}

// unprivileged is the first port that anybody may listen on.
const unprivileged = 1024

// mayBind tells whether the process itself could bind its socket fd to address:
// we may have rights here that it has not.
func (u socketRules) mayBind(fd int, address []byte) bool {
	if binary.NativeEndian.Uint16(address) == unix.AF_NETLINK {
		protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
		return err == nil && protocol == unix.NETLINK_ROUTE // its groups are open to anybody
	}
	to, ok := addressOf(address)
	if !ok {
		return true // of the Unix family, judged before
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && (to.Port() == 0 || to.Port() >= unprivileged) && !(u.noListen && kind == unix.SOCK_STREAM)
}

// carryOut makes the call on a copy of the caller's socket.
func carryOut(call int32, fd int, address []byte) unix.Errno {
	_, _, errno := unix.Syscall(uintptr(call), uintptr(fd), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)))
	return errno
}

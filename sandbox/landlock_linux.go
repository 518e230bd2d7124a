package sandbox

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock, strictly: the version of the interface is the kernel's, at most the
// newest that is written here, and a rule that the kernel refuses is an error.
// There is no best effort, which on an old kernel turns into nothing.

const (
	// leastLandlock is the version below which Landlock alone is no back end: it
	// would let every file of the person be truncated.
	leastLandlock = 3
	landlockTCP   = 4 // binding and connecting by port
	landlockIoctl = 5 // calls on devices
	landlockScope = 6 // signals and abstract sockets
	mostLandlock  = 7
)

const (
	landlockRead     = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockOnFile   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	landlockUpTo3    = 1<<15 - 1 // all rights on files of version 3
	landlockDevices  = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	landlockScopes   = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	landlockByPath   = unix.LANDLOCK_RULE_PATH_BENEATH
	sizeUpTo3        = 8 // struct landlock_ruleset_attr grew with its versions
	sizeUpTo5        = 16
	sizeUpTo7        = 24
	wholeAttrVersion = unix.LANDLOCK_CREATE_RULESET_VERSION
)

// pathRules says what a process may do with files. A path that is not there
// grants nothing.
type pathRules struct {
	Read, Write []string
	// NoBind refuses binding TCP ports, NoConnect connecting.
	NoBind, NoConnect bool
}

// landlockVersion asks the kernel; 0 where there is no Landlock or it is off.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, wholeAttrVersion)
	if errno != 0 {
		return 0
	}
	return min(int(v), mostLandlock)
}

// restrict puts the calling thread, which has no_new_privs, under r.
func (r pathRules) restrict(version int) error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: landlockUpTo3}
	size := uintptr(sizeUpTo3)
	if version >= landlockTCP {
		size = sizeUpTo5
		if r.NoBind {
			attr.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_BIND_TCP
		}
		if r.NoConnect {
			attr.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if version >= landlockIoctl {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= landlockScope {
		size = sizeUpTo7
		attr.Scoped = landlockScopes
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return fmt.Errorf("making the rules for files: %w", errno)
	}
	defer unix.Close(int(fd))
	for _, path := range r.Read {
		if err := allowPath(int(fd), path, landlockRead); err != nil {
			return err
		}
	}
	for _, path := range r.Write {
		if err := allowPath(int(fd), path, attr.Handled_access_fs&^landlockDevices); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("entering the rules for files: %w", errno)
	}
	return nil
}

// allowPath adds a rule for path and all below it.
func allowPath(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.EACCES {
		return nil // what cannot be reached needs no rule
	}
	if err != nil {
		return &os.PathError{Op: "granting", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "granting", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= landlockOnFile // a right of folders on a file is refused by the kernel
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), landlockByPath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return &os.PathError{Op: "granting", Path: path, Err: errno}
	}
	return nil
}

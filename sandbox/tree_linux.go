package sandbox

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// How the tree is found. A process that forks twice and calls setsid has left
// group, session and parent; what it cannot lose by accident are its resource
// limits. So each tree is marked: the limit on real-time processor time
// (RLIMIT_RTTIME, in microseconds) is set to a random number of some ten
// thousand years. It limits nothing, is inherited over fork, exec and setsid, can be
// read from outside, and needs no descriptor, no variable and no helper.
//
// This program is not made a subreaper: that is a property of the whole process,
// would hand us orphans of other packages, and is not needed to find ours. An
// orphan is reaped by init.
//
// A hostile process can lower its mark and so hide; the plain start makes no
// promise about those. Back ends with a process namespace need no mark.

const (
	markBase = 1 << 60 // microseconds; far above any limit in use, below infinity
	markSpan = 1 << 59
)

// mark is the pair of limits that one tree carries.
type mark struct {
	Soft, Hard uint64
	Outer      bool // Hard is not ours: we run inside a marked tree ourselves
}

// drawMark draws a mark below the hard limit that we have. Inside a marked tree
// the hard limit stays as it is, so that the outer program still finds all.
func drawMark(ownHard uint64) mark {
	if ownHard == unix.RLIM_INFINITY {
		m := markBase + rand.Uint64N(markSpan)
		return mark{Soft: m, Hard: m}
	}
	if ownHard < 2 {
		return mark{}
	}
	return mark{Soft: ownHard/2 + rand.Uint64N(ownHard/2), Hard: ownHard, Outer: true}
}

// put marks pid. A kernel that refuses leaves us group and session.
func (m mark) put(pid int) {
	if m.Hard != 0 {
		_ = unix.Prlimit(pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: m.Soft, Max: m.Hard}, nil)
	}
}

// on tells whether pid carries m. Of a mark of our own the hard half is enough:
// a program of ours further in has changed the soft one.
func (m mark) on(pid int) bool {
	var has unix.Rlimit
	if m.Hard == 0 || unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &has) != nil {
		return false
	}
	return has.Max == m.Hard && (has.Cur == m.Soft || !m.Outer)
}

// mine tells whether pid belongs to the tree.
func (c *child) mine(pid int) bool {
	if c.mark.on(pid) {
		return true
	}
	if sid, err := unix.Getsid(pid); err == nil && sid == c.pid {
		return true
	}
	pgid, err := unix.Getpgid(pid)
	return err == nil && pgid == c.pid
}

// members lists the living processes of the tree without the started one.
func (c *child) members() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // bounded by the number of processes
	var list []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err == nil && pid > 1 && pid != c.pid && pid != os.Getpid() && c.mine(pid) && living(pid) {
			list = append(list, pid)
		}
	}
	return list
}

// living tells whether pid still runs; one that waits to be reaped does not.
func living(pid int) bool {
	// "pid (name) S …": the name may hold anything, so look behind the last ')'.
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // one line, made by the kernel
	if err != nil {
		return false
	}
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 || i+2 >= len(stat) {
		return false
	}
	return !bytes.ContainsAny(stat[i+2:i+3], "ZXx")
}

// others counts the living processes of the tree besides the started one.
func (c *child) others() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return 0
	}
	return len(c.members())
}

// outside signals the members that group does not reach.
func (c *child) outside(sig syscall.Signal) {
	for _, pid := range c.members() {
		if pgid, err := unix.Getpgid(pid); err == nil && pgid == c.pid && !c.stage {
			continue
		}
		c.send(pid, sig)
		if c.stage && sig == unix.SIGTERM {
			c.send(pid, unix.SIGCONT)
		}
	}
}

// send signals pid if it still is of the tree. The descriptor is taken before
// the look, so that a pid which is given away in between is never hit.
func (c *child) send(pid int, sig syscall.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		if err == unix.ENOSYS && c.mine(pid) { // kernels before 5.3
			_ = unix.Kill(pid, sig)
		}
		return
	}
	defer unix.Close(fd)
	if c.mine(pid) {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

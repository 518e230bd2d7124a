package sandbox

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// endDescendants kills all that descends from this process until nothing does.
// It is a subreaper: whoever loses its parent becomes its child, so none is lost.
func endDescendants() {
	for {
		// The lists of the kernel may leave one out while others end; only the kernel's
		// word that there is no child left is the end.
		if !hasChildren() {
			return
		}
		for _, pid := range descendants(os.Getpid(), 0) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if pid <= 0 && err != unix.EINTR {
				break
			}
		}
		<-time.After(endPause)
	}
}

// endPause lets the kernel end what was killed.
const endPause = time.Millisecond

// hasChildren tells whether this process has any child, also one to be reaped.
func hasChildren() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err != unix.ECHILD
		}
	}
}

// mostDeep bounds the walk: the tree changes while it is read.
const mostDeep = 64

// descendants lists the living processes below pid.
func descendants(pid, deep int) []int {
	if deep > mostDeep {
		return nil
	}
	var all []int
	for _, child := range childrenOf(pid) {
		if living(child) {
			all = append(all, child)
		}
		all = append(all, descendants(child, deep+1)...)
	}
	return all
}

// childrenOf reads the children of all threads of pid.
func childrenOf(pid int) []int {
	base := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(base)
	if err != nil {
		return nil
	}
	var list []int
	for _, thread := range threads {
		text, _ := os.ReadFile(base + "/" + thread.Name() + "/children") // made by the kernel, bounded by the number of processes
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// EndLeft kills what killed programs left of sandboxes whose arguments name something below dir: the inner process of
// bubblewrap, where the outer one was killed before the two had met. It waits for ever and runs nothing. What cannot
// be read or killed is left. On other systems there is nothing of the kind.
func EndLeft(dir string) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	processes, _ := os.ReadDir("/proc")
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || !leftBelow(pid, dir) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if leftBelow(pid, dir) { // the number still means the process that fd does
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		_ = unix.Close(fd)
	}
}

// leftBelow tells whether a process is an inner one of bubblewrap, the first of its own namespace, without an outer one.
func leftBelow(pid int, dir string) bool {
	const textLimit = 1 << 20
	status := func(pid int) (name, parent string, inner bool) {
		for line := range strings.Lines(string(firstBytes(filepath.Join("/proc", strconv.Itoa(pid), "status"), textLimit))) {
			label, value, _ := strings.Cut(line, ":")
			switch words := strings.Fields(value); label {
			case "Name":
				name = strings.TrimSpace(value)
			case "PPid":
				parent = strings.TrimSpace(value)
			case "NSpid":
				inner = len(words) > 1 && words[len(words)-1] == "1"
			}
		}
		return name, parent, inner
	}
	name, parent, inner := status(pid)
	if name != "bwrap" || !inner {
		return false
	}
	above, err := strconv.Atoi(parent)
	if err != nil {
		return false
	}
	if name, _, _ := status(above); name == "bwrap" {
		return false
	}
	return strings.Contains(string(firstBytes(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"), textLimit)), "\x00"+dir+"/")
}

package sandbox

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A limit on processes binds an ordinary user by RLIMIT_NPROC, which in a user
// namespace of its own counts the processes of that namespace alone. It never
// binds root; there a control group does, where root can make one.

// cgroup is the group of one process tree, "" for none.
type cgroup struct{ dir string }

// cgroupPrefix begins the names of our groups; the process id of the maker follows.
const cgroupPrefix = "skald-"

// guardTasks is room for the threads of a stage that stays (guard), or that are
// there until the program takes its place.
const guardTasks = 16

// newCgroup makes a group with at most n processes.
func newCgroup(n int64) (cgroup, error) {
	base, err := pidsGroup()
	if err != nil {
		return cgroup{}, err
	}
	sweepCgroups(base)
	dir := filepath.Join(base, cgroupPrefix+strconv.Itoa(os.Getpid())+"-"+strconv.FormatUint(rand.Uint64(), 36))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return cgroup{}, err
	}
	g := cgroup{dir: dir}
	if err := writeControl(filepath.Join(dir, "pids.max"), strconv.FormatInt(n, 10)); err != nil {
		g.remove()
		return cgroup{}, err
	}
	return g, nil
}

// writeControl writes a file of the kernel that is there already.
func writeControl(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// pidsGroup finds the folder in which groups that count processes can be made:
// our own group of the first version, or the root of the second.
func pidsGroup() (string, error) {
	const tableLimit = 1 << 20 // of mounts
	for line := range strings.Lines(string(firstBytes("/proc/self/mountinfo", tableLimit))) {
		head, tail, ok := strings.Cut(strings.TrimSpace(line), " - ")
		h, f := strings.Fields(head), strings.Fields(tail)
		if !ok || len(h) < 5 || len(f) < 3 {
			continue
		}
		mount := h[4]
		switch {
		case f[0] == "cgroup" && hasWord(f[2], ","):
			return filepath.Join(mount, ownGroup()), nil
		case f[0] == "cgroup2":
			if strings.Contains(" "+strings.TrimSpace(string(firstBytes(mount+"/cgroup.subtree_control", tableLimit)))+" ", " pids ") {
				return mount, nil
			}
		}
	}
	return "", fmt.Errorf("no control group counts processes here")
}

func hasWord(list, sep string) bool {
	for word := range strings.SplitSeq(list, sep) {
		if word == "pids" {
			return true
		}
	}
	return false
}

// ownGroup is our place in the hierarchy that counts processes.
func ownGroup() string {
	const tableLimit = 64 << 10
	for line := range strings.Lines(string(firstBytes("/proc/self/cgroup", tableLimit))) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 && hasWord(f[1], ",") {
			return f[2]
		}
	}
	return "/"
}

// enter puts pid and what it starts into the group.
func (g cgroup) enter(pid int) error {
	if g.dir == "" {
		return nil
	}
	if err := writeControl(filepath.Join(g.dir, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
		return fmt.Errorf("the limit on processes: %w", err)
	}
	return nil
}

// remove ends what is left in the group, and the group.
func (g cgroup) remove() {
	if g.dir == "" {
		return
	}
	for range killTries {
		if unix.Rmdir(g.dir) != unix.EBUSY {
			return
		}
		for word := range strings.FieldsSeq(string(firstBytes(filepath.Join(g.dir, "cgroup.procs"), 1<<20))) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 1 && pid != os.Getpid() {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		pause()
	}
}

// killTries bounds the wait for the kernel; the next start sweeps what remains.
const killTries = 100

// pause gives the kernel a moment.
func pause() { _, _ = unix.Poll(nil, int(busyPause.Milliseconds())/2) }

// sweepCgroups removes the groups of programs that were killed.
func sweepCgroups(base string) {
	list, _ := filepath.Glob(filepath.Join(base, cgroupPrefix+"*"))
	for _, dir := range list {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), cgroupPrefix), "-")
		if pid, err := strconv.Atoi(number); err == nil && !running(pid) {
			_ = unix.Rmdir(dir)
		}
	}
}

// limitProcesses makes the limit on processes bind.
func (cf *confined) limitProcesses(l Limits) error {
	if l.Processes <= 0 {
		return nil
	}
	if os.Geteuid() == 0 {
		group, err := newCgroup(l.Processes + guardTasks)
		if err != nil {
			return nil // notHeld says so
		}
		cf.group = group
		cf.undo = append(cf.undo, group.remove)
		return nil
	}
	if !cf.orders.Guard {
		return nil // the user namespace counts for itself
	}
	for i, r := range cf.orders.Resources {
		if r.Resource == unix.RLIMIT_NPROC { // which counts all of the user's
			cf.orders.Resources[i].Value += uint64(tasksOf(os.Getuid()) + guardTasks)
		}
	}
	return nil
}

// tasksOf counts the threads that a user has now.
func tasksOf(uid int) int {
	list, _ := filepath.Glob("/proc/[0-9]*")
	n := 0
	for _, dir := range list {
		var st unix.Stat_t
		if unix.Stat(dir, &st) == nil && int(st.Uid) == uid {
			threads, _ := os.ReadDir(dir + "/task")
			n += len(threads)
		}
	}
	return n
}

// countsProcesses tells whether the limit on processes binds here.
func countsProcesses() bool {
	if os.Geteuid() != 0 {
		return true
	}
	base, err := pidsGroup()
	return err == nil && unix.Access(base, unix.W_OK) == nil
}

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// The arguments of bubblewrap. No value of the environment is among them: the
// stage gets the environment over its wire. Neither --dev nor --disable-userns is
// used: each makes a second user namespace, in which the ports of the forwarder
// cannot be bound; the filter for system calls refuses new namespaces instead.

const (
	// defaultDisk bounds each private folder in memory.
	defaultDisk = 256 << 20
	// browserShm is what a browser's pages share.
	browserShm = 512 << 20
	// insideFolder is where this program stands inside, under its own name.
	insideFolder = "/run/skald"
)

// wrapping are the arguments and what goes along.
type wrapping struct {
	args  []string
	files []*os.File // for descriptors from stageFD+1 on
}

func (w *wrapping) add(args ...string) { w.args = append(w.args, args...) }

// file puts text at path, read-only.
func (w *wrapping) file(path, text string) error {
	fd, err := unix.MemfdCreate("skald", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	w.files = append(w.files, f)
	if _, err := f.WriteString(text); err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	w.add("--ro-bind-data", strconv.Itoa(stageFD+len(w.files)), path)
	return nil
}

func (w *wrapping) tmpfs(path, perms string, size int64) {
	w.add("--perms", perms, "--size", strconv.FormatInt(size, 10), "--tmpfs", path)
}

// wrap makes the arguments for one command; the stage's own come after them.
func (s *Sandbox) wrap(p Policy, sp spots, share bool) (*wrapping, error) {
	w := &wrapping{}
	w.add("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
	if share {
		w.add("--share-net")
	} else { // for the sockets of the forwarder; the stage drops them
		w.add("--cap-add", "CAP_NET_BIND_SERVICE", "--cap-add", "CAP_NET_ADMIN")
	}
	for _, path := range systemFolders {
		if target, err := os.Readlink(path); err == nil {
			w.add("--symlink", target, path)
		} else if exists(path) {
			w.add("--ro-bind", path, path)
		}
	}
	for _, path := range systemFiles {
		if exists(path) {
			w.add("--ro-bind", path, path)
		}
	}
	w.add("--proc", "/proc", "--tmpfs", "/dev")
	for _, path := range devices {
		w.add("--dev-bind", path, path)
	}
	w.add("--symlink", "/proc/self/fd", "/dev/fd")
	disk := p.Limits.Disk
	if disk == 0 {
		disk = defaultDisk
	}
	shm := disk
	if p.Browser {
		shm = max(disk, browserShm)
	}
	w.tmpfs("/dev/shm", "1777", shm)
	w.tmpfs("/tmp", "1777", disk)
	for _, path := range []string{sp.home, sp.tmp} {
		if path != "" {
			w.tmpfs(path, "0700", disk)
		}
	}
	if err := s.nameFiles(w, share); err != nil {
		return w, err
	}
	w.binds(sp)
	w.add("--ro-bind", s.self, s.inside(), "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--", s.inside(), stageWord)
	return w, nil
}

// inside is the path of this program inside. Its name stays: some programs (a
// test binary that stands for several) go by it.
func (s *Sandbox) inside() string { return filepath.Join(insideFolder, filepath.Base(s.self)) }

// binds shows what the policy names, folders before what is in them.
func (w *wrapping) binds(sp spots) {
	all := slices.Concat(sp.read, sp.write)
	slices.Sort(all)
	for _, path := range slices.Compact(all) {
		if slices.Contains(sp.write, path) {
			w.add("--bind", path, path)
		} else {
			w.add("--ro-bind", path, path)
		}
	}
}

// nameFiles gives the process a list of users with one name in it, and in a
// network of its own the forwarder as the only server for names.
func (s *Sandbox) nameFiles(w *wrapping, share bool) error {
	uid, gid := os.Getuid(), os.Getgid()
	texts := [][2]string{
		{"/etc/passwd", fmt.Sprintf("connector:x:%d:%d:connector:/tmp:/bin/sh\n", uid, gid)},
		{"/etc/group", fmt.Sprintf("connector:x:%d:\n", gid)},
		{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"},
	}
	if share {
		for _, path := range []string{"/etc/hosts", "/etc/resolv.conf"} {
			// The text, since the file is often a link into /run, which is not shown.
			texts = append(texts, [2]string{path, string(firstBytes(path, 1<<20))})
		}
	} else {
		texts = append(texts, [2]string{"/etc/hosts", "127.0.0.1 localhost\n"},
			[2]string{"/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:5 attempts:1\n"})
	}
	for _, t := range texts {
		if err := w.file(t[0], t[1]); err != nil {
			return err
		}
	}
	return nil
}

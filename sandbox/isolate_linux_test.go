package sandbox

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// isolatedMark is set where a test runs in a network of its own, to "raised" when
// its loopback device works.
const isolatedMark = "SKALD_TEST_ISOLATED"

// isolated runs the calling test again in a network that has nothing but a
// loopback device, on which every address is found, so that an attempt which is not refused as it should goes
// nowhere. It returns true inside; outside the test is over.
func isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(isolatedMark) != "" {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$", "-test.count=1", "-test.v"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	if *update {
		args = append(args, "-update")
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), isolatedMark+"=new")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("in a network of its own: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("in a network of its own:\n%s", out)
	case !strings.Contains(string(out), "--- PASS"):
		t.Errorf("in a network of its own nothing ran:\n%s", out)
	}
	return false
}

// raiseLoopback is called first of all in a network of our own. It returns only
// on failure.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return err
	}
	if err := everythingLocal(unix.AF_INET); err != nil {
		return err
	}
	// An ordinary user's programs have no capabilities, so ours get none either:
	// started anew from this thread, they are gone.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	if err := os.Setenv(isolatedMark, "raised"); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

package sandbox

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPipesCanBeWidened: whoever passes much on makes the pipes larger.
func TestPipesCanBeWidened(t *testing.T) {
	s, err := New(None)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Start(t.Context(), Policy{}, Command{Argv: []string{"/bin/cat"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(Ladder{})
	for name, stream := range map[string]any{"stdin": p.Stdin, "stdout": p.Stdout} {
		conn, ok := stream.(syscall.Conn)
		if !ok {
			t.Errorf("%s has no descriptor to ask", name)
			continue
		}
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var size int
		if err := raw.Control(func(fd uintptr) {
			_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<18)
			size, err = unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
		}); err != nil || size != 1<<18 {
			t.Errorf("%s: %d bytes, %v", name, size, err)
		}
	}
}

package atomicfile

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// helperEnv names the role that the test binary plays when a test starts it as
// another process.
const helperEnv = "ATOMICFILE_TEST_ROLE"

func TestMain(m *testing.M) {
	role, args := os.Getenv(helperEnv), os.Args[1:]
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role, args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(role string, args []string) error {
	switch role {
	case "hold": // hold the lock args[0] until stdin ends
		unlock, err := Lock(context.Background(), args[0], nil)
		if err != nil {
			return err
		}
		fmt.Println("held")
		bufio.NewReader(os.Stdin).ReadString('\n')
		unlock()
		return nil
	case "count": // raise the number in args[1] args[2] times under the lock args[0]
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return countUp(args[0], args[1], n)
	}
	return playUnix(role, args)
}

// countUp loses updates unless the lock excludes everybody. The holder removes the
// lock file now and then, as a sweeper may.
func countUp(lock, counter string, n int) error {
	for i := range n {
		unlock, err := Lock(context.Background(), lock, nil)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(counter)
		if err != nil {
			return err
		}
		v, err := strconv.Atoi(string(data))
		if err != nil {
			return err
		}
		if err := os.WriteFile(counter, []byte(strconv.Itoa(v+1)), 0o600); err != nil {
			return err
		}
		if i%3 == 0 {
			os.Remove(lock)
		}
		unlock()
	}
	return nil
}

func helper(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	// The race detector would wait a second at the exit of each process.
	cmd.Env = append(os.Environ(), helperEnv+"="+role, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	check(t, err)
	if string(got) != want {
		t.Errorf("%s holds %q, want %q", path, got, want)
	}
}

// only checks the names in a folder: no temporary file may stay.
func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("folder holds %v, want %v", got, want)
	}
}

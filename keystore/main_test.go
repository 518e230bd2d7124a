package keystore

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// childVar names the part that the test binary plays when it is started by a test.
const childVar = "KEYSTORE_TEST_CHILD"

func TestMain(m *testing.M) {
	role := os.Getenv(childVar)
	if role == "" {
		os.Exit(m.Run())
	}
	play, known := children()[role]
	if !known {
		fmt.Fprintf(os.Stderr, "no such part: %s\n", role)
		os.Exit(2)
	}
	if err := play(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func children() map[string]func([]string) error {
	return map[string]func([]string) error{
		"add": childAdd, "churn": childChurn, "full": childFull, "keyring": childKeyring,
	}
}

func child(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), childVar+"="+role)
	return cmd
}

func fileStore(dir string) *Store {
	s := Open(Options{Dir: dir, Want: BackendKeyfile})
	s.work = testWork
	return s
}

// increase adds one to the named handles, which are decimal numbers.
func increase(s *Store, names ...string) error {
	return s.Update(context.Background(), "shared", 1, func(hs []Handle) ([]Handle, error) {
		for _, name := range names {
			i := 0
			for i < len(hs) && hs[i].Name != name {
				i++
			}
			if i == len(hs) {
				hs = append(hs, Handle{Name: name, Value: NewSecret("0")})
			}
			n, err := strconv.Atoi(hs[i].Value.Reveal())
			if err != nil {
				return nil, err
			}
			hs[i].Value = NewSecret(strconv.Itoa(n + 1))
		}
		return hs, nil
	})
}

// childAdd DIR NAME TIMES makes the vault, when it is first, and adds to it.
func childAdd(args []string) error {
	s := fileStore(args[0])
	times, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	if err := s.Put(context.Background(), "own-"+args[1], 1, handles("A", args[1])); err != nil {
		return err
	}
	for range times {
		if err := increase(s, "TOTAL", "OWN_"+args[1]); err != nil {
			return err
		}
	}
	return nil
}

// childChurn DIR adds until it is killed and says each number that is safe.
func childChurn(args []string) error {
	s := fileStore(args[0])
	out := bufio.NewWriterSize(os.Stdout, 16)
	for n := 1; ; n++ {
		if err := increase(s, "TOTAL"); err != nil {
			return err
		}
		fmt.Fprintln(out, n)
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

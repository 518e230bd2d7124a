package install

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll makes a tree of many files durable with one call: one fsync a file would
// take minutes for some ten thousand of them.
func syncAll(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("writing the dependencies to the disk: %w", err)
	}
	return nil
}

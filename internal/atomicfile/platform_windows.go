package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// Another program (a virus scanner, an indexer) may hold the target for an instant;
// a rename over it then fails although nothing is wrong.
const (
	renameTries = 20
	renamePause = 25 * time.Millisecond
)

// Windows has no such flag; Read compares the file before and after it is opened.
const noFollow = 0

func openNoFollow(path string) (*os.File, error) { return os.Open(path) }

// Rights are lists here, inherited from the user's profile, not bits.
func ownedByUs(fs.FileInfo) bool              { return true }
func writableByOthers(fs.FileInfo) bool       { return false }
func narrow(path string, _ fs.FileInfo) error { return nil }

func keepOwner(*os.File, fs.FileInfo) (sameGroup bool, err error) { return true, nil }

// An open file cannot be removed here, so its being open is the lock.
func claimTemp(*os.File) bool    { return true }
func removeDeadTemp(path string) { os.Remove(path) }

func finish(f *os.File, target string) error {
	if err := f.Close(); err != nil {
		return err
	}
	var err error
	for range renameTries {
		if err = os.Rename(f.Name(), target); err == nil {
			return nil
		}
		if !errors.Is(err, windows.ERROR_SHARING_VIOLATION) && !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			return err
		}
		<-time.After(renamePause)
	}
	return err
}

// The rename is journalled; folders cannot be synced.
func syncDir(string) error { return nil }

package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestJournalRotatesAmongWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mail.jsonl")
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			j, err := OpenJournal(path, 1000)
			if err != nil {
				t.Error(err)
				return
			}
			defer j.Close()
			for i := range 100 {
				if _, err := fmt.Fprintf(j, "{\"writer\":%d,\"line\":%d}\n", w, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 4 { // with the lock
		t.Errorf("%v, %v", files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".lock") {
			continue
		}
		info, _ := os.Stat(name)
		if len(data) > 20_000 || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d bytes, %v", filepath.Base(name), len(data), info.Mode())
		}
		for _, line := range linesOf(string(data)) {
			if !strings.HasPrefix(line, `{"writer":`) || !strings.HasSuffix(line, "}") {
				t.Errorf("a torn line %q", line)
			}
		}
	}
}

func TestJournalRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.log")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), path); err != nil {
		t.Skip(err)
	}
	_, err := OpenJournal(path, 1000)
	if want := fmt.Sprintf("opening journal %q: it is a link or another special file", path); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestJournalAfterATornLine holds that a line that a full disk or a power cut left without its
// end takes no other with it.
func TestJournalAfterATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	if err := os.WriteFile(path, []byte("one\ntw"), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := OpenJournal(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, line := range []string{"three\n", "four\n"} {
		if _, err := j.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); string(got) != "one\ntw\nthree\nfour\n" {
		t.Errorf("%q, %v", got, err)
	}
}

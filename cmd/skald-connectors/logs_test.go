package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"skald-connectors/launch"
)

// TestLogsOfSeveralFiles holds that logs shows every line that is kept, once and in order,
// also where a log was renamed twice since it was looked at.
func TestLogsOfSeveralFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mail.log")
	j, err := launch.OpenJournal(path, 40) // five lines
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	write := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := fmt.Fprintf(j, "line %02d\n", i); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect := func(got string, from, to int) {
		t.Helper()
		want := ""
		for i := from; i < to; i++ {
			want += fmt.Sprintf("line %02d\n", i)
		}
		if got != want {
			t.Errorf("shown is %q", got)
		}
	}
	write(0, 3)
	var out bytes.Buffer
	a := &app{stdout: &out}
	f, err := later(nil, path)
	if err != nil {
		t.Fatal(err)
	}
	write(3, 13) // two files more
	for f != nil {
		if _, err := a.showLines(bufio.NewReader(f), ""); err != nil {
			t.Fatal(err)
		}
		next, err := later(f, path)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		f = next
	}
	expect(out.String(), 0, 13)

	out.Reset()
	if shown, err := a.followFile(context.Background(), path, false); err != nil || !shown {
		t.Errorf("%v, %v", shown, err)
	}
	expect(out.String(), 0, 13)
	write(13, 17) // the oldest goes
	out.Reset()
	if _, err := a.followFile(context.Background(), path, false); err != nil {
		t.Error(err)
	}
	expect(out.String(), 5, 17)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if next, err := later(nil, filepath.Join(t.TempDir(), "none")); next != nil || err != nil {
		t.Errorf("%v, %v", next, err)
	}
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/manifest"
)

// logPause is the time between two looks at a file that is followed.
const logPause = 250 * time.Millisecond

func (a *app) logsCommand() *cobra.Command {
	follow, receipts := false, false
	c := &cobra.Command{
		Use:     "logs NAME",
		GroupID: "main",
		Short:   "Show what the sessions of a connector said",
		Long: "logs shows what run NAME and the connector wrote to standard error, secrets struck out.\n" +
			"--receipts shows one JSON line for each tool call in its place: when, which tool, how it\n" +
			"ended, never its arguments or its result.",
		Example: "  skald-connectors logs email -f\n  skald-connectors logs email --receipts",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.logs(cmd.Context(), args[0], follow, receipts)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on showing what is written")
	c.Flags().BoolVar(&receipts, "receipts", false, "show the receipts of tool calls")
	return c
}

func (a *app) logs(ctx context.Context, name string, follow, receipts bool) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	if manifest.ValidID(name) != nil || !act.Records().Taken(name) {
		return &record.NotInstalledError{Name: name}
	}
	path, calls := act.JournalPaths(name)
	if receipts {
		path = calls
	}
	shown, err := a.followFile(ctx, path, follow)
	if err != nil {
		return fmt.Errorf("reading the log of %q: %w", name, err)
	}
	if !shown && !follow {
		a.say("nothing is written there yet: %s", path)
	}
	return nil
}

// followFile shows the file at path and the older ones beside it, oldest first, and with
// follow what is added until the context ends. Files that are renamed meanwhile keep their
// order: it goes on with the one that was begun next.
func (a *app) followFile(ctx context.Context, path string, follow bool) (shown bool, err error) {
	var f *os.File
	var r *bufio.Reader
	open := ""
	defer func() {
		if f != nil {
			_ = f.Close()
		}
	}()
	for {
		moved := f == nil || renamed(f, path) // asked first: what was written before is read below
		if f != nil {
			if open, err = a.showLines(r, open); err != nil {
				return shown, err
			}
		}
		if moved {
			next, err := later(f, path)
			if err != nil {
				return shown, err
			}
			if next != nil {
				if f != nil {
					_ = f.Close()
				}
				f, r, open, shown = next, bufio.NewReader(next), "", true
				continue
			}
		}
		if !follow {
			return shown, nil
		}
		select {
		case <-ctx.Done():
			return shown, nil
		case <-time.After(logPause):
		}
	}
}

// renamed tells whether path names another file by now.
func renamed(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(path)
	return err == nil && !os.SameFile(mine, named)
}

// later opens the file that was begun after f: the oldest of all where f is nil or is not
// kept any more. nil: there is none.
func later(f *os.File, path string) (next *os.File, err error) {
	names := []string{path, path + ".1", path + ".2"} // the newest first, as launch.Journal renames them
	for range len(names) {
		place := placeOf(f, names)
		for i := place - 1; i >= 0; i-- {
			if next, err = os.Open(names[i]); !errors.Is(err, fs.ErrNotExist) {
				break
			}
			next, err = nil, nil
		}
		if err != nil || placeOf(f, names) == place {
			return next, err
		}
		if next != nil { // they were renamed while we looked
			_ = next.Close()
		}
	}
	return nil, nil // the next look finds it
}

// placeOf is the index of f's name, their number where it has none.
func placeOf(f *os.File, names []string) int {
	if f == nil {
		return len(names)
	}
	mine, err := f.Stat()
	if err != nil {
		return len(names)
	}
	for i, name := range names {
		if named, err := os.Stat(name); err == nil && os.SameFile(mine, named) {
			return i
		}
	}
	return len(names)
}

// showLines prints whole lines to the present end of the file; open is the
// beginning of a line whose end is not written yet.
func (a *app) showLines(r *bufio.Reader, open string) (string, error) {
	for {
		part, err := r.ReadString('\n')
		open += part
		if err == io.EOF {
			return open, nil
		}
		if err != nil {
			return open, err
		}
		if _, err := fmt.Fprintln(a.stdout, form.Clean(strings.TrimRight(open, "\r\n"))); err != nil {
			return "", err
		}
		open = ""
	}
}

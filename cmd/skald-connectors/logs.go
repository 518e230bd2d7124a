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
	for _, old := range []string{path + ".2", path + ".1"} {
		f, err := os.Open(old)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			_, err = a.showLines(bufio.NewReader(f), "")
			_ = f.Close()
		}
		if err != nil {
			return fmt.Errorf("reading the log of %q: %w", name, err)
		}
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

// followFile shows a file, and with follow what is added to it, also after it
// was renamed and began anew, until the context ends.
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
		if f == nil {
			f, err = os.Open(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return shown, err
			}
			if err != nil {
				f = nil
			} else {
				r, open, shown = bufio.NewReader(f), "", true
			}
		}
		moved := f != nil && renamed(f, path) // asked first: what was written before is read below
		if f != nil {
			if open, err = a.showLines(r, open); err != nil {
				return shown, err
			}
		}
		switch {
		case moved:
			_ = f.Close()
			f = nil
			continue
		case !follow:
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

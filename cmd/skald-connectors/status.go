package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"skald-connectors/activate/record"
	"skald-connectors/form"
)

// statusLimit bounds the question to one activation (launcher.md section 6).
const statusLimit = 10 * time.Second

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status [NAME]",
		GroupID: "main",
		Short:   "Start installed connectors as a client does, and say how they are",
		Long: "status starts run NAME, asks for the status that a client would see, and ends the session.\n" +
			"Without NAME it asks every installed connector, side by side.",
		Example:           "  skald-connectors status\n  skald-connectors status email --json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.status(cmd.Context(), args) },
	}
}

// statusLine is one activation as status prints it.
type statusLine struct {
	Name         string   `json:"name"`
	State        string   `json:"state"` // authorized, unauthorized, expired, or failed
	Tools        []string `json:"tools"`
	Held         []string `json:"held,omitempty"`
	Message      string   `json:"message,omitempty"`
	AuthorizeURL string   `json:"authorizeUrl,omitempty"`
	ElapsedMS    int64    `json:"elapsed_ms"`
	Stderr       []string `json:"stderr,omitempty"` // the launcher's last lines, where it failed
	err          error
}

func (a *app) status(ctx context.Context, args []string) error {
	a.noInput = true
	home, err := a.home()
	if err != nil {
		return err
	}
	if len(args) == 1 {
		if _, err := record.Open(home).Read(args[0]); err != nil {
			return err
		}
		return a.showStatus(a.askStatus(ctx, home, args[0]))
	}
	listed, err := record.Open(home).List()
	if err != nil {
		return err
	}
	lines := make([]statusLine, len(listed))
	var all sync.WaitGroup
	for i, l := range listed {
		all.Go(func() { lines[i] = a.askStatus(ctx, home, l.Name) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return a.showStatuses(lines)
}

// askStatus reads the status resource of one activation.
func (a *app) askStatus(ctx context.Context, home, name string) (line statusLine) {
	began := time.Now()
	line = statusLine{Name: name, State: "failed", Tools: []string{}}
	limited, cancel := context.WithTimeout(ctx, cmp.Or(a.hooks.answer, statusLimit))
	defer cancel()
	err := a.readStatus(limited, home, name, &line)
	line.ElapsedMS = time.Since(began).Milliseconds()
	if err = a.whyNot(ctx, home, name, err); err != nil {
		line.State, line.err, line.Message = "failed", err, err.Error()
		var lost *lostError
		if errors.As(err, &lost) {
			line.Message, line.Stderr = lost.err.Error(), lost.tail
		}
	}
	return line
}

func (a *app) readStatus(ctx context.Context, home, name string, line *statusLine) error {
	c, err := a.openSession(ctx, home, name)
	if err != nil {
		return err
	}
	defer c.close()
	uri, err := json.Marshal(map[string]string{"uri": "connector://" + name + "/status"})
	if err != nil {
		return err
	}
	result, err := c.ask(ctx, name, "resources/read", uri)
	if err != nil {
		return c.failed(name, err)
	}
	var read struct {
		Contents []struct {
			Text string `json:"text"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(result, &read); err != nil || len(read.Contents) != 1 {
		return fmt.Errorf("reading the status of %q: the answer has another form", name)
	}
	if err := json.Unmarshal([]byte(read.Contents[0].Text), line); err != nil {
		return fmt.Errorf("reading the status of %q: %w", name, err)
	}
	if line.Name = name; line.Tools == nil {
		line.Tools = []string{}
	}
	return nil
}

// statusCode is the exit code of a status that could not be read: what kept run from
// starting, or that of run.
func statusCode(err error) int {
	var lost *lostError
	if errors.As(err, &lost) && lost.code > 0 && lost.code != exitFailed {
		return lost.code
	}
	return exitConnector
}

func (a *app) showStatus(line statusLine) error {
	var failed error
	if line.err != nil {
		failed = &exitError{statusCode(line.err), line.err}
	}
	if a.json {
		err := a.printJSON(line)
		a.json = false // the one document is out
		return errors.Join(err, failed)
	}
	if failed != nil {
		return failed
	}
	a.line("%s is %s.", line.Name, line.State)
	if line.Message != "" {
		a.line("  %s", form.Clean(line.Message))
	}
	if line.State == "authorized" {
		a.line("  tools  %s", cleanList(line.Tools, "none"))
	}
	if len(line.Held) > 0 {
		a.line("  held   %s; see %s tools %s", cleanList(line.Held, ""), program, line.Name)
	}
	return nil
}

func cleanList(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return form.Clean(strings.Join(names, ", "))
}

func (a *app) showStatuses(lines []statusLine) error {
	var failed error
	rows := make([][]string, len(lines))
	for i, l := range lines {
		if l.err != nil && failed == nil {
			failed = &exitError{statusCode(l.err), l.err}
		}
		held := ""
		if len(l.Held) > 0 {
			held = fmt.Sprintf("%d held", len(l.Held))
		}
		rows[i] = []string{l.Name, l.State, fmt.Sprint(len(l.Tools)), held, l.Message}
	}
	if a.json {
		err := a.printJSON(map[string]any{"statuses": lines})
		a.json = false // the one document is out
		return errors.Join(err, failed)
	}
	if len(lines) == 0 {
		a.say("nothing is installed; find something with %s search", program)
		return nil
	}
	if err := a.table([]string{"NAME", "STATE", "TOOLS", "HELD", "MESSAGE"}, rows); err != nil {
		return err
	}
	return failed
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/form"
)

func (a *app) doctorCommand() *cobra.Command {
	fix := false
	c := &cobra.Command{
		Use:     "doctor",
		GroupID: "main",
		Short:   "Check this machine and everything that is installed and mounted",
		Long: "doctor checks the program, its home folder, marketplaces, the key store, the sandbox, every\n" +
			"installed connector and every client that it is mounted in. Each finding says how to mend\n" +
			"it; --fix mends what is safe to mend. Nothing is started and no secret is shown. It ends\n" +
			"with 1 when something is broken.",
		Example: "  skald-connectors doctor\n  skald-connectors doctor --fix\n  skald-connectors doctor --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), fix) },
	}
	c.Flags().BoolVar(&fix, "fix", false, "mend what is safe to mend")
	return c
}

// The levels of a finding.
const (
	levelOK   = "ok"
	levelWarn = "warn" // it works, and something should be known
	levelBad  = "bad"  // something does not work
)

// finding is one line of doctor. Mend says what to do; fix does it, where that is safe.
type finding struct {
	Check   string `json:"check"`
	Name    string `json:"name,omitempty"` // of the activation, or the client
	Level   string `json:"level"`
	Message string `json:"message"`
	Mend    string `json:"mend,omitempty"`
	Fixable bool   `json:"fixable"`
	Fixed   bool   `json:"fixed"`

	fix func(context.Context) error
}

// checkup is one run of doctor.
type checkup struct {
	app      *app
	act      *activate.Activator
	listed   []record.Listed
	findings []*finding

	unreadOwed []string // vaults of owed sign-ins, which no sweep can take away
}

func (c *checkup) add(check, level, format string, args ...any) *finding {
	f := &finding{Check: check, Level: level, Message: fmt.Sprintf(format, args...)}
	c.findings = append(c.findings, f)
	return f
}

func (f *finding) of(name string) *finding { f.Name = name; return f }

func (f *finding) mend(format string, args ...any) *finding {
	f.Mend = fmt.Sprintf(format, args...)
	return f
}

func (f *finding) fixes(fix func(context.Context) error) *finding {
	f.fix, f.Fixable = fix, true
	return f
}

func (a *app) doctor(ctx context.Context, fix bool) error {
	quiet := *a // nothing is asked: a keychain that is locked is told, not opened
	quiet.noInput, quiet.opened = true, nil
	act, err := quiet.openHome()
	if err != nil {
		return err
	}
	if err := a.withMounts(act); err != nil {
		return err
	}
	c := &checkup{app: a, act: act}
	for _, check := range []func(context.Context){c.program, c.home, c.records, c.clock, c.markets, c.keystore, c.sandbox, c.activations, c.rest, c.clients} {
		check(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if fix {
		c.mendAll(ctx)
	}
	return a.endCheckup(c, fix)
}

// mendAll mends what can be mended; a mend that fails says so in its line.
func (c *checkup) mendAll(ctx context.Context) {
	for _, f := range c.findings {
		if f.fix == nil || ctx.Err() != nil {
			continue
		}
		if err := f.fix(ctx); err != nil {
			f.Message += "; mending it failed: " + err.Error()
			continue
		}
		f.Fixed = true
	}
}

func (a *app) endCheckup(c *checkup, fix bool) error {
	bad, fixable := 0, 0
	for _, f := range c.findings {
		switch {
		case f.Fixed:
		case f.Level == levelBad:
			bad++
			fallthrough
		case f.fix != nil && !fix:
			if f.fix != nil {
				fixable++
			}
		}
	}
	if a.json {
		if err := a.printJSON(map[string]any{"ok": bad == 0, "findings": c.findings}); err != nil {
			return err
		}
	} else {
		a.showCheckup(c)
		if fixable > 0 && !fix {
			fmt.Fprintf(a.stdout, "\n%s can be mended now: %s doctor --fix\n", plural(fixable, "finding", "findings"), program)
		}
	}
	if bad > 0 {
		return &saidError{exitFailed}
	}
	return nil
}

// showCheckup prints a line for each finding, and below it what to do.
func (a *app) showCheckup(c *checkup) {
	wide, width := 0, a.width()
	if !isTerminal(a.stdout) {
		width = 1 << 20 // a line is a finding there
	}
	for _, f := range c.findings {
		wide = max(wide, len(f.Check))
	}
	for _, f := range c.findings {
		level, mark := f.Level, map[string]string{levelOK: "ok", levelWarn: "note", levelBad: "BAD"}[f.Level]
		if f.Fixed {
			level, mark = levelOK, "mended"
		}
		head := a.tint(level, fmt.Sprintf("%-7s", mark)) + fmt.Sprintf("%-*s", wide+2, f.Check)
		text := f.Message
		if f.Name != "" {
			text = f.Name + ": " + text
		}
		hang := strings.Repeat(" ", 7+wide+2)
		if width <= narrow { // too dear a column
			hang, head = "    ", strings.TrimRight(head, " ")+"\n    "
		}
		fmt.Fprintln(a.stdout, head+strings.TrimPrefix(wrap(form.Clean(text), width, hang), hang))
		if f.Mend != "" && !f.Fixed {
			fmt.Fprintln(a.stdout, hang+"→ "+strings.TrimPrefix(wrap(form.Clean(f.Mend), width, hang+"  "), hang+"  "))
		}
	}
}

// tint colours a mark, where colours are wanted.
func (a *app) tint(level, text string) string {
	if !a.colored(a.stdout) {
		return text
	}
	return map[string]string{levelOK: "\x1b[32m", levelWarn: "\x1b[33m", levelBad: "\x1b[1;31m"}[level] + text + "\x1b[0m"
}

// records reads what is installed, for the checks that follow.
func (c *checkup) records(context.Context) {
	var err error
	if c.listed, err = c.act.Records().List(); err != nil {
		c.add("connectors", levelBad, "%v", err).mend("make the folder readable for you")
	}
}

// names lists the activations for which is says yes.
func (c *checkup) names(is func(*record.Record) bool) []string {
	var out []string
	for _, l := range c.listed {
		if l.Record != nil && is(l.Record) && !slices.Contains(out, l.Name) {
			out = append(out, l.Name)
		}
	}
	return out
}

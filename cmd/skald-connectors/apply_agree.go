package main

import (
	"context"
	"fmt"
	"strings"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/form"
)

// agreeSteps shows the plan of each install, and each change that matters, and gets a yes for it before anything changes.
func (a *app) agreeSteps(ctx context.Context, steps []*applyStep, o *applyOptions) error {
	for _, s := range steps {
		var err error
		switch {
		case s.err != nil:
		case s.Action == stepInstall:
			err = a.agreeInstall(ctx, s, o)
		case s.Action == stepChange:
			err = a.agreeChange(ctx, s, o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) agreeInstall(ctx context.Context, s *applyStep, o *applyOptions) error {
	if len(s.Asks) > 0 && a.terminal() == nil {
		flags := make([]string, len(s.Asks))
		for i, field := range s.Asks {
			flags[i] = fmt.Sprintf("--secret-file %s/%s=PATH", s.Name, field)
		}
		return withHint(usagef("applying %q: %s, and nobody can be asked", s.Name, strings.Join(s.Asks, ", ")+plainly(len(s.Asks), " is missing", " are missing")),
			"run it in a terminal, or give %s", strings.Join(flags, " "))
	}
	if beyond := s.beyond(); o.yes && !o.wider && len(beyond) > 0 {
		if a.terminal() == nil {
			return withHint(usagef("applying %q: the set lets it do more than it asks for: %s", s.Name, form.Clean(strings.Join(beyond, ", "))),
				"agree to it with --allow-wider")
		}
		s.opts.yes = false
	}
	return a.agree(ctx, s.plan, s.shop, s.opts)
}

// beyond is what the set lets a connector do besides what its manifest asks for.
func (s *applyStep) beyond() []string {
	out := []string{}
	if s.opts.sandbox == "none" {
		out = append(out, "no sandbox")
	}
	for _, g := range s.opts.grants {
		out = append(out, g.String())
	}
	return out
}

// agreeChange asks before an activation that is here, and its credentials, follow other settings: a set can come from anybody, and
// another host would be sent the password. What takes a tool away or mounts it is not asked for.
func (a *app) agreeChange(ctx context.Context, s *applyStep, o *applyOptions) error {
	if len(s.given) == 0 && len(s.allows) == 0 || o.yes {
		return nil
	}
	term := a.terminal()
	if term == nil {
		return withHint(usagef("applying %q changes what is here, and nobody can be asked: %s", s.Name, form.Clean(strings.Join(s.Changes, ", "))),
			"see it with --dry-run, and agree to it with --yes")
	}
	var b strings.Builder
	for _, line := range s.detail {
		b.WriteString("  " + form.Clean(line) + "\n")
	}
	a.clearProgress()
	ok, err := term.Confirm(ctx, fmt.Sprintf("Change %s?", s.Name), b.String(), "Change it", "Cancel")
	if err == nil && !ok {
		return &exitError{exitFailed, fmt.Errorf("%q was not changed: you said no", s.Name)}
	}
	return err
}

// compareSettings notes what of an activation that is here the set has otherwise.
func (s *applyStep) compareSettings(rec *record.Record) {
	s.given = map[string]activate.Given{}
	for name, value := range s.member.Env {
		if has, ok := rec.Env[name]; !ok || has != value {
			s.given[name] = setValue(value)
			s.Changes = append(s.Changes, name)
			s.detail = append(s.detail, fmt.Sprintf("%s: %s → %s", name, orElse(has, "nothing"), orElse(value, "nothing")))
		}
	}
	allow, deny := toolChanges(rec.Grant, s.member.Grant)
	if s.allows = allow; len(allow)+len(deny) > 0 {
		s.Changes = append(s.Changes, "tools "+strings.Join(append(allow, deny...), " "))
		s.detail = append(s.detail, toolDetail("allow", allow)...)
		s.detail = append(s.detail, toolDetail("deny", deny)...)
	}
}

func toolDetail(what string, tools []string) []string {
	if len(tools) == 0 {
		return nil
	}
	return []string{what + " the tools " + strings.Join(tools, ", ")}
}

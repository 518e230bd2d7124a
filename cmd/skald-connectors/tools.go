package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/form"
	"skald-connectors/internal/exactjson"
	"skald-connectors/internal/tooldef"
)

type toolsOptions struct {
	name        string
	allow, deny []string
	accept      bool
}

func (a *app) toolsCommand() *cobra.Command {
	o := &toolsOptions{}
	c := &cobra.Command{
		Use:     "tools NAME",
		GroupID: "main",
		Short:   "Show, limit and accept the tools of an installed connector",
		Long: "tools starts the connector's server once and shows its tools beside the definitions that\n" +
			"were accepted: a tool that is new or changed is held back from every client until it is\n" +
			"accepted. --deny keeps a tool back and --allow lets it through again, in open sessions too;\n" +
			"where only listed tools are let through (install --allow), --allow adds to the list.",
		Example: "  skald-connectors tools email\n  skald-connectors tools email --deny send_email\n  skald-connectors tools email --accept",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return a.tools(cmd.Context(), o)
		},
	}
	c.Flags().StringArrayVar(&o.allow, "allow", nil, "let this `TOOL` through (repeatable)")
	c.Flags().StringArrayVar(&o.deny, "deny", nil, "keep this `TOOL` back (repeatable)")
	c.Flags().BoolVar(&o.accept, "accept", false, "accept the tools as the server defines them now")
	return c
}

func (a *app) tools(ctx context.Context, o *toolsOptions) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	limit := len(o.allow)+len(o.deny) > 0
	if o.accept {
		if err := act.AcceptTools(ctx, o.name); err != nil {
			return err
		}
	}
	if limit {
		if _, err := act.LimitTools(ctx, o.name, o.allow, o.deny); err != nil {
			return err
		}
	}
	list, err := act.Tools(ctx, o.name, !limit && !o.accept)
	if list == nil {
		return err
	}
	if perr := a.showTools(o.name, list, !limit && !o.accept && err == nil); perr != nil {
		return perr
	}
	if err != nil { // what was accepted is shown; what the server says now is not known
		a.json = false
		return withoutHint(err)
	}
	return nil
}

// toolLine is one tool as tools prints it.
type toolLine struct {
	Name    string          `json:"name"`
	Title   string          `json:"title,omitempty"`
	Granted bool            `json:"granted"`
	State   string          `json:"state"` // accepted, changed, new, gone
	Hidden  bool            `json:"hidden_characters,omitempty"`
	Was     json.RawMessage `json:"accepted,omitempty"`
	Now     json.RawMessage `json:"now,omitempty"`
}

func lineOf(d activate.Definition) toolLine {
	l := toolLine{Name: d.Name, Title: d.Title, Granted: d.Granted, State: "accepted", Hidden: hides(d.Was) || hides(d.Now)}
	switch {
	case !d.Held:
		return l
	case d.Was == nil:
		l.State = "new"
	case d.Now == nil:
		l.State = "gone"
	default:
		l.State = "changed"
	}
	l.Was, l.Now = d.Was, d.Now
	return l
}

// hides tells whether a definition has characters that a person would not see.
func hides(raw []byte) bool {
	doc, _, err := exactjson.Parse(raw, tooldef.Depth)
	if err != nil {
		return false
	}
	var walk func(exactjson.Value) bool
	walk = func(v exactjson.Value) bool {
		for _, m := range v.Members {
			if walk(m.Value) {
				return true
			}
		}
		for _, item := range v.Items {
			if walk(item) {
				return true
			}
		}
		return v.Kind == exactjson.String && hidesText(v.Str)
	}
	return walk(doc)
}

// hidesText leaves out what ordinary descriptions are laid out with.
func hidesText(s string) bool {
	for _, r := range s {
		if r != '\n' && r != '\t' && r != '\r' && form.Clean(string(r)) != string(r) {
			return true
		}
	}
	return false
}

func (a *app) showTools(name string, list []activate.Definition, fresh bool) error {
	lines := make([]toolLine, len(list))
	rows := make([][]string, len(list))
	for i, d := range list {
		l := lineOf(d)
		lines[i] = l
		let := "let through"
		switch {
		case !l.Granted:
			let = "denied"
		case l.State == "changed" || l.State == "new":
			let = "held"
		}
		mark := ""
		if l.Hidden {
			mark = "hidden characters"
		}
		rows[i] = []string{l.Name, l.Title, let, l.State, mark}
	}
	if a.json {
		return a.printJSON(map[string]any{"name": name, "compared": fresh, "tools": lines})
	}
	if len(rows) == 0 {
		a.say("%s has no tools on record", name)
		return nil
	}
	if err := a.table([]string{"TOOL", "TITLE", "CLIENTS", "DEFINITION", ""}, rows); err != nil {
		return err
	}
	held := false
	for i, d := range list {
		if state := lines[i].State; d.Held {
			held = true
			fmt.Fprintf(a.stdout, "\n%s (%s):\n%s", form.Clean(d.Name), state, difference(d.Was, d.Now))
		}
	}
	if held {
		a.say("accept them with %s tools %s --accept", program, name)
	}
	return nil
}

// difference shows, member by member, what was accepted and what it is now.
func difference(was, now []byte) string {
	before, after := members(was), members(now)
	var keys []string
	for _, m := range []map[string]string{before, after} {
		for _, k := range tooldefMembers {
			if _, has := m[k]; has && before[k] != after[k] && !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	var b strings.Builder
	for _, k := range keys {
		if text, has := before[k]; has {
			fmt.Fprintf(&b, "  - %s: %s\n", k, form.Clean(text))
		}
		if text, has := after[k]; has {
			fmt.Fprintf(&b, "  + %s: %s\n", k, form.Clean(text))
		}
	}
	return b.String()
}

// differences shows every tool that is not as it was accepted.
func differences(list []activate.Definition) string {
	var b strings.Builder
	for _, d := range list {
		l := lineOf(d)
		mark := ""
		if l.Hidden {
			mark = ", hidden characters"
		}
		fmt.Fprintf(&b, "%s (%s%s):\n%s", form.Clean(d.Name), l.State, mark, difference(d.Was, d.Now))
	}
	return b.String()
}

// tooldefMembers are the members that a definition's digest covers (launcher.md
// section 2).
var tooldefMembers = [...]string{"title", "description", "inputSchema", "outputSchema", "annotations"}

func members(raw []byte) map[string]string {
	doc, _, err := exactjson.Parse(raw, tooldef.Depth)
	out := map[string]string{}
	if err != nil {
		return out
	}
	for _, m := range doc.Members {
		var text bytes.Buffer
		if json.Compact(&text, raw[m.Value.Start:m.Value.End]) == nil {
			out[m.Key] = text.String()
		}
	}
	return out
}

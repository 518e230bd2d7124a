package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/internal/exactjson"
)

const (
	// argumentsDepth and callPages are what launch allows as well.
	argumentsDepth, callPages = 500, 64
)

func (a *app) callCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "call NAME TOOL [JSON]",
		GroupID: "main",
		Short:   "Call one tool of an installed connector",
		Long: "call starts run NAME, calls one tool and prints its result; what a client may not do is\n" +
			"refused here as well. JSON is an object with the arguments, {} by default. Arguments are\n" +
			"visible to every user of the machine: give secrets with - and standard input.",
		Example: "  skald-connectors call email list_folders\n  skald-connectors call http-fetch fetch_url '{\"url\": \"https://example.org\"}'",
		Args:    cobra.RangeArgs(2, 3), ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error { return a.call(cmd.Context(), args) },
	}
}

func (a *app) call(ctx context.Context, args []string) error {
	a.noInput = true
	home, err := a.home()
	if err != nil {
		return err
	}
	name, tool := args[0], args[1]
	rec, err := record.Open(home).Read(name)
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(rec.Tools, func(t record.ToolRef) bool { return t.Name == tool })
	if rec.Probe != nil && !known {
		return withHint(usagef("%s has no accepted tool %q", name, tool), "see its tools with %s tools %s", program, name)
	}
	arguments, err := a.callArguments(ctx, args[2:])
	if err != nil {
		return err
	}
	c, err := a.openSession(ctx, home, name)
	if err != nil {
		return callError(name, a.whyNot(ctx, home, name, err))
	}
	defer c.close()
	if err := c.seeTools(ctx, name); err != nil {
		return callError(name, err)
	}
	params, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		return err
	}
	result, err := c.ask(ctx, name, "tools/call", params)
	if err != nil {
		return callError(name, err)
	}
	return a.showResult(name, tool, result)
}

// callArguments reads the arguments, exactly: what two readers could understand
// differently is refused here already.
func (a *app) callArguments(ctx context.Context, given []string) (json.RawMessage, error) {
	if len(given) == 0 {
		return json.RawMessage("{}"), nil
	}
	text := []byte(given[0])
	if given[0] == "-" {
		used := ""
		var err error
		if text, err = a.readInput(ctx, "the arguments", "-", answersLimit, &used); err != nil {
			return nil, err
		}
	}
	doc, repeats, err := exactjson.Parse(text, argumentsDepth)
	switch {
	case err != nil:
		return nil, usagef("the arguments are not JSON: %v", err)
	case doc.Kind != exactjson.Object:
		return nil, usagef("the arguments are no JSON object")
	case len(repeats) > 0:
		return nil, usagef("the arguments have the key %q twice", repeats[0].Path)
	}
	var line bytes.Buffer
	err = json.Compact(&line, text)
	return line.Bytes(), err
}

// seeTools lets the launcher see the definitions, so that one that changed is
// held back as it is from a client.
func (c *ownClient) seeTools(ctx context.Context, name string) error {
	params := json.RawMessage("{}")
	for range callPages {
		result, err := c.ask(ctx, name, "tools/list", params)
		var refused *rpcError
		if errors.As(err, &refused) {
			return nil // a connector without tools; the call says it better
		}
		if err != nil {
			return err
		}
		var page struct {
			Next string `json:"nextCursor"`
		}
		if json.Unmarshal(result, &page) != nil || page.Next == "" {
			return nil
		}
		if params, err = json.Marshal(map[string]string{"cursor": page.Next}); err != nil {
			return err
		}
	}
	return nil
}

// callError gives what kept the call from being made its exit code: a refusal by
// a guard is 2, a connector that failed is 5.
func callError(name string, err error) error {
	var (
		refused *rpcError
		lost    *lostError
	)
	switch {
	case errors.As(err, &lost):
		return &exitError{statusCode(err), err}
	case !errors.As(err, &refused):
		return err
	}
	said := fmt.Errorf("%s: %s", name, form.Clean(refused.Message))
	switch refused.Data.Code {
	case "connector.forbidden_scope":
		return withHint(&exitError{exitUsage, said}, "see which tools are let through with %s tools %s", program, name)
	case "connector.changed":
		return withHint(&exitError{exitUsage, said}, "see the difference with %s tools %s", program, name)
	case "connector.internal":
		return &exitError{exitConnector, said}
	}
	return &exitError{exitFailed, said}
}

// showResult prints the content of a result; an error of the tool's own is
// exit 1.
func (a *app) showResult(name, tool string, result json.RawMessage) error {
	var r struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
			MIME string `json:"mimeType"`
			Data string `json:"data"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return &exitError{exitConnector, fmt.Errorf("%s: the result of %q has another form: %w", name, tool, err)}
	}
	if a.json {
		if err := a.printJSON(result); err != nil {
			return err
		}
		a.json = false // the one document is out
	} else {
		for _, c := range r.Content {
			switch {
			case c.Type == "text":
				for line := range strings.SplitSeq(strings.TrimRight(c.Text, "\n"), "\n") {
					fmt.Fprintln(a.stdout, form.Clean(strings.TrimRight(line, "\r")))
				}
			default:
				a.line("[%s %s, %d characters; --json shows it]", form.Clean(c.Type), form.Clean(c.MIME), len(c.Data))
			}
		}
		if len(r.Content) == 0 && len(r.Structured) > 0 {
			if err := a.printJSON(r.Structured); err != nil {
				return err
			}
		}
	}
	if r.IsError {
		return &exitError{exitFailed, fmt.Errorf("%s: the tool %s reports an error", name, form.Clean(tool))}
	}
	return nil
}

//go:build unix

//lint:file-ignore SA1019 what the protocol gives up is still sent by clients for a year, and has to arrive

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sdkClient is a session of the official Go SDK with everything that a client
// can do, and a list of what the server said on its own.
type sdkClient struct {
	*mcp.ClientSession
	mu    sync.Mutex
	heard []string
}

func (c *sdkClient) hear(kind string, params any) {
	text, err := json.Marshal(params)
	if err != nil {
		text = []byte(err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, kind+" "+string(text))
}

// said is what was heard of one kind since the last time.
func (c *sdkClient) said(kind string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	c.heard = slices.DeleteFunc(c.heard, func(text string) bool {
		mine := strings.HasPrefix(text, kind+" ")
		if mine {
			out = append(out, text)
		}
		return mine
	})
	return out
}

// connectSDK opens a session with a server.
func connectSDK(t *testing.T, cmd *exec.Cmd) *sdkClient {
	t.Helper()
	c := &sdkClient{}
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			c.hear("sampling", r.Params)
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "a <&> \u2028 sample"}}, nil
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			c.hear("elicitation", r.Params)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada", "check": true}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.hear("progress", r.Params)
		},
		LoggingMessageHandler:  func(_ context.Context, r *mcp.LoggingMessageRequest) { c.hear("log", r.Params) },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { c.hear("updated", r.Params) },
	})
	client.AddRoots(&mcp.Root{URI: "file:///a%20folder", Name: "a root"})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: 10 * time.Second}, nil)
	if err != nil {
		t.Fatalf("%q: %v", cmd.Args, err)
	}
	c.ClientSession = session
	t.Cleanup(func() { _ = session.Close() })
	return c
}

// sdkQuestions are what the client asks, by name; each answer is compared.
func sdkQuestions(ctx context.Context, c *sdkClient) []struct {
	name string
	ask  func() (any, error)
} {
	type question = struct {
		name string
		ask  func() (any, error)
	}
	call := func(tool string, args map[string]any) question {
		return question{tool, func() (any, error) {
			p := &mcp.CallToolParams{Name: tool, Arguments: args}
			p.SetProgressToken("t/" + tool)
			return c.CallTool(ctx, p)
		}}
	}
	return []question{
		{"initialize", func() (any, error) { return c.InitializeResult(), nil }},
		{"ping", func() (any, error) { return nil, c.Ping(ctx, nil) }},
		{"tools", func() (any, error) { return c.ListTools(ctx, nil) }},
		{"prompts", func() (any, error) { return c.ListPrompts(ctx, nil) }},
		{"resources", func() (any, error) { return c.ListResources(ctx, nil) }},
		{"templates", func() (any, error) { return c.ListResourceTemplates(ctx, nil) }},
		{"prompt", func() (any, error) { return c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "simple-prompt"}) }},
		{"prompt with arguments", func() (any, error) {
			return c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "args-prompt", Arguments: map[string]string{"city": "Zürich"}})
		}},
		{"complete", func() (any, error) {
			return c.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "completable-prompt"}, Argument: mcp.CompleteParamsArgument{Name: "department", Value: "S"}})
		}},
		{"resource", func() (any, error) {
			return c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "demo://resource/static/document/features.md"})
		}},
		{"no such resource", func() (any, error) { return c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "demo://nowhere"}) }},
		{"subscribe", func() (any, error) {
			return nil, c.Subscribe(ctx, &mcp.SubscribeParams{URI: "demo://resource/static/document/features.md"})
		}},
		{"unsubscribe", func() (any, error) {
			return nil, c.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: "demo://resource/static/document/features.md"})
		}},
		{"level", func() (any, error) { return nil, c.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "debug"}) }},
		call("echo", map[string]any{"message": "<&> \u2028 \U0001F600 é"}),
		call("get-sum", map[string]any{"a": 0.1, "b": 9007199254740993}),
		call("get-sum", map[string]any{"a": "not a number"}),
		call("get-tiny-image", map[string]any{}),
		call("get-annotated-message", map[string]any{"messageType": "error", "includeImage": true}),
		call("get-structured-content", map[string]any{"location": "Chicago"}),
		call("get-resource-links", map[string]any{"count": 3}),
		call("get-resource-reference", map[string]any{"resourceType": "Blob", "resourceId": 2}),
		call("trigger-long-running-operation", map[string]any{"duration": 0.2, "steps": 4}),
		call("trigger-sampling-request", map[string]any{"prompt": "say <&>"}),
		call("trigger-elicitation-request", map[string]any{}),
		call("get-roots-list", map[string]any{}),
	}
}

// TestSDKClient lets the official Go SDK be the client of the reference server
// with every feature: each answer and each message of the server's own through
// run is the direct one.
func TestSDKClient(t *testing.T) {
	server := peerCommand(t, "mcp-server-everything", "@modelcontextprotocol/server-everything")
	p := newPlace(t)
	p.installCommand("everything", server)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	direct := connectSDK(t, exec.Command(server[0], server[1:]...))
	through := connectSDK(t, p.through("everything"))
	wants, gots := sdkQuestions(ctx, direct), sdkQuestions(ctx, through)
	for i, q := range wants {
		want, got := answerText(q.ask()), answerText(gots[i].ask())
		if got = withoutAdded(q.name, got); got != withoutAdded(q.name, want) {
			t.Errorf("%s:\n%s, direct\n%s", q.name, got, want)
		}
	}
	for _, kind := range []string{"sampling", "elicitation", "progress", "log"} {
		var want, got []string
		for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(20 * time.Millisecond) {
			want, got = append(want, direct.said(kind)...), append(got, through.said(kind)...)
			if kind == "log" { // about things that happen side by side
				slices.Sort(want)
				slices.Sort(got)
			}
			if len(want) > 0 && slices.Equal(got, want) {
				break
			}
		}
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: heard %q, direct %q", kind, got, want)
		}
	}
	status, err := through.ReadResource(ctx, &mcp.ReadResourceParams{URI: "connector://everything/status"})
	if err != nil || !strings.Contains(status.Contents[0].Text, `"trigger-sampling-request"`) || strings.Contains(status.Contents[0].Text, `"held"`) {
		t.Errorf("status: %v %v", answerText(status, err), err)
	}
	if err := through.Close(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func answerText(answer any, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	text, err := json.MarshalIndent(answer, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// withoutAdded takes away what the launcher adds (launcher.md section 3).
func withoutAdded(question, answer string) string {
	var doc map[string]any
	if json.Unmarshal([]byte(answer), &doc) != nil {
		return answer
	}
	drop := func(list string, which func(map[string]any) bool) {
		items, _ := doc[list].([]any)
		doc[list] = slices.DeleteFunc(items, func(item any) bool { return which(item.(map[string]any)) })
	}
	switch question {
	case "tools":
		drop("tools", func(tool map[string]any) bool { delete(tool, "title"); return false })
	case "resources":
		drop("resources", func(r map[string]any) bool { return fmt.Sprint(r["uri"]) == "connector://everything/status" })
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return answer
	}
	return string(text)
}

// TestSDKCatalogue lets the same client use the servers of the built-in
// catalogue: what it reads through run is what they say.
func TestSDKCatalogue(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "SKALD_CONNECTORS_INDEX=builtin")
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for _, id := range []string{"http-fetch", "weather", "wikipedia"} {
		p.do("install", id, "--yes", "--no-verify")
		direct, through := connectSDK(t, p.direct(id)), connectSDK(t, p.through(id))
		for _, q := range []struct {
			name string
			ask  func(*sdkClient) (any, error)
		}{
			{"tools", func(c *sdkClient) (any, error) { return c.ListTools(ctx, nil) }},
			{"no such tool", func(c *sdkClient) (any, error) { return c.ListPrompts(ctx, nil) }},
			{"ping", func(c *sdkClient) (any, error) { return nil, c.Ping(ctx, nil) }},
		} {
			want, got := answerText(q.ask(direct)), answerText(q.ask(through))
			if got = withoutAdded(q.name, got); got != withoutAdded(q.name, want) {
				t.Errorf("%s: %s:\n%s, direct\n%s", id, q.name, got, want)
			}
		}
		// A call that fails before it asks the network: its text is the server's.
		list, err := direct.ListTools(ctx, nil)
		if err != nil || len(list.Tools) == 0 {
			t.Fatal(id, err)
		}
		bad := &mcp.CallToolParams{Name: list.Tools[0].Name, Arguments: map[string]any{"no_such_argument": 1}}
		want, wantErr := direct.CallTool(ctx, bad)
		got, gotErr := through.CallTool(ctx, bad)
		if answerText(got, gotErr) != answerText(want, wantErr) {
			t.Errorf("%s: %s, direct %s", id, answerText(got, gotErr), answerText(want, wantErr))
		}
	}
}

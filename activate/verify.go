package activate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"skald-connectors/form"
	"skald-connectors/internal/exactjson"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

const (
	verifyStdout  = 1 << 20  // format.md section 8
	verifyStderr  = 64 << 10 // format.md section 8
	verifyMessage = 4 << 10  // format.md section 8: what a person is shown
	verifyDepth   = 64       // far above any details object
)

// Outcome is what a verify said. Message and Details are safe to show: values
// of the activation are struck out, control characters escaped, 4 KiB at most.
type Outcome struct {
	Ran      bool
	OK       bool
	TimedOut bool
	Message  string
	Details  string // the details object as indented JSON, "" = none
	Elapsed  time.Duration
	Denied   []sandbox.Denial // what the sandbox refused meanwhile
}

// RefusedError says that verify did not accept the credentials (exit 3).
type RefusedError struct {
	Name    string
	Outcome Outcome
	Asked   bool // the connector has required values, which may be wrong
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("verifying %q: %s", e.Name, e.Outcome.Message)
}

// UnpinnedScriptError says that verify names a script that the index does not
// pin (seed, "Where to put the script").
type UnpinnedScriptError struct{ Connector, Script string }

func (e *UnpinnedScriptError) Error() string {
	return fmt.Sprintf("verify of %q names the script %q, which is not among its pinned files", e.Connector, e.Script)
}

// checkScript refuses a verify command that names a script file outside the
// connector's pinned files.
func checkScript(m *manifest.Manifest, files []manifest.File) error {
	if m.Verify == nil {
		return nil
	}
	for _, w := range strings.FieldsFunc(m.Verify.Command, betweenWords) {
		if !slices.Contains(scriptEndings[:], path.Ext(w)) || path.Base(w) == path.Ext(w) {
			continue
		}
		if _, ok := manifest.Shipped(files, w); !ok {
			return &UnpinnedScriptError{Connector: m.ID, Script: w}
		}
	}
	return nil
}

var scriptEndings = [...]string{".py", ".js", ".mjs", ".cjs", ".sh", ".ts", ".rb", ".pl"}

// betweenWords tells the characters that end a word of a shell command, quotes
// and operators included: a script is looked for wherever it stands.
func betweenWords(r rune) bool { return strings.ContainsRune(" \t\r\n;|&()<>{}=,`'\"$", r) }

// verify runs the manifest's check in the connector's folder, with exactly the
// environment of the server, under its time limit, in the sandbox (format.md
// section 8). The error is for what kept it from running at all.
func (a *Activator) verify(ctx context.Context, t *trial) (Outcome, error) {
	v := t.manifest.Verify
	if v == nil {
		return Outcome{Message: "this connector has no test"}, nil
	}
	script, refs, err := manifest.ShellCommand(v.Command)
	if err != nil {
		return Outcome{}, fmt.Errorf("reading verify.command of %q: %w", t.manifest.ID, err)
	}
	if runtime.GOOS == "windows" && len(refs) > 0 {
		return Outcome{}, fmt.Errorf("reading verify.command of %q: tokens in it are not supported on Windows", t.manifest.ID)
	}
	env, _ := connectorEnviron(t.base(a), t.manifest, t.values, t.dir)
	for _, ref := range refs {
		value, _ := t.values.lookup(ref.Kind, ref.Name)
		env = append(env, ref.Var+"="+value)
	}
	policy := t.policy(a)
	policy.Limits.Wall, policy.Limits.Stdout, policy.Limits.Stderr = v.Timeout, verifyStdout, verifyStderr
	done := a.busy("verifying", v.Timeout)
	res, err := t.box.Run(ctx, policy, sandbox.Command{Argv: shell(script), Dir: t.dir, Env: env}, nil)
	done()
	if err != nil {
		return Outcome{}, fmt.Errorf("running verify of %q: %w", t.manifest.ID, err)
	}
	out := judge(res, v.Timeout)
	out.Denied = res.Denied
	return out.safe(keystore.NewRedactor(t.values.handles())), nil
}

func shell(script string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/d", "/s", "/c", script}
	}
	return []string{"/bin/sh", "-c", script}
}

// judge reads a verify's result: the last line of stdout, or the whole of it,
// that is an object with a boolean "ok"; without one the exit code decides.
// Both must agree for a pass.
func judge(res sandbox.Result, limit time.Duration) Outcome {
	out := Outcome{Ran: true, Elapsed: res.Elapsed}
	if res.TimedOut {
		out.TimedOut = true
		out.Message = fmt.Sprintf("timed out after %d s", int(limit.Seconds()))
		return out
	}
	answer, found := findAnswer(res.Stdout)
	if found {
		out.OK = answer.ok && res.Code == 0 && res.Signal == ""
		out.Message, out.Details = answer.message, answer.details
		if answer.ok && !out.OK {
			out.Message = fmt.Sprintf("it reported success and ended with %s", ending(res))
		}
	} else {
		out.OK = res.Code == 0 && res.Signal == ""
		out.Message = firstText(res.Stdout, res.Stderr)
	}
	if out.Message == "" {
		out.Message = "passed"
		if !out.OK {
			out.Message = "it ended with " + ending(res) + " and said nothing"
		}
	}
	return out
}

func ending(res sandbox.Result) string {
	if res.Signal != "" {
		return "signal " + res.Signal
	}
	return fmt.Sprintf("exit code %d", res.Code)
}

func firstText(outputs ...[]byte) string {
	for _, o := range outputs {
		if s := strings.TrimSpace(string(bytes.ToValidUTF8(o, []byte("\uFFFD")))); s != "" {
			return s
		}
	}
	return ""
}

type answer struct {
	ok               bool
	message, details string
}

func findAnswer(stdout []byte) (answer, bool) {
	lines := bytes.Split(bytes.TrimSpace(stdout), []byte("\n"))
	for _, line := range slices.Backward(lines) {
		if a, ok := readAnswer(line); ok {
			return a, true
		}
	}
	return readAnswer(stdout)
}

func readAnswer(text []byte) (answer, bool) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' {
		return answer{}, false
	}
	doc, repeats, err := exactjson.Parse(text, verifyDepth)
	ok, has := doc.Get("ok")
	if err != nil || len(repeats) > 0 || !has || ok.Kind != exactjson.Bool {
		return answer{}, false
	}
	a := answer{ok: ok.Str == "true"}
	if m, has := doc.Get("message"); has && m.Kind == exactjson.String {
		a.message = m.Str
	}
	if d, has := doc.Get("details"); has && d.Kind != exactjson.Null {
		var pretty bytes.Buffer
		if json.Indent(&pretty, text[d.Start:d.End], "", "  ") == nil {
			a.details = pretty.String()
		}
	}
	return a, true
}

// safe strikes out the activation's values, makes control characters visible
// and cuts what is too long to show.
func (o Outcome) safe(r *keystore.Redactor) Outcome {
	o.Message = cut(form.Clean(r.String(o.Message)))
	lines := strings.Split(r.String(o.Details), "\n")
	for i, l := range lines {
		lines[i] = form.Clean(l)
	}
	o.Details = cut(strings.Join(lines, "\n"))
	return o
}

func cut(s string) string {
	if len(s) <= verifyMessage {
		return s
	}
	return strings.ToValidUTF8(s[:verifyMessage], "") + " …"
}

func roughly(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

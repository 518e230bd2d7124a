package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/fetch/trust"
	"skald-connectors/form"
	"skald-connectors/install"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

// The exit codes: a closed table (cli.md).
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRefused     = 3
	exitNotFound    = 4
	exitConnector   = 5
	exitIntegrity   = 6
	exitKeystore    = 7
	exitUnenforced  = 8
	exitToDo        = 10
	exitInterrupted = 130
)

// exitMeanings is the table that `help exit-codes` prints.
var exitMeanings = []struct {
	code    int
	meaning string
}{
	{exitDone, "done"},
	{exitFailed, "failed; the message says what and what to do next"},
	{exitUsage, "wrong usage, or a guard refused"},
	{exitRefused, "the credentials were refused by verify"},
	{exitNotFound, "not installed, or not found"},
	{exitConnector, "the connector failed to run"},
	{exitIntegrity, "bytes do not match what is pinned, or the index is not trusted"},
	{exitKeystore, "the key store cannot be used: locked, absent, damaged or timed out"},
	{exitUnenforced, "a protection that was asked for cannot be enforced on this machine"},
	{exitToDo, "--dry-run found something to do"},
	{exitInterrupted, "interrupted"},
}

func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("The exit codes of every command:\n\n")
	for _, e := range exitMeanings {
		fmt.Fprintf(&b, "  %3d  %s\n", e.code, e.meaning)
	}
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: strings.TrimRight(b.String(), "\n")}
}

// usageError is a command line that cannot be carried out as it stands.
type usageError struct {
	msg     string
	command string // whose help says more; "" = the message says it all
}

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{msg: fmt.Sprintf(format, args...)} }

// hintError is an error with advice of the command that met it.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

func withHint(err error, format string, args ...any) error {
	return &hintError{err: err, hint: fmt.Sprintf(format, args...)}
}

// exitError carries a code of its own, for outcomes that were already said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// saidError is an outcome with a code of its own; all about it is said already.
type saidError struct{ code int }

func (e *saidError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// finish says what went wrong and returns the exit code.
func (a *app) finish(err error) int {
	a.clearProgress()
	if err == nil {
		return exitDone
	}
	if a.serving != "" {
		return a.finishRun(err)
	}
	if said, ok := errors.AsType[*saidError](err); ok {
		return said.code
	}
	code, hint := classify(err)
	if _, left := errors.AsType[*activate.LeftError](err); code == exitInterrupted && !left {
		word := "interrupted"
		if errors.Is(err, form.ErrAborted) {
			word = "cancelled"
		}
		fmt.Fprintf(a.stderr, "%s: %s; what was not finished is undone\n", program, word)
		return code
	}
	a.complain(err)
	if a.json {
		doc, jerr := json.MarshalIndent(map[string]any{"error": map[string]any{"exit_code": code, "message": words(err), "hint": hint}}, "", "  ")
		if jerr == nil {
			fmt.Fprintf(a.stdout, "%s\n", doc)
		}
	}
	return code
}

// complain says on standard error what went wrong and what to do.
func (a *app) complain(err error) {
	a.clearProgress()
	_, hint := classify(err)
	fmt.Fprintln(a.stderr, a.wrapped(program+": "+words(err)))
	a.showParticulars(err)
	a.showTail(err)
	if hint != "" {
		fmt.Fprintln(a.stderr, a.wrapped("hint: "+hint))
	}
}

// classify gives each error its exit code and, where there is something to do,
// its advice.
func classify(err error) (int, string) {
	var (
		coded *exitError
		hint  *hintError
	)
	if errors.As(err, &hint) {
		code, _ := classify(hint.err)
		return code, hint.hint
	}
	if errors.As(err, &coded) {
		_, advice := classify(coded.err)
		return coded.code, advice
	}
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) || errors.Is(err, form.ErrAborted) {
		return exitInterrupted, ""
	}
	for _, try := range []func(error) (int, string, bool){setCode, usageCode, signInCode, oauthCode, activationCode, packagesCode, trustCode, machineCode} {
		if code, advice, ok := try(err); ok {
			return code, advice
		}
	}
	return exitFailed, ""
}

func usageCode(err error) (int, string, bool) {
	var (
		usage    *usageError
		given    *activate.GivenError
		missing  *activate.MissingError
		unfilled *activate.UnfilledError
		nothing  *activate.NothingGivenError
		taken    *activate.TakenError
		kept     *activate.KeptError
		name     *activate.NameError
		unsup    *activate.UnsupportedError
		grant    *activate.GrantError
		secret   *activate.SecretArgumentError
		stale    *activate.StaleError
	)
	switch {
	case errors.As(err, &kept):
		return exitUsage, fmt.Sprintf("install it under another name with --as, or remove the folder state/%s of the home", kept.Name), true
	case errors.As(err, &usage):
		if usage.command == "" {
			return exitUsage, "", true
		}
		return exitUsage, fmt.Sprintf("see %s --help", usage.command), true
	case errors.As(err, &unfilled):
		return exitUsage, fmt.Sprintf("fill it in with %s configure %s", program, unfilled.Name), true
	case errors.As(err, &nothing):
		return exitUsage, "run it in a terminal, or give --set NAME=… for " + fieldNames(nothing.Fields), true
	case errors.As(err, &given):
		if given.SecretArgument {
			return exitUsage, fmt.Sprintf("use --secret-file %s=PATH, --secret-env %s=VARIABLE, or --answers FILE", given.Name, given.Name), true
		}
		return exitUsage, "", true
	case errors.As(err, &missing):
		return exitUsage, missingHint(missing), true
	case errors.As(err, &taken):
		return exitUsage, fmt.Sprintf("change it with %s configure %s, or add a second one with --as NAME", program, taken.Name), true
	case errors.As(err, &name):
		return exitUsage, "a name is lower-case letters, digits, \".\", \"_\" and \"-\", at most 64", true
	case errors.As(err, &unsup):
		return exitUsage, "", true
	case errors.As(err, &grant):
		return exitUsage, "its tools are " + strings.Join(grant.Has, ", "), true
	case errors.As(err, &stale):
		return exitUsage, "run the command again to see what is there now", true
	case errors.As(err, &secret):
		return exitUsage, "the connector's author can use mcp_config.env for it", true
	}
	return 0, "", false
}

func fieldNames(fields []manifest.Field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// missingHint names the flag that answers each missing field.
func missingHint(e *activate.MissingError) string {
	flags := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		flags[i] = fmt.Sprintf("--set %s=…", f.Name)
		if f.Secret {
			flags[i] = fmt.Sprintf("--secret-file %s=PATH", f.Name)
		}
	}
	return "run it in a terminal, or give " + strings.Join(flags, " ") + " (or --answers FILE)"
}

func activationCode(err error) (int, string, bool) {
	var (
		gone    *record.NotInstalledError
		refused *activate.RefusedError
		probe   *activate.ProbeError
		runtime *activate.RuntimeError
		damaged *record.DamagedError
		bare    *activate.UnpackedError
		back    *activate.RolledBackError
		noPrior *activate.NoPriorError
		busy    *activate.BusyError
		foreign *install.ForeignError
		access  *activate.AccessError
	)
	switch {
	case errors.As(err, &access):
		return exitUsage, accessHint(access), true
	case errors.As(err, &back):
		return exitConnector, "nothing is lost; upgrade passes over this version until a newer one is there", true
	case errors.As(err, &busy):
		return exitFailed, "run it again when that has ended", true
	case errors.As(err, &foreign):
		return exitUsage, "move what is yours out of it, and run it again", true
	case errors.As(err, &noPrior):
		return exitNotFound, "", true
	case errors.As(err, &bare):
		return exitConnector, fmt.Sprintf("install them again with %s verify %s", program, bare.Name), true
	case errors.As(err, &gone):
		return exitNotFound, fmt.Sprintf("see what is installed with %s list", program), true
	case errors.As(err, &refused):
		if !refused.Asked {
			return exitRefused, "nothing was stored; it asks for no credentials, so its service may be out of reach: try again, or leave the test out with --no-verify", true
		}
		return exitRefused, "nothing was stored; run it again with the right values", true
	case !isUnenforced(err) && errors.As(err, &probe):
		return exitConnector, "", true
	case errors.As(err, &runtime):
		return exitConnector, runtimeHint(runtime), true
	case errors.As(err, &damaged):
		return exitFailed, fmt.Sprintf("restore %s from a backup, or uninstall and install the connector again", damaged.Path), true
	}
	return 0, "", false
}

func accessHint(e *activate.AccessError) string {
	if e.Access.Kind == "agent" {
		return "start an SSH agent (eval $(ssh-agent)) and run the command again in the same terminal, or leave --grant agent away"
	}
	return "make it first, or name another path"
}

func runtimeHint(e *activate.RuntimeError) string {
	if e.Path == "" && e.Problem != "" {
		return "" // no program of that name can be installed
	}
	want := ""
	if e.Range != "" {
		want = " " + e.Range
	}
	switch e.Program {
	case "python3", "python":
		return fmt.Sprintf("install Python%s (Debian and Ubuntu: apt install python3; macOS: brew install python; Windows: winget install Python.Python.3)", want)
	case "node", "npx":
		return fmt.Sprintf("install Node.js%s (nodejs.org, or your system's package nodejs)", want)
	}
	return fmt.Sprintf("install %s%s and make sure that PATH names its folder", e.Program, want)
}

func trustCode(err error) (int, string, bool) {
	var (
		pin      *fetch.PinError
		disagree *manifest.DisagreeError
		changed  *install.ChangedError
		replan   *activate.ChangedPlanError
		script   *activate.UnpinnedScriptError
		notFound *fetch.NotFoundError
		broken   *fetch.BrokenError
		away     *fetch.RedirectError
		page     *fetch.WebPageError
		offline  *fetch.UnreachableError
		refused  *trust.Error
		revoked  *fetch.RevokedError
		here     *takenBackError
		unknown  *trust.DamagedError
		file     *fetch.BundleFileError
		document *manifest.RefusedError
	)
	switch {
	case errors.As(err, &refused):
		return exitIntegrity, distrustHint(refused), true
	case errors.As(err, &file):
		return exitIntegrity, "nothing was installed; make the bundle again with " + program + " bundle export", true
	case errors.As(err, &unknown) && unknown.Newer():
		return exitIntegrity, "use the newer version of this program", true
	case errors.As(err, &unknown):
		return exitIntegrity, fmt.Sprintf("restore %s from a backup; without it nothing protects you from an older index", unknown.Path), true
	case errors.As(err, &here):
		return exitUsage, here.way, true
	case errors.As(err, &revoked):
		return exitUsage, "wait for a newer version", true
	case errors.As(err, &pin), errors.As(err, &disagree), errors.As(err, &script), errors.As(err, &document):
		return exitIntegrity, "nothing was installed; the marketplace's publisher has to mend this", true
	case errors.As(err, &replan):
		return exitIntegrity, "nothing was installed; run the command again to see what is there now", true
	case errors.As(err, &changed):
		return exitIntegrity, "the file on disk is not the one that was installed; uninstall and install the connector again", true
	case errors.As(err, &broken):
		return exitIntegrity, "", true
	case errors.As(err, &away):
		return exitIntegrity, "nothing was changed; the marketplace's publisher has to mend its server, or somebody else answers in its place", true
	case errors.As(err, &notFound):
		if len(notFound.Near) > 0 {
			return exitNotFound, "", true // the message names what looks like it
		}
		return exitNotFound, fmt.Sprintf("look for it with %s search WORD", program), true
	case errors.As(err, &page):
		return exitFailed, "a sign-in page of this network, or a proxy, answers in its place; open a browser and sign in", true
	case certificateRefused(err):
		return exitFailed, "where your company's own authority signs for servers, name its file with SSL_CERT_FILE; otherwise somebody may stand in between", true
	case errors.As(err, &offline):
		return exitFailed, "check the network; the connectors that come with this program need none: --index builtin", true
	}
	return 0, "", false
}

// distrustHint says what a person can do about an index that is not believed. None of it makes us believe it.
func distrustHint(e *trust.Error) string {
	switch e.Kind {
	case trust.Freeze:
		return "look at the clock of this machine; if it is right, the marketplace's publisher has to sign a new index, or somebody keeps it from you"
	case trust.Rollback, trust.Fork:
		return "nothing was installed; try again later. If it stays, tell the marketplace's publisher: somebody serves another index than theirs"
	}
	return "nothing was installed; the marketplace's publisher has to mend this, or somebody else answers in its place"
}

// isUnenforced tells that nothing was started, since a protection does not hold.
func isUnenforced(err error) bool {
	_, is := errors.AsType[*sandbox.UnenforceableError](err)
	return is
}

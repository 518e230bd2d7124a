package main

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/internal/exactjson"
	"skald-connectors/keystore"
)

const (
	// valueLimit is what is read of a value's file: one byte more than a value
	// may have (format.md section 4), a line end and a byte order mark.
	valueLimit = 64<<10 + 8
	// answersLimit bounds an answers file: a hundred values of full length.
	answersLimit = 8 << 20
)

// givenFlags are the ways to give values without a terminal.
type givenFlags struct {
	set, secretFile, secretEnv []string
	answers                    string
}

func (g *givenFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&g.set, "set", nil, "give a field that is no secret its value: `NAME=VALUE`")
	f.StringArrayVar(&g.secretFile, "secret-file", nil, "read a value from a file, - for standard input: `NAME=PATH`")
	f.StringArrayVar(&g.secretEnv, "secret-env", nil, "read a value from an environment variable: `NAME=VARIABLE`")
	f.StringVar(&g.answers, "answers", "", "read values from a `FILE` with a JSON object, - for standard input")
}

func (g *givenFlags) any() bool {
	return len(g.set)+len(g.secretFile)+len(g.secretEnv) > 0 || g.answers != ""
}

// read gathers the values. A name that is given twice is refused: which one
// counts should not depend on the order of flags.
func (g *givenFlags) read(ctx context.Context, a *app) (map[string]activate.Given, error) {
	out := map[string]activate.Given{}
	add := func(name string, v activate.Given) error {
		if _, twice := out[name]; twice {
			return usagef("%s is given twice", name)
		}
		out[name] = v
		return nil
	}
	stdinUsed := ""
	for _, kv := range g.set {
		name, value, err := pair("--set", kv)
		if err == nil {
			err = add(name, activate.Given{Value: keystore.NewSecret(value), Source: "--set", Public: true})
		}
		if err != nil {
			return nil, err
		}
	}
	for _, kv := range g.secretFile {
		name, path, err := pair("--secret-file", kv)
		if err != nil {
			return nil, err
		}
		data, err := a.readSecretFile(ctx, "--secret-file "+name, path, &stdinUsed)
		if err == nil {
			err = add(name, activate.Given{Value: keystore.NewSecret(string(data)), Source: "--secret-file"})
		}
		if err != nil {
			return nil, err
		}
	}
	for _, kv := range g.secretEnv {
		name, variable, err := pair("--secret-env", kv)
		if err != nil {
			return nil, err
		}
		value := a.getenv(variable)
		if value == "" {
			return nil, usagef("--secret-env %s: the variable %s is not set", name, variable)
		}
		if err := add(name, activate.Given{Value: keystore.NewSecret(value), Source: "--secret-env"}); err != nil {
			return nil, err
		}
	}
	if g.answers == "" {
		return out, nil
	}
	data, err := a.readInput(ctx, "--answers", g.answers, answersLimit, &stdinUsed)
	if err != nil {
		return nil, err
	}
	return out, readAnswers(data, add)
}

func pair(flag, kv string) (name, value string, err error) {
	name, value, ok := strings.Cut(kv, "=")
	if !ok || name == "" {
		return "", "", usagef("%s takes NAME=VALUE; the \"=\" or the name is missing", flag) // never the text: it may be a secret
	}
	return name, value, nil
}

// readInput reads a named file, or standard input once. Opening and reading
// may wait for ever (a pipe that nobody writes to), so a signal ends the wait.
func (a *app) readInput(ctx context.Context, what, path string, limit int64, stdinUsed *string) ([]byte, error) {
	if path == "-" {
		if *stdinUsed != "" {
			return nil, usagef("%s and %s cannot both read standard input", *stdinUsed, what)
		}
		*stdinUsed = what
	}
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := a.readAll(path, limit+1)
		done <- result{data, err}
	}()
	var r result
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case r = <-done:
	}
	if r.err != nil {
		return nil, usagef("%s: %v", what, r.err)
	}
	if int64(len(r.data)) > limit {
		return nil, usagef("%s: more than %d KiB", what, limit>>10)
	}
	return []byte(strings.TrimPrefix(string(r.data), "\uFEFF")), nil
}

// readSecretFile is readInput for one secret. A file of it that others can read is said.
func (a *app) readSecretFile(ctx context.Context, what, path string, stdinUsed *string) ([]byte, error) {
	data, err := a.readInput(ctx, what, path, valueLimit, stdinUsed)
	if path == "-" || err != nil || runtime.GOOS == "windows" {
		return data, err
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 {
		a.say("note: everybody on this machine can read %s; chmod 600 %s", path, path)
	}
	return data, nil
}

// readAll reads at most limit bytes of a file, "-" is standard input.
func (a *app) readAll(path string, limit int64) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(a.stdin, limit))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// readAnswers reads an object of values by name; numbers and booleans count as
// their text. Its errors never quote the document.
func readAnswers(data []byte, add func(string, activate.Given) error) error {
	doc, repeats, err := exactjson.Parse(data, 2)
	if err != nil {
		var syntax *exactjson.SyntaxError
		if errors.As(err, &syntax) {
			return usagef("--answers: not a flat JSON object: line %d, column %d", syntax.Line, syntax.Col)
		}
		return usagef("--answers: not a flat JSON object")
	}
	if doc.Kind != exactjson.Object {
		return usagef("--answers: not a JSON object")
	}
	if len(repeats) > 0 {
		return usagef("--answers: %s is given twice", repeats[0].Key)
	}
	for _, m := range doc.Members {
		switch m.Value.Kind {
		case exactjson.Null:
			continue
		case exactjson.String, exactjson.Number, exactjson.Bool:
		default:
			return usagef("--answers: %s is not a string, a number or a boolean", m.Key)
		}
		if err := add(m.Key, activate.Given{Value: keystore.NewSecret(m.Value.Str), Source: "--answers"}); err != nil {
			return err
		}
	}
	return nil
}

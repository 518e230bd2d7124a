//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/keystore"
	"skald-connectors/login"
)

// signFlow is a command around a sign-in, killed at every step from the first named one on: what comes before is
// in the table of docs/upgrading.md.
type signFlow struct {
	name  string
	first string
	// prepare makes the home from one with a provider that is set up.
	prepare func(b *bench, p *testProvider)
	args    []string
	again   []int // exit codes of the same command after the kill
}

var (
	installToken = []string{"install", "token", "--yes", "--browser"}
	authToken    = []string{"auth", "token", "--browser"}
)

func signFlows() []signFlow {
	installed := func(b *bench, _ *testProvider) { b.must(installToken...) }
	stale := func(b *bench, p *testProvider) {
		p.steer(b.t, "life=1")
		b.must(append(slices.Clone(installToken), "--no-verify")...)
		p.steer(b.t, "life=3600")
		time.Sleep(time.Second) // the life of the token
	}
	return []signFlow{
		{"install", "sign-in", func(*bench, *testProvider) {}, installToken, []int{exitDone, exitUsage}},
		{"auth", "sign-in", installed, authToken, []int{exitDone}},
		{"verify, which renews", "mark-renewal", stale, []string{"verify", "token"}, []int{exitDone, exitUsage}},
		{"logout", "owe-sign-in", installed, []string{"logout", "token"}, []int{exitDone}},
		{"uninstall", "owe-sign-in", installed, []string{"uninstall", "token"}, []int{exitDone, exitNotFound}},
	}
}

// TestKillAtEveryStepOfSigningIn kills what signs in, renews, signs out and uninstalls before each step on the disk, with a provider
// whose refresh tokens are good for one use. What is there afterwards is the sign-in of before or the new one; the same command
// comes to its end; and what nobody uses is known to the provider no more. The outcomes are the table of docs/signing-in.md. About 15 s.
func TestKillAtEveryStepOfSigningIn(t *testing.T) {
	slowUnderRace(t)
	tables := make([]string, len(signFlows()))
	t.Run("kill", func(t *testing.T) {
		for i, f := range signFlows() {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				tables[i] = killSigning(t, f)
			})
		}
	})
	checkTable(t, "signing-in.md", "| command | killed before | the sign-in | left at the provider |\n|---|---|---|---|\n", strings.Join(tables, ""))
}

func killSigning(t *testing.T, f signFlow) string {
	b, p := signBench(t)
	f.prepare(b, p)
	before := p.saved()
	clean := b.clone(t)
	steps := kinds(clean.steps(f.args...))
	steps = steps[max(slices.Index(steps, f.first), 0):]
	if len(steps) < 2 {
		t.Fatalf("%s has the steps %v only; the hook is not called", f.name, steps)
	}
	clean.must("upgrade", "--all", "--yes") // sweeps
	want, replaced := withoutSession(clean.state()), len(p.others(clean.signIn()))
	var table strings.Builder
	for _, step := range steps {
		p.restore(before)
		state, unused := killSigningAt(t, b.clone(t), p, f, step, want)
		allowed, left := replaced, "nothing" // one that auth replaces may be one grant with the new one, and is never revoked
		if state == "new" {
			allowed *= 2 // by the same command again, too
		}
		if unused > allowed {
			left = "the new one"
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", f.name, step, state, left)
	}
	return table.String()
}

// killSigningAt says what is there after a kill, and how many sign-ins the provider knows that nothing uses when the command
// was run again.
func killSigningAt(t *testing.T, b *bench, p *testProvider, f signFlow, step, want string) (state string, unused int) {
	t.Helper()
	was := b.signIn()
	b.kill(step, f.args...)
	now := b.signIn()
	state = map[bool]string{true: "old", false: "new"}[now == was]
	over := now != "none" && now != "signed out" && !p.knows(now)
	if works := now != "none" && now != "signed out"; works {
		if code, _, errs := b.run(nil, "call", "token", "whoami"); (code == exitDone) == over {
			t.Errorf("killed before %q: call ends with %d, and that the sign-in is over is %v: %s", step, code, over, errs)
		}
	}
	code, _, errs := b.run(nil, f.args...)
	if !slices.Contains(f.again, code) {
		t.Errorf("killed before %q: the same command ends with %d\n%s", step, code, errs)
	}
	if over {
		state += ", which is over: sign in again"
		if code == exitDone {
			t.Errorf("killed before %q: %q works, and its sign-in is over", step, f.args)
		}
		b.must(authToken...)
	}
	b.must("upgrade", "--all", "--yes") // sweeps
	if got := withoutSession(b.state()); got != want {
		t.Errorf("killed before %q, the same again, there is\n%s\n\nwant\n%s", step, got, want)
	}
	vaults, err := filepath.Glob(filepath.Join(b.home(), "keystore", "owed__*.age"))
	if len(vaults) > 0 || err != nil {
		t.Errorf("killed before %q: %v %v", step, vaults, err)
	}
	last := b.signIn()
	if last != "none" && last != "signed out" && !p.knows(last) {
		t.Errorf("killed before %q: what is stored in the end is over", step)
	}
	return state, len(p.others(last))
}

// signBench is a bench with a provider of its own, which is set up; its browser goes wherever it is sent.
func signBench(t *testing.T) (*bench, *testProvider) {
	t.Helper()
	b := newBench(t)
	return b, b.withProvider()
}

func (b *bench) withProvider() *testProvider {
	t, p := b.t, newTestProvider()
	t.Helper()
	t.Cleanup(p.Close)
	market := filepath.Join(b.dir, "signin")
	if err := signInMarket(market, p.URL); err != nil {
		t.Fatal(err)
	}
	b.env = append(b.env, "SKALD_CONNECTORS_INDEX="+market, "BROWSER=browser", "CLIENT_SECRET=c4n4ry-client")
	p.steer(t, "rotate=1")
	b.must("auth", "provider", "add", "testid", "--issuer", p.URL, "--client-id", "skald", "--secret-env", "CLIENT_SECRET", "--rotates")
	return p
}

// signIn is the refresh token of the activation token, "none" without the activation, "signed out" without a token.
func (b *bench) signIn() string {
	b.t.Helper()
	rec, err := record.Open(b.home()).Read("token")
	var gone *record.NotInstalledError
	if errors.As(err, &gone) {
		return "none"
	}
	if err == nil && rec.Vault == 0 {
		return "signed out"
	}
	var hs []keystore.Handle
	if err == nil {
		hs, err = keystore.Open(keystore.Options{Dir: filepath.Join(b.home(), "keystore")}).Load(context.Background(), "token", rec.Vault)
	}
	cred, ok, ferr := login.Find(hs)
	if err = errors.Join(err, ferr); err != nil {
		b.t.Fatal(err)
	}
	if !ok || cred.Refresh.IsZero() {
		return "signed out"
	}
	return cred.Refresh.Reveal()
}

// saved is what the provider knows, for restore.
type saved struct {
	refresh map[string]string
	access  map[string]time.Time
	used    map[string]bool
}

func (p *testProvider) saved() saved {
	p.mu.Lock()
	defer p.mu.Unlock()
	return saved{maps.Clone(p.refresh), maps.Clone(p.access), maps.Clone(p.used)}
}

func (p *testProvider) restore(s saved) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh, p.access, p.used = maps.Clone(s.refresh), maps.Clone(s.access), maps.Clone(s.used)
}

func (p *testProvider) knows(refresh string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.refresh[refresh]
	return ok
}

// others are the refresh tokens that are good, without that one.
func (p *testProvider) others(than string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(p.refresh)), func(r string) bool { return r == than })
}

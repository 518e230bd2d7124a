package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"skald-connectors/activate/record"
	"skald-connectors/install"
	"skald-connectors/login"
	"skald-connectors/mount"
	"skald-connectors/sandbox"
)

func unprotected(r *record.Record) bool {
	return r.Sandbox.Backend == string(sandbox.None) && !r.Remote()
}

// activations: each record, and what it names on disk.
func (c *checkup) activations(ctx context.Context) {
	good := []string{}
	for _, l := range c.listed {
		before := len(c.findings)
		if l.Err != nil {
			c.badRecord(l)
			continue
		}
		c.files(l.Record)
		c.programs(l.Record)
		c.state(l.Record)
		c.takenBack(l.Record)
		if len(c.findings) == before {
			good = append(good, l.Name)
		}
	}
	switch {
	case len(c.listed) == 0:
		c.add("connectors", levelOK, "nothing is installed")
	case len(good) > 0:
		c.add("connectors", levelOK, "%s: ready, every file as it was published", strings.Join(good, ", "))
	}
}

// badRecord tells a newer, a damaged and an unsafe record apart.
func (c *checkup) badRecord(l record.Listed) {
	f := c.add("connectors", levelBad, "%v", l.Err).of(l.Name)
	var newer *record.NewerError
	switch {
	case errors.As(l.Err, &newer):
		f.mend("a newer version of this program wrote it; use that one")
	default:
		f.mend("restore %s from a backup, or %s uninstall %s and install it again; its secrets are in their vault until then", c.act.Records().Path(l.Name), program, l.Name)
	}
}

// files: the version as it was published, the copy that runs, packages, tool definitions.
func (c *checkup) files(r *record.Record) {
	var changed *install.ChangedError
	if err := c.act.Store.Check(r.Ref(), r.Pins()); err != nil {
		f := c.add("connectors", levelBad, "an installed file is not what was published: %v", err).of(r.Name)
		if errors.As(err, &changed) {
			f.mend("%s uninstall %s --keep-data, and install it again", program, r.Name)
		}
		return
	}
	if err := c.act.Store.CheckWork(r.Name, r.Ref(), r.Pins()); err != nil {
		c.add("connectors", levelBad, "a file of the copy that runs was changed: %v", err).of(r.Name).
			mend("%s verify %s puts it back", program, r.Name).
			fixes(func(ctx context.Context) error { return c.act.Heal(ctx, r.Name) })
	}
	for _, d := range r.Deps {
		if _, err := c.act.Store.FindTree(d.Hash); err != nil {
			c.add("connectors", levelBad, "its packages from %s are missing", d.Ecosystem).of(r.Name).mend("%s verify %s installs them again", program, r.Name)
		}
	}
	if _, err := record.OpenDefinitions(c.act.Home).Read(r.Name); err != nil {
		c.add("connectors", levelBad, "%v", err).of(r.Name).mend("%s tools %s --accept asks the server for its tools again", program, r.Name)
	}
}

// programs: the interpreters that were found at activation.
func (c *checkup) programs(r *record.Record) {
	for _, p := range r.Runtimes {
		if _, err := os.Stat(p.Path); err != nil {
			c.add("runtime", levelBad, "%s is not at %s any more", p.Program, p.Path).of(r.Name).
				mend("install %s again, or let %s verify %s look for another one", p.Program, program, r.Name)
		}
	}
}

func (c *checkup) state(r *record.Record) {
	switch c.act.StateNow(r) {
	case record.Pending:
		c.add("connectors", levelWarn, "it is parked until its test passes").of(r.Name).mend("%s configure %s", program, r.Name)
	case record.Unauthorized:
		c.add("connectors", levelWarn, "a credential is missing").of(r.Name).mend("%s auth %s", program, r.Name)
	case record.Expired:
		c.add("connectors", levelWarn, "its credential ran out or was taken back").of(r.Name).mend("%s auth %s", program, r.Name)
	}
	if held := heldNow(c.act.Home, r); len(held) > 0 {
		c.add("connectors", levelWarn, "kept from clients until accepted: %s", strings.Join(shortList(held, 5), ", ")).of(r.Name).
			mend("%s tools %s shows the difference, --accept accepts", program, r.Name)
	}
	if r.AuthState == record.Ready && r.Verify.Ran && !r.Verify.OK {
		c.add("connectors", levelWarn, "its last test failed: %s", r.Verify.Message).of(r.Name).mend("%s verify %s", program, r.Name)
	}
}

// takenBack: the version that is here, by what is remembered of its marketplace.
func (c *checkup) takenBack(r *record.Record) {
	if back := c.app.takenBackHere(r); back != nil {
		c.add("connectors", levelBad, "its marketplace revoked the version that is here: %s", back.err.Reason).of(r.Name).mend("%s", back.way)
	}
}

// rest: receipts, and what interrupted commands left.
func (c *checkup) rest(ctx context.Context) {
	damaged, err := c.act.Store.MendReceipts(ctx, false)
	if err != nil {
		c.add("receipts", levelBad, "%v", err).mend("move the file away; it can be made again from the folders")
	}
	if len(damaged) > 0 {
		c.add("receipts", levelWarn, "missing or damaged: %s; nothing depends on them", strings.Join(damaged, ", ")).
			mend("%s doctor --fix writes them anew from the folders", program).
			fixes(func(ctx context.Context) error { _, err := c.act.Store.MendReceipts(ctx, true); return err })
	}
	left := c.act.Store.Leftovers()
	if vaults, err := c.act.Keys.Names(); err == nil {
		for _, name := range vaults {
			if !login.IsVaultName(name) && !slices.Contains(c.unreadOwed, name) && !slices.ContainsFunc(c.listed, func(l record.Listed) bool { return l.Name == name }) {
				left = append(left, "keystore/"+name+".*.age")
			}
		}
	}
	if len(left) > 0 {
		c.add("leftovers", levelWarn, "interrupted commands left %s", strings.Join(shortList(left, 3), ", ")).
			mend("the next install takes them away, or %s doctor --fix", program).
			fixes(c.sweep)
	}
}

func (c *checkup) sweep(ctx context.Context) error {
	_, err := c.act.Sweep(ctx)
	if err == nil && len(c.act.Store.Leftovers()) > 0 {
		err = errors.New("a record that cannot be read may name them")
	}
	return err
}

// clients: every mount against what the clients' files hold, and secrets in other entries.
func (c *checkup) clients(context.Context) {
	whole, places := 0, map[string]bool{}
	unread := map[string]bool{} // files that cannot be read, each named once
	for _, f := range c.act.Drift(c.listed) {
		if f.Kind == mount.FileUnreadable {
			if !unread[f.File] {
				c.drift(f)
			}
			unread[f.File] = true
			continue
		}
		if f.Kind == mount.MountOK {
			whole++
			places[f.Client] = true
			continue
		}
		if f.Kind == mount.NotRecorded && slices.ContainsFunc(c.listed, func(l record.Listed) bool { return l.Name == f.Name && l.Err != nil }) {
			continue // its record cannot be read, which is said
		}
		c.drift(f)
	}
	switch here := c.app.detected(c.act.Mounts); {
	case whole > 0:
		c.add("clients", levelOK, "%s in %s, as they were written", plural(whole, "entry", "entries"), plural(len(places), "client", "clients"))
	case len(unread) > 0: // what is mounted is not known
	case len(here) > 0:
		c.add("clients", levelOK, "%s here; nothing is mounted", strings.Join(here, ", "))
	default:
		c.add("clients", levelOK, "no MCP client was found")
	}
}

func (a *app) detected(m *mount.Mounter) []string {
	var out []string
	for _, c := range m.Clients() {
		if c.Detected {
			out = append(out, c.Name)
		}
	}
	return out
}

// drift turns a finding of package mount into a line with its mend.
func (c *checkup) drift(f mount.Finding) {
	where := f.File
	if f.Line > 0 {
		where += ":" + strconv.Itoa(f.Line)
	}
	client, again := clientName(f.Client), func(ctx context.Context) error { return c.mountAgain(ctx, f) }
	forget := func(ctx context.Context) error { return c.act.ForgetMount(ctx, f.Name, f.Client, f.File) }
	cmd := program + " mount " + f.Name + " --client " + f.Client
	switch f.Kind {
	case mount.EntryAbsent:
		c.add("clients", levelWarn, "its entry was taken out of %s (%s) by somebody", where, client).of(f.Name).mend("mount it again with %s; --fix forgets it", cmd).fixes(forget)
	case mount.EntryEdited:
		if f.Detail != "" {
			c.add("clients", levelWarn, "the entry of that name in %s (%s) starts something else now", where, client).of(f.Name).mend("rename or remove that entry and mount again with %s; --fix forgets ours", cmd).fixes(forget)
			return
		}
		c.add("clients", levelWarn, "its entry in %s (%s) was edited and still starts it", where, client).of(f.Name).mend("%s brings it up to date and keeps what was added", cmd).fixes(again)
	case mount.ProgramGone:
		c.add("clients", levelBad, "its entry in %s (%s) starts %s, which is not there", where, client, f.Detail).of(f.Name).mend("%s writes the program of now", cmd).fixes(again)
	case mount.FileMoved:
		c.add("clients", levelBad, "%s reads %s now, and the entry is in %s", client, f.Detail, where).of(f.Name).mend("%s", cmd).fixes(func(ctx context.Context) error { return c.moveMount(ctx, f) })
	case mount.ActivationGone:
		c.gone(f, where, client)
	case mount.NotRecorded:
		c.add("clients", levelWarn, "it is mounted in %s (%s), and its record does not say so", where, client).of(f.Name).mend("%s", cmd).fixes(again)
	case mount.FileUnreadable:
		c.add("clients", levelBad, "%s", f.Detail).of(client).mend("mend the file at that place; nothing was changed in it")
	case mount.PlainSecret:
		line := c.add("clients", levelWarn, "the entry %q in %s (%s) holds a secret in plain text: %s", f.Name, where, client, f.Detail)
		if strings.Contains(f.Detail, "argument") {
			line.mend("arguments are visible to every user of this machine; give it by an environment variable, and then %s mount --adopt %s", program, f.Name)
			return
		}
		line.mend("move it into the key store with %s mount --adopt %s --client %s", program, f.Name, f.Client)
	}
}

// gone is an entry that starts what is not installed. What stands under another name than
// its own is left to the person.
func (c *checkup) gone(f mount.Finding, where, client string) {
	activation := orElse(f.Detail, f.Name)
	line := c.add("clients", levelBad, "the entry %q in %s (%s) starts %s, which is not installed", f.Name, where, client, activation)
	if activation != f.Name {
		line.mend("take that entry out, or %s install %s", program, activation)
		return
	}
	line.mend("%s unmount %s takes it out, %s install %s brings it back", program, f.Name, program, f.Name).fixes(func(ctx context.Context) error {
		_, err := c.act.Unmount(ctx, requestFor(f))
		return err
	})
}

func requestFor(f mount.Finding) mount.Request {
	if f.Client == mount.Engine {
		return mount.Request{Client: f.Client, Name: f.Name, ConfigDir: filepath.Dir(filepath.Dir(f.File))}
	}
	return mount.Request{Client: f.Client, Name: f.Name, File: f.File}
}

func (c *checkup) mountAgain(ctx context.Context, f mount.Finding) error {
	_, err := c.act.Mount(ctx, requestFor(f))
	return err
}

// moveMount follows a client that reads another file now.
func (c *checkup) moveMount(ctx context.Context, f mount.Finding) error {
	reqs, err := placesIn(c.act.Mounts, f.Client, f.Name, "")
	if err != nil {
		return err
	}
	for _, r := range reqs {
		if _, err := c.act.Mount(ctx, r); err != nil {
			return err
		}
	}
	_, err = c.act.Unmount(ctx, requestFor(f))
	return err
}

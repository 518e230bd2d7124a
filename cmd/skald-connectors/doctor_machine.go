package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"skald-connectors/fetch"
	"skald-connectors/form"
	"skald-connectors/keystore"
	"skald-connectors/sandbox"
)

// marketPatience bounds the question to a marketplace; a doctor does not keep people waiting.
const marketPatience = 10 * time.Second

// program: the command that clients will start.
func (c *checkup) program(context.Context) {
	_, command, lasting, err := c.app.mounter(c.act.Home)
	switch {
	case err != nil:
		c.add("program", levelBad, "%v", err)
	case !lasting:
		c.add("program", levelWarn, "%s, %s: a temporary place", versionString(), command).mend("put it into a folder of PATH, so that clients find it later")
	default:
		c.add("program", levelOK, "%s; clients start %s", versionString(), command)
	}
}

// home: the folder of everything, and who else can reach it.
func (c *checkup) home(context.Context) {
	home := c.act.Home
	info, err := os.Stat(home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := writable(nearestFolder(home)); err != nil {
			c.add("home", levelBad, "%s cannot be made: %v", c.app.short(home), err).mend("name another with --home DIR")
			return
		}
		c.add("home", levelOK, "%s, which the first install makes", c.app.short(home))
		return
	case err != nil || !info.IsDir():
		c.add("home", levelBad, "%s cannot be used: %v", home, orElseErr(err, "it is no folder")).mend("name another with --home DIR")
		return
	}
	if open := openPaths(home); len(open) > 0 {
		c.add("home", levelBad, "others can reach %s in %s", strings.Join(shortList(open, 3), ", "), c.app.short(home)).
			mend("chmod -R go-rwx %s", home).
			fixes(func(context.Context) error { return closePaths(home, open) })
		return
	}
	if err := writable(home); err != nil {
		c.add("home", levelBad, "%s cannot be written: %v", c.app.short(home), err).mend("make it yours (chown), or make room on the disk")
		return
	}
	c.add("home", levelOK, "%s, only yours", c.app.short(home))
}

// nearestFolder is what is there of a path.
func nearestFolder(path string) string {
	for dir := path; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
	}
}

func orElseErr(err error, text string) string {
	if err != nil {
		return err.Error()
	}
	return text
}

func shortList(list []string, most int) []string {
	if len(list) <= most {
		return list
	}
	return append(list[:most:most], fmt.Sprintf("and %d more", len(list)-most))
}

// openPaths lists what others can reach, relative to the home; "." is the home itself.
func openPaths(home string) []string {
	if runtime.GOOS == "windows" {
		return nil
	}
	var out []string
	look := func(rel string) {
		info, err := os.Lstat(filepath.Join(home, rel))
		if err == nil && info.Mode().Type() != fs.ModeSymlink && info.Mode().Perm()&0o077 != 0 {
			out = append(out, rel)
		}
	}
	look(".")
	for _, top := range homeNames(isPrivate) {
		look(top)
		entries, _ := os.ReadDir(filepath.Join(home, top))
		for _, e := range entries {
			look(filepath.Join(top, e.Name()))
		}
	}
	return out
}

func closePaths(home string, rels []string) error {
	var problems []error
	for _, rel := range rels {
		path := filepath.Join(home, rel)
		info, err := os.Lstat(path)
		if err == nil && info.Mode().Type() != fs.ModeSymlink {
			err = os.Chmod(path, info.Mode().Perm()&^0o077)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// writable tries to make a file and takes it away again.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-*.tmp")
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// clock: a clock that stands before what was written here would refuse or believe too much.
func (c *checkup) clock(context.Context) {
	now := c.app.hooks.now()
	var newest time.Time
	for _, l := range c.listed {
		if l.Record != nil && l.Record.UpdatedAt.After(newest) {
			newest = l.Record.UpdatedAt
		}
	}
	if newest.After(now.Add(5 * time.Minute)) {
		c.add("clock", levelBad, "it says %s, and something here was written at %s", now.UTC().Format(time.DateTime), newest.UTC().Format(time.DateTime)).
			mend("set the clock of this machine")
	}
}

// markets: each marketplace of this user, asked with little patience.
func (c *checkup) markets(ctx context.Context) {
	list, err := c.app.places(c.act.Home)
	if err != nil {
		_, hint := classify(err)
		c.add("marketplace", levelBad, "%v", err).mend("%s", orElse(hint, "restore the file from a backup, or remove it"))
		return
	}
	for _, p := range list {
		c.market(ctx, p.Location)
	}
}

func (c *checkup) market(ctx context.Context, location string) {
	limited, cancel := context.WithTimeout(ctx, marketPatience)
	defer cancel()
	m, err := c.app.marketplace(location, c.act.Home)
	if err != nil {
		c.add("marketplace", levelBad, "%v", err).mend("name another with --index")
		return
	}
	ix, err := m.Index(limited, fetch.Refresh)
	switch {
	case err != nil && classifyOnly(err) == exitIntegrity:
		_, hint := classify(err)
		c.add("marketplace", levelBad, "%v", err).mend("%s", hint)
	case err != nil:
		c.add("marketplace", levelWarn, "%s cannot be read: %v", marketName(m.Location()), err).mend("check the network; what is installed works without it")
	case ix.Err() != nil:
		c.add("marketplace", levelWarn, "%s cannot be reached; its index of %s is used", marketName(ix.Location()), age(c.app.hooks.now(), ix.Fetched())).
			mend("check the network; what is installed works without it")
	default:
		c.add("marketplace", levelOK, "%s, %s", marketName(ix.Location()), plural(ix.Len(), "connector", "connectors"))
	}
}

// keystore: where the key is, whether it opens, and each vault.
func (c *checkup) keystore(ctx context.Context) {
	d, err := c.act.Keys.Describe()
	if err != nil {
		c.badKeys(err)
		return
	}
	switch {
	case d.Backend == "":
		c.add("key store", levelOK, "no secrets are kept yet")
		return
	case d.Backend == keystore.BackendPassphrase && c.app.getenv("SKALD_CONNECTORS_PASSPHRASE_FILE") == "":
		c.add("key store", levelOK, "the key of %s is behind a passphrase, which was not asked for", plural(d.Vaults, "vault", "vaults"))
		c.vaults(ctx, false)
		return
	}
	if err := c.act.Keys.Unlock(ctx); err != nil {
		if lost, is := errors.AsType[*keystore.Error](err); is && lost.Kind == keystore.KeyMissing && d.Vaults == 0 {
			c.add("key store", levelOK, "no secrets are kept yet") // an interrupted command was about to
			return
		}
		c.badKeys(err)
		c.vaults(ctx, false)
		return
	}
	c.add("key store", levelOK, "%s %s", plural(d.Vaults, "vault open; its key is", "vaults open; their key is"), keyPlace(d.Backend))
	c.vaults(ctx, true)
	c.owed(ctx)
}

// owed: sign-ins that an interrupted command left for their provider to be told of, in vaults that cannot be read any more.
func (c *checkup) owed(ctx context.Context) {
	damaged, err := c.act.DamagedOwed(ctx)
	if err != nil {
		return // the vaults that are in use say so
	}
	for _, d := range damaged {
		c.unreadOwed = append(c.unreadOwed, d.Vault)
		c.add("key store", levelBad, "a sign-in that an interrupted command left cannot be read, so its provider was not told that nobody uses it: %v", d.Err).
			mend("%s doctor --fix sets it aside, as keystore/%s.%d.age.damaged; remove the access in your account there", program, d.Vault, d.Generation).
			fixes(func(ctx context.Context) error {
				_, err := c.act.Keys.SetAside(ctx, d.Vault, d.Generation)
				return err
			})
	}
}

func (c *checkup) badKeys(err error) {
	_, hint := classify(err)
	c.add("key store", levelBad, "%v", err).mend("%s", hint)
}

// vaults looks for each vault that a record names, and reads it where the key is open.
func (c *checkup) vaults(ctx context.Context, open bool) {
	for _, l := range c.listed {
		if l.Record == nil || l.Record.Vault == 0 {
			continue
		}
		gens, err := c.act.Keys.Generations(l.Name)
		if err == nil && !contains(gens, l.Record.Vault) {
			err = &keystore.Error{Kind: keystore.NotFound, Op: "reading vault", What: fmt.Sprintf("%s.%d", l.Name, l.Record.Vault)}
		}
		if err == nil && open {
			_, err = c.act.Keys.Load(ctx, l.Name, l.Record.Vault)
		}
		if err != nil {
			_, hint := classify(err)
			c.add("key store", levelBad, "%v", err).of(l.Name).mend("%s", hint)
		}
	}
}

func contains(list []int64, n int64) bool {
	for _, x := range list {
		if x == n {
			return true
		}
	}
	return false
}

// sandbox: what is enforced here and what is not, in a sentence.
func (c *checkup) sandbox(context.Context) {
	box, err := c.app.sandbox(c.act.Home, string(sandbox.Auto))
	if err != nil {
		_, hint := classify(err)
		c.add("sandbox", levelBad, "%v", err).mend("%s", hint)
		return
	}
	p := box.Server()
	p.Network.All = true
	e := box.Enforced(p)
	text := fmt.Sprintf("%s: a connector that asks for nothing has %s", e.Mode, e.Sentence)
	if len(e.NotHeld) > 0 {
		text += "; not held: " + strings.Join(e.NotHeld, "; ")
	}
	c.add("sandbox", levelOK, "%s", form.Clean(text))
	for _, name := range c.names(unprotected) {
		c.add("sandbox", levelWarn, "it runs without any protection, as you said").of(name).mend("%s configure %s --sandbox auto", program, name)
	}
}

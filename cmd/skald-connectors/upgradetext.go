package main

import (
	"fmt"
	"strings"

	"skald-connectors/activate"
	"skald-connectors/form"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

// changedShown bounds the files that a plan lists; --json has all.
const changedShown = 12

// upgradeText shows what an upgrade would change, what widens first.
func (a *app) upgradeText(p *activate.UpgradePlan, from string, scripts bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s → %s, from %s\n\n", p.Name, form.Clean(displayVersion(p.Present)), form.Clean(manifest.DisplayVersion(p.Entry)), form.Clean(from))
	row := func(label, format string, args ...any) {
		b.WriteString(labelRow(label, fmt.Sprintf(format, args...), a.width()))
	}
	for i, c := range p.Wider() {
		row(map[bool]string{true: "MORE", false: ""}[i == 0], "%s", form.Clean(changeLabelled(c, p.Manifest.Fields())))
	}
	fileRows(row, p.Changes)
	for _, c := range p.Changes {
		switch {
		case c.Wider || c.Kind == "file":
		case c.Kind == "package" && c.Now != "" && len(p.Deps) > 0 && len(p.Changes) > 4*changedShown: // the packages row says it
		default:
			row(c.Kind, "%s", form.Clean(changeLabelled(c, p.Manifest.Fields())))
		}
	}
	depsRows(row, p.Deps, scripts, false)
	for i, f := range p.Ask {
		row(map[bool]string{true: "ask", false: ""}[i == 0], "%s", fieldsText([]manifest.Field{f}))
	}
	if p.RunsHere() && p.Enforced.Mode != sandbox.None {
		row("sandbox", "%s", form.Clean(p.Enforced.Sentence))
	}
	if p.Loud != "" {
		row("NOTE", "%s", form.Clean(p.Loud))
	}
	for _, w := range p.Warnings {
		row("note", "%s", form.Clean(w))
	}
	row("kept", "your settings, your secrets and its own data; %s, for a rollback", form.Clean(displayVersion(p.Present)))
	return b.String()
}

// fileRows says how the files differ.
func fileRows(row func(label, format string, args ...any), list []activate.Change) {
	var changed, added, gone int
	var lines []string
	for _, c := range list {
		if c.Kind != "file" {
			continue
		}
		switch {
		case c.Was == "":
			added++
		case c.Now == "":
			gone++
		default:
			changed++
		}
		lines = append(lines, form.Clean(changeText(c)))
	}
	row("files", "%d changed, %d new, %d gone", changed, added, gone)
	for i, l := range lines {
		if i == changedShown {
			row("", "and %d more", len(lines)-changedShown)
			return
		}
		row("", "%s", l)
	}
}

// changeLabelled is changeText with the labels of fields in the place of their tokens, in hosts and paths.
func changeLabelled(c activate.Change, fields []manifest.Field) string {
	switch c.Kind {
	case "network", "read", "write":
		return labelled(changeText(c), fields)
	}
	return changeText(c)
}

// changeText says one change on one line.
func changeText(c activate.Change) string {
	switch c.Kind {
	case "file":
		return fileText(c)
	case "network", "loopback", "read", "write", "browser", "agent":
		return accessChange(c)
	case "scope":
		return gained(c, "the scope "+c.Now, "the scope "+c.Was)
	case "tool":
		return gained(c, c.Now, c.Was)
	case "field":
		return c.Name + ": " + gained(c, c.Now, c.Was)
	case "package":
		return c.Name + " " + arrow(c)
	case "url":
		return "connects to " + arrow(c)
	case "auth":
		return "signs in by " + arrow(c)
	}
	return arrow(c)
}

func fileText(c activate.Change) string {
	switch {
	case c.Now == "":
		return c.Name + " is gone"
	case c.Added < 0:
		return c.Name + " differs"
	case c.Was == "":
		return fmt.Sprintf("%s is new, %s", c.Name, plural(c.Added, "line", "lines"))
	}
	return fmt.Sprintf("%s +%d −%d", c.Name, c.Added, c.Removed)
}

func accessChange(c activate.Change) string {
	word := map[string]string{"network": "the network to ", "read": "reading ", "write": "writing "}[c.Kind]
	name := func(value string) string {
		if word == "" {
			return map[string]string{"loopback": "servers of this machine", "browser": "opening your browser", "agent": "your SSH agent"}[c.Kind]
		}
		if value == "all" {
			value = "every host"
		}
		return word + value
	}
	return gained(c, name(c.Now), name(c.Was))
}

// gained words what came, went or became another.
func gained(c activate.Change, now, was string) string {
	switch {
	case c.Was == "":
		return now + ", new"
	case c.Now == "":
		return was + ", no longer"
	}
	return was + " → " + now
}

func arrow(c activate.Change) string {
	return orElse(c.Was, "nothing") + " → " + orElse(c.Now, "nothing")
}

func changeList(list []activate.Change) string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = strings.TrimSuffix(changeText(c), ", new")
	}
	return strings.Join(words, "; ")
}

// planLine is one planned upgrade as --dry-run --json prints it.
type planLine struct {
	outdatedPair
	Index   string            `json:"index"`
	Widens  bool              `json:"widens"`
	Changes []activate.Change `json:"changes"`
	Asks    []askLine         `json:"asks"`
}

// outdatedPair names an activation with the version that it has and the one that it
// gets or got.
type outdatedPair struct {
	Name       string           `json:"name"`
	Connector  string           `json:"connector"`
	From       manifest.Version `json:"from"`
	FromString string           `json:"from_string"`
	To         manifest.Version `json:"to"`
	ToString   string           `json:"to_string"`
}

type askLine struct {
	Name   string `json:"name"`
	Label  string `json:"label"`
	Secret bool   `json:"secret"`
}

// heldLine is a version that is passed over.
type heldLine struct {
	outdatedPair
	Why string `json:"why"`
}

func pairOf(u update) outdatedPair {
	return outdatedPair{u.rec.Name, u.rec.Connector, u.rec.Version, displayVersion(u.rec), u.entry.Version, manifest.DisplayVersion(u.entry)}
}

func (u *upgrading) heldLines() []heldLine {
	out := []heldLine{}
	for _, x := range u.held {
		out = append(out, heldLine{pairOf(x), x.held})
	}
	return out
}

// sayHeld says what was passed over and how to have it all the same.
func (u *upgrading) sayHeld() {
	for _, x := range u.held {
		if x.revoked != "" {
			u.app.say("%s: %s is there, and its marketplace revoked it: %s", x.rec.Name, manifest.DisplayVersion(x.entry), x.revoked)
			continue
		}
		if x.held == heldPinned {
			u.app.say("%s: %s is there, and it is pinned to %s (%s unpin %s)", x.rec.Name, manifest.DisplayVersion(x.entry), displayVersion(x.rec), program, x.rec.Name)
			continue
		}
		u.app.say("%s: %s is there, and you went back from it; it waits for a newer one (%s upgrade %s --again)", x.rec.Name, manifest.DisplayVersion(x.entry), program, x.rec.Name)
	}
}

// reportPlans is the end of --dry-run.
func (u *upgrading) reportPlans() error {
	a := u.app
	lines := []planLine{}
	for _, p := range u.plans {
		l := planLine{Index: p.Index.Location(), Widens: len(p.Wider()) > 0, Changes: p.Changes, Asks: []askLine{}}
		l.outdatedPair = outdatedPair{p.Name, p.Present.Connector, p.Present.Version, displayVersion(p.Present), p.Entry.Version, manifest.DisplayVersion(p.Entry)}
		for _, f := range p.Ask {
			l.Asks = append(l.Asks, askLine{f.Name, f.Label, f.Secret})
		}
		lines = append(lines, l)
		if !a.json {
			fmt.Fprintln(a.stdout, a.upgradeText(p, u.from[p.Name], u.o.scripts))
		}
	}
	if u.single() && len(u.failed) == 1 {
		return u.failed[0].err
	}
	if a.json {
		if err := a.printJSON(map[string]any{"upgrades": lines, "held": u.heldLines(), "failed": failures(u.failed)}); err != nil {
			return err
		}
	} else {
		u.sayHeld()
	}
	if len(u.failed) > 0 {
		return a.someFailed(u.failed, u.asked, "cannot be planned")
	}
	a.json = false
	if len(lines) > 0 {
		return &exitError{exitToDo, fmt.Errorf("%s to upgrade", plural(len(lines), "connector", "connectors"))}
	}
	if len(u.held) == 0 {
		a.say("%s", u.idle())
	}
	return nil
}

// idle says why nothing was to be done.
func (u *upgrading) idle() string {
	if u.asked == 0 {
		return "nothing is installed"
	}
	if u.single() && len(u.old) == 0 {
		return u.o.names[0] + " is up to date"
	}
	return idle(u.old)
}

// upgradedLine is one upgrade that was made, for --json.
type upgradedLine struct {
	outdatedPair
	State string   `json:"state"`
	Held  []string `json:"held_tools"`
}

// report is the end of an upgrade.
func (u *upgrading) report() error {
	a := u.app
	a.clearProgress()
	if u.single() && len(u.failed) == 1 {
		return u.failed[0].err
	}
	lines := []upgradedLine{}
	for _, d := range u.done {
		now := d.out.Record
		lines = append(lines, upgradedLine{outdatedPair{now.Name, now.Connector, d.from.Version, displayVersion(d.from), now.Version, displayVersion(now)}, string(now.AuthState), toolNames(d.out.Held)})
	}
	if a.json {
		if err := a.printJSON(map[string]any{"upgraded": lines, "held": u.heldLines(), "failed": failures(u.failed)}); err != nil {
			return err
		}
		return a.someFailed(u.failed, u.asked, "are not upgraded")
	}
	for i, l := range lines {
		a.line("%s is upgraded: %s → %s, %s.", l.Name, form.Clean(l.FromString), form.Clean(versionOf(u.done[i].out.Record)), l.State)
		if len(l.Held) > 0 {
			a.line("  held     %s", strings.Join(l.Held, ", "))
			a.line("  accept   %s tools %s --accept", program, l.Name)
		}
		a.line("  back     %s rollback %s", program, l.Name)
	}
	u.sayHeld()
	if len(lines)+len(u.held)+len(u.failed) == 0 {
		a.say("%s", u.idle())
	}
	return a.someFailed(u.failed, u.asked, "are not upgraded")
}

package main

import (
	"errors"
	"fmt"
	"strings"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/form"
	"skald-connectors/install/deps"
)

// packagesShown bounds a list of packages in a plan; --json and the record have all.
const packagesShown = 12

// depsRows shows what a plan installs from npm and pip.
func depsRows(row func(label, format string, args ...any), list []activate.Dependency, scripts, bundled bool) {
	for _, d := range list {
		row("packages", "%s", form.Clean(packagesText(d)))
		if !d.Locked {
			row("", "%s", form.Clean(d.Why))
		}
		from := orElse(strings.Join(d.Tool.Hosts, ", "), "the folder that your settings name")
		if bundled {
			from = "the bundle where it has packages, else from " + from
		}
		row("", "by %s %s for %s %s, from %s", d.Ecosystem, form.Clean(d.Tool.Installer), d.Ecosystem.Runtime(), form.Clean(d.Tool.Version), form.Clean(from))
		row("", "%s", form.Clean(scriptsText(d, scripts)))
		for _, note := range append(d.Notes, d.Tool.Notes...) {
			row("note", "%s", form.Clean(note))
		}
	}
}

func packagesText(d activate.Dependency) string {
	if d.Locked {
		return fmt.Sprintf("%s from %s, each held to its digest in %s: %s", plural(len(d.Here), "package", "packages"), d.Ecosystem, d.From, some(d.Asked))
	}
	return fmt.Sprintf("%s, and what they need, from %s, as %s asks: %s", plural(len(d.Asked), "package", "packages"), d.Ecosystem, d.From, some(d.Asked))
}

func some(list []string) string {
	if len(list) <= packagesShown {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:packagesShown], ", "), len(list)-packagesShown)
}

// scriptsText says what would run while the packages are installed.
func scriptsText(d activate.Dependency, allowed bool) string {
	want := d.ScriptsHere()
	switch {
	case d.Ecosystem == deps.Pip && allowed:
		return "packages without a ready-made wheel are built from their source here (--allow-scripts)"
	case d.Ecosystem == deps.Pip:
		return "only ready-made wheels; nothing is built from source (--allow-scripts would)"
	case allowed && len(want) > 0:
		return "install scripts run, with the network and without your credentials: " + some(want)
	case allowed:
		return "install scripts run where a package has one (--allow-scripts)"
	case len(want) > 0:
		return "install scripts do not run; these packages have one and may not work without it: " + some(want) + " (--allow-scripts lets them run)"
	case d.Locked:
		return "none of them has an install script"
	}
	return "install scripts do not run (--allow-scripts would let them)"
}

// showPackages moves the one line of the progress.
func (a *app) showPackages(ecosystem string, done, total int) {
	if p := a.progress; p != nil && p.live {
		p.packages(ecosystem, done, total, a.hooks.now())
	}
}

// showTail shows the end of what npm or pip wrote.
func (a *app) showTail(err error) {
	var build *deps.BuildError
	if errors.As(err, &build) && build.Tail != "" {
		lines := strings.Split(build.Tail, "\n")
		for i := range lines {
			lines[i] = form.Clean(strings.TrimRight(lines[i], "\r"))
		}
		fmt.Fprintf(a.stderr, "the last lines that %s wrote:\n%s\n", build.Ecosystem, indent(strings.Join(lines, "\n")))
	}
}

// packagesCode is for the errors of dependencies.
func packagesCode(err error) (int, string, bool) {
	var (
		refused *deps.RefusedError
		tool    *deps.ToolError
		build   *deps.BuildError
	)
	switch {
	case errors.As(err, &refused):
		return exitUsage, "the connector's author has to mend its list of dependencies; nothing was installed", true
	case errors.As(err, &tool):
		return exitConnector, toolHint(tool), true
	case errors.As(err, &build):
		code := exitFailed
		if build.Kind == deps.Mismatch || build.Kind == deps.Unsafe {
			code = exitIntegrity
		}
		return code, buildHint(build), true
	}
	return 0, "", false
}

func toolHint(e *deps.ToolError) string {
	if e.Program == "pip" {
		return fmt.Sprintf("install pip %s for %s (Debian and Ubuntu: apt install python3-pip; elsewhere: python3 -m ensurepip)", e.Range, e.Path)
	}
	return fmt.Sprintf("install npm %s beside node (it comes with Node.js from nodejs.org; Debian and Ubuntu: apt install npm)", e.Range)
}

func buildHint(e *deps.BuildError) string {
	switch e.Kind {
	case deps.Unreachable:
		return "check the network, and the proxy, certificates and registry in your " + string(e.Ecosystem) + " settings"
	case deps.Denied:
		return "sign in to that registry with " + string(e.Ecosystem) + "; your own settings are used"
	case deps.Mismatch:
		return "nothing was installed; the registry, or something on the way to it, serves other bytes than the connector's author saw"
	case deps.Missing:
		if e.Ecosystem == deps.Pip {
			return "there may be only a source package, or none for this machine; --allow-scripts lets sources be built"
		}
		return "the connector's author has to mend its list of dependencies"
	case deps.Unhashed:
		return "the connector's author has to list every package that comes, with its hash"
	case deps.NoSpace:
		return "make room and run the command again"
	case deps.NeedsBuild:
		return "install a compiler (Debian and Ubuntu: apt install build-essential; macOS: xcode-select --install) and run the command again with --allow-scripts"
	case deps.TimedOut:
		return "give it longer with --deps-timeout 15m"
	}
	return ""
}

// installedPackages says what came with an activation.
func installedPackages(d record.DepsRef) string {
	text := fmt.Sprintf("%d from %s (%s)", len(d.Packages), d.Ecosystem, d.From)
	if !d.Locked {
		text += ", not locked by the connector, recorded with their digests"
	}
	if len(d.Ran) > 0 {
		text += "; install scripts ran: " + some(d.Ran)
	}
	return text
}

// wantedPackages says what would come with a connector.
func wantedPackages(s deps.Set) string {
	text := fmt.Sprintf("%s from %s, as %s asks: %s", plural(len(s.Asked), "package", "packages"), s.Ecosystem, s.From, some(s.Asked))
	if s.Locked {
		text += "; each byte is fixed"
	} else {
		text += "; " + s.Why
	}
	if scripts := s.Scripts(); len(scripts) > 0 {
		text += "; with install scripts: " + some(scripts)
	}
	return text
}

// packagesDocument is the same for --json.
func packagesDocument(sets []deps.Set) []map[string]any {
	out := []map[string]any{}
	for _, s := range sets {
		packages := s.Packages
		if packages == nil {
			packages = []deps.Package{}
		}
		out = append(out, map[string]any{"ecosystem": s.Ecosystem, "from": s.From, "asked": s.Asked, "locked": s.Locked, "packages": packages, "scripts": list(s.Scripts())})
	}
	return out
}

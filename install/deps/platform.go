package deps

import (
	"debug/elf"
	"path"
	"runtime"
	"slices"
	"strings"
)

// A machine is what npm chooses optional packages by, in node's words.
type machine struct{ os, cpu, libc string } // libc is "glibc" or "musl" on Linux, else ""

// Here gives those of the set's packages that are installed for this tool's machine:
// a lock names the binaries of every system, and npm takes one.
func (s Set) Here(t *Tool) []Package {
	if s.lock == nil {
		return s.Packages
	}
	return s.lock.on(machineOf(t.Path))
}

// machineOf is the machine of a node interpreter.
func machineOf(node string) machine {
	m := machine{os: runtime.GOOS, cpu: runtime.GOARCH}
	if name, ok := map[string]string{"windows": "win32"}[m.os]; ok {
		m.os = name
	}
	if name, ok := map[string]string{"amd64": "x64", "386": "ia32", "ppc64le": "ppc64"}[m.cpu]; ok {
		m.cpu = name
	}
	if m.os == "linux" {
		m.libc = libcOf(node)
	}
	return m
}

// libcOf reads which loader a program asks for. A script in the place of node leaves
// the usual one.
func libcOf(program string) string {
	f, err := elf.Open(program)
	if err != nil {
		return "glibc"
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz > loaderLimit {
			continue
		}
		loader := make([]byte, p.Filesz)
		if _, err := p.ReadAt(loader, 0); err == nil && strings.Contains(string(loader), "ld-musl") {
			return "musl"
		}
	}
	return "glibc"
}

// loaderLimit bounds the path of a loader; Linux has no longer paths.
const loaderLimit = 4096

// on gives the packages that npm installs on a machine, each name and version once:
// an optional one that is not for it stays away, with what only it needs.
func (l *lock) on(m machine) []Package {
	at := map[string]*locked{}
	places := map[string]bool{}
	for i := range l.packages {
		at[l.packages[i].where], places[l.packages[i].where] = &l.packages[i], true
	}
	away := l.away(m, places)
	reached := map[string]bool{}
	var walk func(from string, needs ...map[string]string)
	walk = func(from string, needs ...map[string]string) {
		for _, need := range needs {
			for name := range need {
				where := above(places, from, name)
				if p := at[where]; p != nil && !away[where] && !reached[where] {
					reached[where] = true
					walk(where, p.needs()...)
				}
			}
		}
	}
	walk("", l.root["dependencies"], l.root["optionalDependencies"], l.root["peerDependencies"])
	var here lock
	for _, p := range l.packages {
		if reached[p.where] {
			here.packages = append(here.packages, p)
		}
	}
	return here.list()
}

// away names the optional packages that are not for a machine, and those that cannot
// do without one of them.
func (l *lock) away(m machine, places map[string]bool) map[string]bool {
	out := map[string]bool{}
	for more := true; more; {
		more = false
		for _, p := range l.packages {
			if out[p.where] || !p.optional || p.fits(m) && !p.lacks(out, places) {
				continue
			}
			out[p.where], more = true, true
		}
	}
	return out
}

func (p *locked) lacks(away, places map[string]bool) bool {
	for name := range p.deps {
		if away[above(places, p.where, name)] {
			return true
		}
	}
	return false
}

func (p *locked) needs() []map[string]string {
	var out []map[string]string
	for _, key := range entryMaps {
		out = append(out, mapOf(p.raw[key]))
	}
	return out
}

// fits holds a package's os, cpu and libc against a machine, as npm does: one of the
// words has to name it, and none may refuse it.
func (p *locked) fits(m machine) bool {
	for key, is := range map[string]string{"os": m.os, "cpu": m.cpu, "libc": m.libc} {
		list, _ := p.raw[key].([]string)
		refusals := 0
		for _, word := range list {
			if strings.HasPrefix(word, "!") {
				refusals++
			}
		}
		switch {
		case len(list) == 0 || len(list) == 1 && list[0] == "any":
		case slices.Contains(list, "!"+is):
			return false
		case !slices.Contains(list, is) && refusals < len(list):
			return false
		}
	}
	return true
}

// above finds a package where node would: in each node_modules on the way up; "" when
// it is nowhere.
func above(places map[string]bool, from, name string) string {
	for {
		if where := path.Join(from, "node_modules", name); places[where] {
			return where
		}
		if from == "" {
			return ""
		}
		from = from[:max(0, strings.LastIndex(from, "/node_modules/"))]
	}
}

package deps

import (
	"fmt"
	"slices"
	"strings"
)

// readNPM reads what is wanted from npm; nil = nothing.
func readNPM(in Input) (*Set, error) {
	src, shipped := in.Files[packageFile]
	start, err := readNPX(in)
	if err != nil {
		return nil, err
	}
	w := &wanted{}
	set := &Set{Ecosystem: NPM, Start: start}
	switch listed := base(in.Command) == "node" || base(in.Command) == "npx" || base(in.Command) == "bun" || base(in.Command) == "deno"; {
	case shipped:
		set.From = packageFile
		if w, err = readPackageJSON(src); err != nil {
			return nil, err
		}
	case listed && len(in.Listed) > 0 && start == nil:
		set.From = "the manifest's list of dependencies"
		if w.deps, err = listedNPM(in.Listed); err != nil {
			return nil, err
		}
	}
	if start != nil {
		set.addStart(w, in)
	}
	if w.empty() {
		return nil, nil
	}
	set.Asked, set.Engine, set.Notes = w.asked(), w.node, append(set.Notes, w.notes...)
	if err := set.addLock(w, in, shipped); err != nil {
		return nil, err
	}
	set.files[packageFile] = w.marshal()
	return set, nil
}

// addLock looks for the lock that goes with the list. A lock that does not fit is
// still given to npm as a hint; then npm decides and the outcome is recorded.
func (s *Set) addLock(w *wanted, in Input, shipped bool) error {
	s.files = map[string][]byte{}
	file := shrinkwrapFile
	src, ok := in.Files[file]
	if !ok {
		file = lockFile
		src, ok = in.Files[file]
	}
	if !ok || !shipped {
		s.Why = "there is no lock file: the registry decides which versions come, and they are recorded"
		return nil
	}
	l, err := readLock(file, src, false)
	if err != nil {
		return err
	}
	s.files[lockFile] = l.marshal(w)
	if why := l.fits(w); why != "" {
		s.Why = fmt.Sprintf("its %s is out of step (%s): the registry decides what differs, and that is recorded", file, why)
		return nil
	}
	s.From, s.Locked, s.Packages, s.lock = file, true, l.list(), l
	return nil
}

// addStart adds the package that npx would fetch. One that a shipped package.json
// already names is taken from there.
func (s *Set) addStart(w *wanted, in Input) {
	s.Notes = append(s.Notes, "it is started from there by node; npx is not used")
	name, want := splitSpec(s.Start.Package)
	s.Start.Package = name
	if _, there := w.deps[name]; there && want == "" {
		return
	}
	if want == "" {
		want = "latest"
	}
	if w.deps == nil {
		w.deps = map[string]string{}
	}
	w.deps[name] = want
	if s.From == "" {
		s.From = "its npx command"
	} else {
		s.From += " and its npx command"
	}
}

// listedNPM reads the manifest's own list: "name", "name@range" or "name range".
func listedNPM(list []string) (map[string]string, error) {
	out := map[string]string{}
	for i, item := range list {
		item = strings.TrimSpace(item)
		name, want := splitSpec(item)
		if !validNPMName(name) {
			if at := strings.IndexAny(item, " <>=~^"); at > 0 {
				name, want = item[:at], strings.TrimSpace(item[at:])
			}
		}
		if !validNPMName(name) || validNPMRange(want) != nil {
			return nil, &RefusedError{File: "connector.json", Path: fmt.Sprintf("dependencies[%d]", i), What: "it is not the name of a package with a version or a range"}
		}
		if want == "" {
			want = "*"
		}
		out[name] = want
	}
	return out, nil
}

// readNPX reads "npx [-y] package[@version] arguments…", which would ask the
// registry at each start. The package is installed once, and started from there.
func readNPX(in Input) (*Start, error) {
	if base(in.Command) != "npx" {
		return nil, nil
	}
	refuse := func(what string) error {
		return &RefusedError{File: "connector.json", Path: "mcp_config.args", What: what}
	}
	start, args := &Start{}, in.Args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		option := args[0]
		args = args[1:]
		value, joined := "", false
		if o, v, ok := strings.Cut(option, "="); ok {
			option, value, joined = o, v, true
		}
		switch {
		case slices.Contains([]string{"-y", "--yes", "-q", "--quiet"}, option) && !joined:
			continue
		case option == "-p" || option == "--package":
			if !joined && len(args) > 0 {
				value, args = args[0], args[1:]
			}
			if start.Package != "" {
				return nil, refuse("npx with more than one package is not taken")
			}
			start.Package = value
			continue
		case option == "--" && !joined:
		default:
			return nil, refuse("an option of npx that is not taken; -y and --package are")
		}
		break
	}
	if len(args) == 0 {
		return nil, refuse("npx without a package")
	}
	if start.Package == "" {
		start.Package = args[0]
	} else if start.Bin = args[0]; !npmBin.MatchString(start.Bin) {
		return nil, refuse("a command that no package has")
	}
	start.Args = slices.Clone(args[1:])
	name, want := splitSpec(start.Package)
	if !validNPMName(name) || validNPMRange(want) != nil {
		return nil, refuse("it does not name a package of a registry")
	}
	return start, nil
}

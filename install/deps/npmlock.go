package deps

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"skald-connectors/internal/exactjson"
)

// lockLimit bounds the packages of one lock file; the largest honest ones have some
// two thousand.
const lockLimit = 10_000

// A locked is one package of a lock file, by the folder that it goes to.
type locked struct {
	where     string // node_modules/a/node_modules/b
	name      string // of the package; differs from the folder for an alias
	version   string
	integrity string
	bundled   bool // comes inside the package above it
	optional  bool
	scripts   bool
	deps      map[string]string // what it needs and must find
	raw       map[string]any    // what is written
}

// A lock is a lock file taken apart.
type lock struct {
	root     map[string]map[string]string // dependencies of its root, by kind
	packages []locked                     // ascending by place
	hosts    map[string]string            // that its addresses name, by scope ("" = none)
	ours     bool
}

// readLock reads lock file versions 2 and 3. Each package must come from a registry
// and be fixed by a SHA-512; its address is checked and then dropped, so that npm
// asks the registry of the person's own settings. In a lock that npm has just made
// (ours), addresses have the form of that registry, which is not everywhere the same.
func readLock(file string, src []byte, ours bool) (*lock, error) {
	d := document{file, src}
	v, err := d.parse()
	if err != nil {
		return nil, err
	}
	format, ok := v.Get("lockfileVersion")
	if !ok || format.Str != "2" && format.Str != "3" {
		return nil, d.refuse(format, "lockfileVersion", "expected 2 or 3: older lock files do not fix every package; npm 7 or newer writes them anew")
	}
	all, ok := get(v, "packages")
	if !ok || all.Kind != exactjson.Object || len(all.Members) > lockLimit {
		return nil, d.refuse(all, "packages", "expected an object of at most %d packages", lockLimit)
	}
	l := &lock{root: map[string]map[string]string{}, hosts: map[string]string{}, ours: ours}
	for _, m := range all.Members {
		if m.Key == "" {
			err = l.readRoot(d, m.Value)
		} else {
			err = l.add(d, m)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(l.packages, func(a, b locked) int { return strings.Compare(a.where, b.where) })
	return l, l.checkBundled(file)
}

func (l *lock) readRoot(d document, v exactjson.Value) (err error) {
	for _, key := range []string{"dependencies", "optionalDependencies", "peerDependencies"} {
		if l.root[key], err = d.ranges(v, key); err != nil {
			return err
		}
	}
	return nil
}

// add reads one package. What only development needs is left out, and what npm itself
// marks as needed by nothing.
func (l *lock) add(d document, m exactjson.Member) error {
	v := m.Value
	name, err := lockPlace(m.Key)
	switch {
	case err != nil:
		return d.refuse(v, "packages", "%v", err)
	case v.Kind != exactjson.Object:
		return d.refuse(v, "packages", "found %s, expected an object", v.Kind)
	case isTrue(v, "dev") || isTrue(v, "extraneous"):
		return nil
	case isTrue(v, "link"):
		return d.refuse(v, "packages", "a link to a folder in place of a package")
	}
	p := locked{where: m.Key, name: name, bundled: isTrue(v, "inBundle"), optional: isTrue(v, "optional") || isTrue(v, "devOptional"), scripts: isTrue(v, "hasInstallScript")}
	if alias, ok := get(v, "name"); ok {
		if p.name = alias.Str; alias.Kind != exactjson.String || !validNPMName(p.name) {
			return d.refuse(alias, "packages", "a name that no package has")
		}
	}
	version, _ := v.Get("version")
	if p.version = version.Str; version.Kind != exactjson.String || !exactVersion(p.version) {
		return d.refuse(v, "packages", "a package without an exact version")
	}
	if err := l.source(d, v, &p); err != nil {
		return err
	}
	if p.raw, err = d.copyEntry(v, &p); err != nil {
		return err
	}
	l.packages = append(l.packages, p)
	return nil
}

func isTrue(v exactjson.Value, key string) bool {
	m, ok := v.Get(key)
	return ok && m.Kind == exactjson.Bool && m.Str == "true"
}

// lockPlace holds the place of a package against its grammar and gives its name:
// node_modules/<name>, any number of times.
func lockPlace(key string) (name string, err error) {
	parts := strings.Split("/"+key, "/node_modules/")
	if parts[0] != "" || len(parts) < 2 {
		return "", fmt.Errorf("a package outside of node_modules")
	}
	for _, part := range parts[1:] {
		if !validNPMName(part) {
			return "", fmt.Errorf("a place that no package has")
		}
		name = part
	}
	return name, nil
}

// source checks where a package comes from and what fixes its bytes.
func (l *lock) source(d document, v exactjson.Value, p *locked) error {
	integrity, _ := v.Get("integrity")
	p.integrity = pickSHA512(integrity.Str)
	if resolved, ok := get(v, "resolved"); ok {
		host, err := registryHost(resolved, p, l.ours)
		if err != nil {
			return d.refuse(resolved, "packages", "%v", err)
		}
		scope := scopeOf(p.name)
		if l.ours {
			host = ""
		}
		if l.hosts[scope] == "" {
			l.hosts[scope] = host
		}
		if host != l.hosts[scope] {
			return d.refuse(resolved, "packages", "a package from another host than the others of its scope")
		}
	}
	if p.integrity == "" && !p.bundled {
		if integrity.Kind == exactjson.String {
			return d.refuse(v, "packages", "a package that no SHA-512 fixes")
		}
		return d.refuse(v, "packages", "a package without integrity")
	}
	return nil
}

// scopeOf is the part of a name by which npm chooses a registry.
func scopeOf(name string) string {
	if scope, _, ok := strings.Cut(name, "/"); ok {
		return scope
	}
	return ""
}

// registryHost takes the host out of the address of a package's archive. The address
// must be what registries use for that very package.
func registryHost(v exactjson.Value, p *locked, ours bool) (string, error) {
	u, err := url.Parse(v.Str)
	switch {
	case v.Kind != exactjson.String || err != nil:
		return "", fmt.Errorf("an address that cannot be read")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Opaque != "":
		return "", fmt.Errorf("an address that is not a registry's: repositories, files and links are not taken")
	case ours:
		return u.Host, nil
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("an address with a credential, a query or a fragment")
	case path.Clean(u.Path) != u.Path || !strings.HasSuffix(u.Path, "/"+p.name+"/-/"+path.Base(p.name)+"-"+p.version+".tgz"):
		return "", fmt.Errorf("an address that is not the one of that package and version in a registry")
	}
	return u.Host, nil
}

// entryMaps and entryFlags are what npm needs of an entry to build the same tree.
var (
	entryMaps  = []string{"dependencies", "optionalDependencies", "peerDependencies"}
	entryFlags = []string{"optional", "peer", "devOptional", "inBundle", "hasInstallScript"}
	entryLists = []string{"os", "cpu", "libc"}
)

// copyEntry writes an entry anew from what is known of it.
func (d document) copyEntry(v exactjson.Value, p *locked) (map[string]any, error) {
	out := map[string]any{"version": p.version}
	if p.integrity != "" {
		out["integrity"] = p.integrity
	}
	if !strings.HasSuffix("/"+p.where, "/node_modules/"+p.name) {
		out["name"] = p.name
	}
	for _, key := range entryFlags {
		if isTrue(v, key) {
			out[key] = true
		}
	}
	for _, key := range entryLists {
		if list := words(v, key); len(list) > 0 {
			out[key] = list
		}
	}
	if err := d.copyNeeds(v, p, out); err != nil {
		return nil, err
	}
	bin, err := d.binOf(v)
	if len(bin) > 0 {
		out["bin"] = bin
	}
	return out, err
}

// copyNeeds copies what a package depends on. A bundled package may name what is
// not taken from a list: npm does not fetch it, it is in the archive.
func (d document) copyNeeds(v exactjson.Value, p *locked, out map[string]any) error {
	optionalPeers := optionalPeers(v)
	for _, key := range entryMaps {
		needs, err := d.ranges(v, key)
		if err != nil {
			return err
		}
		if len(needs) == 0 {
			continue
		}
		out[key] = needs
		for name, want := range needs {
			if key == "optionalDependencies" || key == "peerDependencies" && slices.Contains(optionalPeers, name) {
				continue
			}
			if p.deps == nil {
				p.deps = map[string]string{}
			}
			p.deps[name] = want
		}
	}
	for name := range mapOf(out["optionalDependencies"]) {
		delete(p.deps, name)
	}
	if len(optionalPeers) > 0 {
		meta := map[string]any{}
		for _, name := range optionalPeers {
			meta[name] = map[string]any{"optional": true}
		}
		out["peerDependenciesMeta"] = meta
	}
	if bundles := append(words(v, "bundleDependencies"), words(v, "bundledDependencies")...); len(bundles) > 0 {
		out["bundleDependencies"] = bundles
	}
	return nil
}

func mapOf(v any) map[string]string {
	m, _ := v.(map[string]string)
	return m
}

func optionalPeers(v exactjson.Value) []string {
	meta, _ := get(v, "peerDependenciesMeta")
	var out []string
	for _, m := range meta.Members {
		if validNPMName(m.Key) && isTrue(m.Value, "optional") {
			out = append(out, m.Key)
		}
	}
	return out
}

// words takes a list of short texts.
func words(v exactjson.Value, key string) []string {
	list, _ := get(v, key)
	var out []string
	for _, item := range list.Items {
		if item.Kind == exactjson.String && validNPMName(strings.TrimPrefix(item.Str, "!")) {
			out = append(out, item.Str)
		}
	}
	return out
}

// binOf copies the commands of a package; they become links in node_modules/.bin.
func (d document) binOf(v exactjson.Value) (map[string]string, error) {
	bin, _ := get(v, "bin")
	out := map[string]string{}
	for _, m := range bin.Members {
		clean := strings.TrimPrefix(m.Value.Str, "./")
		if m.Value.Kind != exactjson.String || !npmBin.MatchString(m.Key) || !localPath(clean) {
			return nil, d.refuse(m.Value, "packages", "a command outside of its package")
		}
		out[m.Key] = clean
	}
	return out, nil
}

// localPath tells that a slash-separated path stays below where it starts.
func localPath(p string) bool {
	return p != "" && !strings.ContainsAny(p, "\\\x00:") && !path.IsAbs(p) && path.Clean(p) == p && p != "." && p != ".." && !strings.HasPrefix(p, "../")
}

// checkBundled holds that what comes inside an archive is below a package whose
// digest covers it.
func (l *lock) checkBundled(file string) error {
	fixed := map[string]bool{}
	for _, p := range l.packages { // ascending, so what is above comes first
		if p.integrity != "" {
			fixed[p.where] = true
			continue
		}
		above := p.where
		for above != "" && !fixed[above] {
			above = above[:max(0, strings.LastIndex(above, "/node_modules/"))]
		}
		if above == "" {
			return &RefusedError{File: file, Path: "packages", What: "a bundled package that no package above it brings"}
		}
	}
	return nil
}

// fits says why the lock is not the one of a package.json; "" when it is. npm's own
// check comes at the installation; this one is for the plan.
func (l *lock) fits(w *wanted) string {
	for key, asked := range map[string]map[string]string{"dependencies": w.deps, "optionalDependencies": w.optional, "peerDependencies": w.peers} {
		there := maps.Clone(l.root[key])
		if key == "dependencies" {
			maps.DeleteFunc(there, func(name, _ string) bool { _, ok := w.optional[name]; return ok })
		}
		if !maps.Equal(there, asked) && len(there)+len(asked) > 0 {
			return "it was made for another package.json"
		}
	}
	places := map[string]bool{}
	for _, p := range l.packages {
		places[p.where] = true
	}
	for name := range w.deps {
		if !places["node_modules/"+name] {
			return "a package that is asked for is not in it"
		}
	}
	for _, p := range l.packages {
		for name := range p.deps {
			if !p.bundled && above(places, p.where, name) == "" {
				return "a package that another one needs is not in it"
			}
		}
	}
	return ""
}

// marshal writes the lock for npm ci.
func (l *lock) marshal(w *wanted) []byte {
	root := w.root()
	root["name"], root["version"] = rootName, "0.0.0"
	packages := map[string]any{"": root}
	for _, p := range l.packages {
		packages[p.where] = p.raw
	}
	return marshal(map[string]any{"name": rootName, "version": "0.0.0", "lockfileVersion": 3, "requires": true, "packages": packages})
}

// list gives the packages, each name and version once.
func (l *lock) list() []Package {
	var out []Package
	for _, p := range l.packages {
		out = append(out, Package{Name: p.name, Version: p.version, Integrity: p.integrity, Scripts: p.scripts})
	}
	sortPackages(out)
	return slices.Compact(out)
}

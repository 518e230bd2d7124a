package deps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skald-connectors/internal/exactjson"
	"skald-connectors/sandbox"
)

// resolvedLimit bounds the lock file that npm writes: lockLimit packages at 500 bytes.
const resolvedLimit = 8 << 20

// manifestLimit bounds an installed package's package.json.
const manifestLimit = 1 << 20

// npm installs from the npm registry. Without a lock, npm is asked for one first; it is
// held to the same rules as a shipped one, and only what it names is installed.
func (b *build) npm(ctx context.Context) (*Result, error) {
	files := b.set.files
	res := &Result{}
	src, ok := files[lockFile]
	if !b.set.Locked {
		if err := b.resolve(ctx); err != nil {
			return nil, err
		}
		var err error
		if src, err = readBounded(filepath.Join(b.tree, lockFile), resolvedLimit); err != nil {
			return nil, err
		}
		ok = true
	}
	if !ok {
		return nil, &RefusedError{File: lockFile, What: "it is missing"}
	}
	l, err := readLock(lockFile, src, !b.set.Locked)
	if err != nil {
		return nil, err
	}
	w, err := readPackageJSON(files[packageFile])
	if err != nil {
		return nil, err
	}
	if err := b.write(map[string][]byte{packageFile: files[packageFile], lockFile: l.marshal(w)}); err != nil {
		return nil, err
	}
	end := b.watch(len(l.on(machineOf(b.o.Tool.Path))), func() int { return countPackages(filepath.Join(b.tree, NPM.Folder())) })
	err = b.runNPM(ctx, true, "ci")
	end()
	if err != nil {
		return nil, err
	}
	if err := b.took(l, res); err != nil {
		return nil, err
	}
	if err := b.scripts(ctx, l, res); err != nil {
		return nil, err
	}
	return res, b.start(res)
}

// write puts the generated files into the tree.
func (b *build) write(files map[string][]byte) error {
	for name, data := range files {
		if err := writeNew(filepath.Join(b.tree, name), data); err != nil {
			return full(b.set.Ecosystem, err)
		}
	}
	return nil
}

// writeNew writes a file of the unfinished tree; what is there is of an earlier step.
func writeNew(path string, data []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("reading %q: it is larger than %d bytes", filepath.Base(path), limit)
	}
	return data, err
}

// resolve lets npm work the versions out, and download nothing but descriptions.
func (b *build) resolve(ctx context.Context) error {
	b.say("%s: asking the registry which versions fit", NPM)
	files := map[string][]byte{packageFile: b.set.files[packageFile]}
	if hint, ok := b.set.files[lockFile]; ok {
		files[lockFile] = hint
	}
	if err := b.write(files); err != nil {
		return err
	}
	return b.runNPM(ctx, true, "install", "--package-lock-only")
}

// npmFlags are those of every start (security.md 3.2). The last part are settings that
// only newer npms have; git is also made impossible for an npm that has no flag for it.
func (b *build) npmFlags() []string {
	rc, cache := filepath.Join(b.scratch, "npmrc"), b.cache(NPM)
	flags := []string{"--omit=dev", "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress", "--loglevel=error", "--logs-max=0",
		"--cache=" + cache, "--userconfig=" + rc, "--globalconfig=" + filepath.Join(b.scratch, "no-global-npmrc"),
		"--git=" + filepath.Join(b.scratch, "no-such-program-for-git")}
	if b.o.Offline {
		flags = append(flags, "--offline")
	}
	newer := []string{"allow-git=none", "allow-remote=none", "allow-file=none", "allow-directory=none"}
	if !slices.ContainsFunc(b.o.Tool.npm.lines, func(s setting) bool { return isScope(s.key) }) {
		newer = append(newer, "replace-registry-host=always") // it would send a scope's archives to the other registry
	}
	for _, flag := range newer {
		if key, _, _ := strings.Cut(flag, "="); b.o.Tool.knows[key] {
			flags = append(flags, "--"+flag)
		}
	}
	return flags
}

// cache is where the downloads of an ecosystem go.
func (b *build) cache(e Ecosystem) string {
	if b.o.Cache == "" {
		return filepath.Join(b.scratch, "cache")
	}
	return filepath.Join(b.o.Cache, string(e))
}

// runNPM starts npm in the tree: to download, without scripts, or to run scripts,
// without a credential. The private settings file exists only while npm runs.
func (b *build) runNPM(ctx context.Context, download bool, args ...string) error {
	t := b.o.Tool
	policy := b.policy(t.Hosts)
	flags := b.npmFlags()
	settings := t.npm.rc()
	if download {
		flags = append(flags, "--ignore-scripts")
		if last(t.npm.lines, "fetch-retry-mintimeout") == "" {
			settings = append(settings, "fetch-retry-mintimeout=1000\nfetch-retry-maxtimeout=5000\n"...)
		}
	} else {
		settings = t.npm.open().rc()
		policy.Read = slices.DeleteFunc(policy.Read, func(file string) bool { return slices.Contains(t.npm.keys(), file) })
		policy.Network = sandbox.Network{All: !b.o.Offline} // what the person allowed: scripts fetch prebuilt binaries
	}
	if b.o.Offline {
		carried, err := b.carriedRegistries()
		if err != nil {
			return err
		}
		settings = carried
	}
	if err := b.noteRegistries(); err != nil {
		return err
	}
	rc := filepath.Join(b.scratch, "npmrc")
	b.step("deps-settings")
	if err := writeNew(rc, settings); err != nil {
		return full(NPM, err)
	}
	defer os.Remove(rc)
	var env []string
	if extra := b.certificates(); extra != "" {
		env = append(env, "NODE_EXTRA_CA_CERTS="+extra)
	}
	argv := slices.Concat(t.argv, args[:1], flags, args[1:])
	return b.run(ctx, policy, sandbox.Command{Argv: argv, Dir: b.tree, Env: b.environ(env...)}, t.npm.secrets)
}

// certificates gives node the person's certificate file when they set it for other
// programs only.
func (b *build) certificates() string {
	vars := environMap(b.o.Base)
	if vars["NODE_EXTRA_CA_CERTS"] != "" || last(b.o.Tool.npm.lines, "cafile") != "" {
		return ""
	}
	return vars["SSL_CERT_FILE"]
}

// countPackages counts what stands in a node_modules folder.
func countPackages(dir string) int {
	entries, _ := os.ReadDir(dir)
	n := 0
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case strings.HasPrefix(e.Name(), "@"):
			scoped, _ := os.ReadDir(filepath.Join(dir, e.Name()))
			n += len(scoped)
		default:
			n++
		}
	}
	return n
}

// took notes what is in the tree. Optional packages for other machines stay away;
// every other one has to be there.
func (b *build) took(l *lock, res *Result) error {
	var list []Package
	for _, p := range l.packages {
		_, err := os.Lstat(filepath.Join(b.tree, filepath.FromSlash(p.where), packageFile))
		switch {
		case err == nil:
			list = append(list, Package{Name: p.name, Version: p.version, Integrity: p.integrity, Scripts: b.hasScript(p)})
		case !p.optional && !p.bundled && p.raw["peer"] != true:
			return &BuildError{Ecosystem: NPM, Kind: Failed, Detail: fmt.Sprintf("%s@%s is not there", p.name, p.version), Tail: b.tail}
		}
	}
	sortPackages(list)
	res.Packages = slices.Compact(list)
	return nil
}

// hasScript looks whether an installed package would run something.
func (b *build) hasScript(p locked) bool {
	dir := filepath.Join(b.tree, filepath.FromSlash(p.where))
	if _, err := os.Lstat(filepath.Join(dir, "binding.gyp")); err == nil {
		return true
	}
	doc, ok := readPackage(dir)
	scripts, _ := get(doc, "scripts")
	for _, name := range []string{"preinstall", "install", "postinstall"} {
		if _, has := get(scripts, name); ok && has {
			return true
		}
	}
	return false
}

func readPackage(dir string) (exactjson.Value, bool) {
	src, err := readBounded(filepath.Join(dir, packageFile), manifestLimit)
	if err != nil {
		return exactjson.Value{}, false
	}
	v, _, err := exactjson.Parse(src, jsonDepth*4)
	return v, err == nil
}

// scripts runs the install scripts that were allowed: those that a lock announced,
// or all when there was none to announce them. The registry's credential is gone.
func (b *build) scripts(ctx context.Context, l *lock, res *Result) error {
	announced := b.set.Scripts()
	for _, p := range res.Packages {
		name := p.Name + "@" + p.Version
		switch {
		case !p.Scripts:
		case !b.o.AllowScripts:
			res.Notes = append(res.Notes, name+" has an install script, which was not run")
		case b.set.Locked && !slices.Contains(announced, name):
			res.Notes = append(res.Notes, name+" has an install script that its lock file does not announce; it was not run")
		case !slices.Contains(res.Ran, name):
			res.Ran = append(res.Ran, name)
		}
	}
	if len(res.Ran) == 0 {
		return nil
	}
	b.say("%s: running the install scripts of %s", NPM, strings.Join(res.Ran, ", "))
	return b.runNPM(ctx, false, append([]string{"rebuild"}, res.Ran...)...)
}

// start finds the script that npx would start.
func (b *build) start(res *Result) error {
	if b.set.Start == nil {
		return nil
	}
	start := *b.set.Start
	res.Start = &start
	refuse := func(what string) error {
		return &BuildError{Ecosystem: NPM, Kind: Missing, Detail: fmt.Sprintf("%s: %s", start.Package, what)}
	}
	dir := filepath.Join(b.tree, NPM.Folder(), filepath.FromSlash(start.Package))
	doc, ok := readPackage(dir)
	if !ok {
		return refuse("its package.json cannot be read")
	}
	script := binScript(doc, start.Package, start.Bin)
	if !localPath(script) {
		return refuse("it has no such command")
	}
	head := make([]byte, 128)
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(script)))
	if err != nil {
		return refuse("its command is not in the package")
	}
	n, _ := io.ReadFull(f, head)
	f.Close()
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	if strings.HasPrefix(line, "#!") && !strings.Contains(line, "node") {
		return refuse("its command is not started by node")
	}
	start.Script = start.Package + "/" + script
	return nil
}

// binScript picks the command as npx does: the one that is named, the only one, or
// the one with the package's own name.
func binScript(doc exactjson.Value, name, want string) string {
	own := name[strings.LastIndex(name, "/")+1:]
	bin, _ := get(doc, "bin")
	clean := func(v exactjson.Value) string { return strings.TrimPrefix(v.Str, "./") }
	switch {
	case bin.Kind == exactjson.String && (want == "" || want == own):
		return clean(bin)
	case want != "":
		v, _ := bin.Get(want)
		return clean(v)
	case len(bin.Members) == 1:
		return clean(bin.Members[0].Value)
	}
	v, _ := bin.Get(own)
	return clean(v)
}

package deps

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skald-connectors/sandbox"
)

// reportLimit bounds pip's report of what it installed: it quotes whole descriptions.
const reportLimit = 64 << 20

// pip installs wheels into a folder of their own; pip's rule about an interpreter that
// the system manages (PEP 668) speaks of other folders than this one.
func (b *build) pip(ctx context.Context) (*Result, error) {
	t := b.o.Tool
	if b.o.AllowScripts && t.pip.secret() {
		b.say("%s: sources are not built, because your index needs a credential and the build would see it", Pip)
		b.o.AllowScripts = false
	}
	list, err := readRequirements(requiredFile, b.set.files[requiredFile])
	if err != nil {
		return nil, err
	}
	if err := b.write(map[string][]byte{requiredFile: b.set.files[requiredFile]}); err != nil {
		return nil, err
	}
	target := filepath.Join(b.tree, Pip.Folder())
	if err := os.Mkdir(target, 0o700); err != nil {
		return nil, full(Pip, err)
	}
	if b.o.Cache != "" && !b.o.Offline {
		if err := b.runPip(ctx, b.downloadArgs()); err != nil {
			return nil, err
		}
	}
	end := b.watch(0, func() int { return len(distributions(target)) })
	err = b.runPip(ctx, b.pipArgs(target))
	end()
	if err != nil {
		return nil, err
	}
	res := &Result{}
	if res.Packages, err = b.installed(target, list); err != nil {
		return nil, err
	}
	b.compile(ctx, target)
	return res, nil
}

// pipArgs are pip's arguments (security.md 3.2); no value of the person's settings is
// among them.
func (b *build) pipArgs(target string) []string {
	args := b.pipCommon("install", "--no-compile", "--no-warn-script-location")
	if b.o.Cache != "" {
		args = append(args, "--no-index", "--find-links", b.cache(Pip))
	}
	if within(b.o.Tool.Installer, pipReports) {
		args = append(args, "--report", b.report())
	}
	return append(args, "--target", target, "-r", filepath.Join(b.tree, requiredFile))
}

// pipCommon are the arguments of every start that takes packages in.
func (b *build) pipCommon(command string, more ...string) []string {
	args := append([]string{command, "--no-input", "--disable-pip-version-check", "--no-color", "--progress-bar=off", "--no-cache-dir"}, more...)
	if !b.o.AllowScripts {
		args = append(args, "--only-binary", ":all:")
	}
	if b.set.Locked {
		args = append(args, "--require-hashes")
	}
	return args
}

// downloadArgs let pip fill the cache; what is installed then comes from there.
func (b *build) downloadArgs() []string {
	return append(b.pipCommon("download"), "--dest", b.cache(Pip), "-r", filepath.Join(b.tree, requiredFile))
}

func (b *build) report() string { return filepath.Join(b.scratch, "report.json") }

func (b *build) runPip(ctx context.Context, args []string) error {
	t := b.o.Tool
	policy := b.policy(t.Hosts)
	if b.o.AllowScripts && !b.o.Offline {
		policy.Network = sandbox.Network{All: true}
	}
	env := t.pip.environ()
	vars := environMap(b.o.Base)
	if t.pip.values["cert"] == "" && vars["REQUESTS_CA_BUNDLE"] == "" && vars["CURL_CA_BUNDLE"] == "" && vars["SSL_CERT_FILE"] != "" {
		env = append(env, "PIP_CERT="+vars["SSL_CERT_FILE"])
	}
	argv := append(slices.Clone(t.argv), args...)
	return b.run(ctx, policy, sandbox.Command{Argv: argv, Dir: b.tree, Env: b.environ(env...)}, t.pip.secrets)
}

// distributions lists what is installed in a target folder, by the folders that
// describe it: "name-version".
func distributions(target string) []string {
	entries, _ := os.ReadDir(target)
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".dist-info"); ok && e.IsDir() {
			out = append(out, name)
		}
	}
	return out
}

// installed says what came. pip's report has the digests; without one the digests are
// those of the list, where that names exactly one.
func (b *build) installed(target string, list []requirement) ([]Package, error) {
	digests := map[string]string{}
	for _, r := range list {
		if len(r.hashes) == 1 {
			digests[normalName(r.name)+" "+r.exact] = "sha256:" + r.hashes[0]
		}
	}
	if err := b.readReport(digests); err != nil {
		return nil, err
	}
	var out []Package
	for _, d := range distributions(target) {
		i := strings.LastIndex(d, "-")
		if i < 1 {
			continue
		}
		p := Package{Name: normalName(d[:i]), Version: d[i+1:]}
		p.Integrity = digests[p.Name+" "+p.Version]
		out = append(out, p)
	}
	if len(out) == 0 && !slices.ContainsFunc(list, func(r requirement) bool { return r.marker != "" }) {
		return nil, &BuildError{Ecosystem: Pip, Kind: Failed, Detail: "nothing was installed", Tail: b.tail}
	}
	sortPackages(out)
	return out, nil
}

func (b *build) readReport(digests map[string]string) error {
	if !within(b.o.Tool.Installer, pipReports) {
		return nil
	}
	src, err := readBounded(b.report(), reportLimit)
	if err != nil {
		return fmt.Errorf("reading pip's report: %w", err)
	}
	var report struct {
		Install []struct {
			Metadata struct{ Name, Version string }
			Download struct {
				Archive struct {
					Hash   string
					Hashes map[string]string
				} `json:"archive_info"`
			} `json:"download_info"`
		}
	}
	if err := json.Unmarshal(src, &report); err != nil {
		return fmt.Errorf("reading pip's report: %w", err)
	}
	for _, p := range report.Install {
		sum := p.Download.Archive.Hashes["sha256"]
		if sum == "" {
			sum, _ = strings.CutPrefix(p.Download.Archive.Hash, "sha256=")
		}
		if sum != "" {
			digests[normalName(p.Metadata.Name)+" "+p.Metadata.Version] = "sha256:" + sum
		}
	}
	return nil
}

// compile writes the bytecode now, because the tree is read-only later; paths in it
// are where the tree goes. Packages that cannot be compiled work all the same.
func (b *build) compile(ctx context.Context, target string) {
	argv := []string{b.o.Tool.Path, "-I", "-m", "compileall", "-q", "-s", b.tree, target}
	tail := b.tail
	if err := b.run(ctx, b.policy(nil), sandbox.Command{Argv: argv, Dir: b.tree, Env: b.environ()}, nil); err != nil {
		b.tail = tail
	}
}

package activate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/install/deps"
)

// DownloadPackages lets npm and pip fetch what a bundle depends on into the folder
// dir, ours and empty, so that it can be carried to another machine. They install it
// once into a folder that does not stay: what is carried is known to be enough. The
// machine has to be of the same kind, with the same major version of node and minor
// version of Python. It tells whether there was anything to fetch. Errors are those of
// deps.Set.Build, *deps.RefusedError, *deps.ToolError, *RuntimeError.
func (a *Activator) DownloadPackages(ctx context.Context, b *fetch.Bundle, dir string, limit time.Duration) (any bool, err error) {
	sets, err := deps.Load(b.Manifest(), b.Open)
	if err != nil || len(sets) == 0 {
		return false, err
	}
	runtimes, err := a.findRuntimes(ctx, b.Manifest(), b.Files(), false)
	if err != nil {
		return false, err
	}
	list, err := a.readDeps(ctx, b.Manifest(), b.Open, runtimes)
	if err != nil {
		return false, err
	}
	box, err := a.OpenSandbox("auto")
	if err != nil {
		return false, err
	}
	for _, d := range list {
		a.say("downloading packages with %s %s (at most %d s)", d.Ecosystem, d.Tool.Installer, int(limit.Seconds()))
		o := deps.Options{Sandbox: box, Tool: d.Tool, Timeout: limit, Say: a.Say, Cache: dir, Base: a.toolEnviron([]record.Runtime{{Path: d.Tool.Path}})}
		if err := buildOnce(ctx, d.Set, dir, o); err != nil {
			return false, err
		}
	}
	return true, nil
}

// buildOnce installs a set beside the downloads, and takes that away again.
func buildOnce(ctx context.Context, s deps.Set, dir string, o deps.Options) (err error) {
	work, err := os.MkdirTemp(filepath.Dir(dir), ".try-")
	if err != nil {
		return fmt.Errorf("making a folder for packages: %w", err)
	}
	defer func() {
		if rerr := os.RemoveAll(work); err == nil {
			err = rerr
		}
	}()
	for _, name := range []string{filepath.Join(work, "tree"), filepath.Join(work, "scratch"), filepath.Join(dir, string(s.Ecosystem))} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			return err
		}
	}
	_, err = s.Build(ctx, filepath.Join(work, "tree"), filepath.Join(work, "scratch"), o)
	return err
}

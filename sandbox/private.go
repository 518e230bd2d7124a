package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// Back ends without mounts cannot put a private folder in the place of the
// person's: there home and temporary folder are elsewhere, and the environment
// says so.

// private changes env so that home and temporary files are in dir, unless they
// are in something that the process may write anyway.
func private(env []string, dir string, write []string) []string {
	env = slices.Clone(env)
	if home := valueOf(env, "HOME"); home != "" && !below(home, write) {
		env = withValue(env, "HOME", filepath.Join(dir, "home"))
	}
	if tmp := valueOf(env, "TMPDIR"); !below(tmp, write) {
		env = withValue(env, "TMPDIR", filepath.Join(dir, "tmp"))
	}
	return env
}

// withValue replaces the variable in its place, or adds it.
func withValue(env []string, name, value string) []string {
	for i, kv := range env {
		if n, _, ok := strings.Cut(kv, "="); ok && n == name {
			env[i] = name + "=" + value
			return env
		}
	}
	return append(env, name+"="+value)
}

// valueOf returns a variable of a command's environment, the first one as the
// process itself would read it, or "".
func valueOf(env []string, name string) string {
	for _, kv := range env {
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			return v
		}
	}
	return ""
}

// below tells whether path is one of the folders or below one.
func below(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return path == f || strings.HasPrefix(path, strings.TrimSuffix(f, string(filepath.Separator))+string(filepath.Separator))
	})
}

package mount

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// StableProgram picks the command to write into entries: a name for the program at
// self that survives its upgrades and that a client started from a desktop finds.
// That is the plain name where a system folder leads to self, else the link (or
// file) of PATH that leads there, else self. lasting is false when only a temporary
// path is known. goos is the system whose rules are meant.
func StableProgram(self string, env func(string) string, goos string) (command string, lasting bool) {
	name := ourProgram
	if goos == "windows" {
		name += ".exe"
	}
	me, err := os.Stat(self)
	if err != nil {
		return self, false
	}
	found := func(dir string) bool {
		fi, err := os.Stat(filepath.Join(dir, name))
		return filepath.IsAbs(dir) && err == nil && os.SameFile(fi, me)
	}
	for _, dir := range systemFolders(goos) {
		if fi, err := os.Stat(filepath.Join(dir, name)); err == nil {
			if os.SameFile(fi, me) {
				return ourProgram, true
			}
			break // a client would find that one
		}
	}
	dirs := filepath.SplitList(env("PATH"))
	if i := slices.IndexFunc(dirs, func(dir string) bool { return found(dir) && !temporary(dir, env) }); i >= 0 {
		return filepath.Join(dirs[i], name), true
	}
	return self, !temporary(self, env)
}

// systemFolders are in the PATH of every program, also of one started from a desktop.
func systemFolders(goos string) []string {
	switch goos {
	case "windows":
		return nil
	case "darwin":
		return []string{"/usr/bin", "/bin"}
	}
	return []string{"/usr/local/bin", "/usr/bin", "/bin"}
}

// temporary tells whether a path will not last: a build or a temporary folder.
func temporary(path string, env func(string) string) bool {
	if strings.Contains(filepath.ToSlash(path), "/go-build") {
		return true
	}
	for _, dir := range []string{env("TMPDIR"), env("TEMP"), env("TMP"), "/tmp", "/var/tmp", "/private/tmp"} {
		if filepath.IsAbs(dir) && strings.HasPrefix(path, filepath.Clean(dir)+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
)

// Which paths one command needs, whatever the back end.

// caVariables name files with certificates. Only where the person's own
// environment names the same file it is shown.
var caVariables = []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "DENO_CERT"}

// browserFiles are the settings that a system's browsers do not start without.
var browserFiles = []string{"/etc/chromium", "/etc/chromium.d", "/etc/firefox", "/etc/opt/chrome"}

// certificates lists the files that the person's environment names.
func (s *Sandbox) certificates() []string {
	var list []string
	for _, name := range caVariables {
		if path := s.env(name); filepath.IsAbs(path) {
			list = append(list, filepath.Clean(path))
		}
	}
	return list
}

// programPaths are what the program at path needs besides the system: itself,
// the link it is started by, and bin and lib of the folder it is installed in,
// the way version managers lay them out.
func programPaths(path string) []string {
	list := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		list = append(list, real)
	}
	for _, p := range slices.Clone(list) {
		bin := filepath.Dir(p)
		if below(p, systemFolders) || filepath.Base(bin) != "bin" {
			continue
		}
		for _, part := range []string{"bin", "lib", "lib64", "libexec", "include", "pyvenv.cfg"} {
			list = append(list, filepath.Join(filepath.Dir(bin), part))
		}
	}
	return slices.DeleteFunc(list, func(p string) bool { return below(p, systemFolders) || !exists(p) })
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// spots are the places of one command that a back end has to make.
type spots struct {
	read, write []string // of the policy and of the program; each exists
	home, tmp   string   // private folders to make, "" where a writable path holds it
}

// spotsOf works out what p and c need. The error is an *UnenforceableError for a
// writable path that is not there.
func (s *Sandbox) spotsOf(p Policy, c Command, program string) (spots, error) {
	var sp spots
	for _, path := range slices.Concat(p.Own, p.Write) {
		path = filepath.Clean(path)
		if !filepath.IsAbs(path) || path == "/" || !exists(path) {
			return sp, &UnenforceableError{What: "writing to " + quote(path), Why: whyNoSpot(path), Always: true}
		}
		sp.write = both(sp.write, path)
	}
	shown := slices.Concat(p.Read, p.Shared, programPaths(program), s.certificates())
	for _, other := range p.Programs {
		shown = append(shown, programPaths(other)...)
	}
	for _, path := range shown {
		path = filepath.Clean(path)
		if filepath.IsAbs(path) && path != "/" && exists(path) && !below(path, sp.write) {
			sp.read = both(sp.read, path)
		}
	}
	if p.Browser {
		for _, path := range browserFiles {
			if exists(path) {
				sp.read = append(sp.read, path)
			}
		}
	}
	if p.Agent != "" {
		sp.read = append(sp.read, filepath.Clean(p.Agent))
	}
	private := func(path string) string {
		path = filepath.Clean(path)
		if !filepath.IsAbs(path) || path == "/" || path == "/tmp" || below(path, sp.write) || below(path, systemFolders) {
			return ""
		}
		return path
	}
	sp.home, sp.tmp = private(valueOf(c.Env, "HOME")), private(valueOf(c.Env, "TMPDIR"))
	slices.Sort(sp.read) // a folder before what is in it
	slices.Sort(sp.write)
	return sp, nil
}

func whyNoSpot(path string) string {
	switch {
	case path == "/":
		return "it is everything"
	case filepath.IsAbs(path):
		return "it is not there"
	}
	return "it is not absolute"
}

// both adds path and, where a link leads elsewhere, what it leads to.
func both(list []string, path string) []string {
	list = append(list, path)
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		list = append(list, real)
	}
	return list
}

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What of the machine a confined process sees, besides what its policy names.

// systemFolders hold programs and libraries. Those that are links on this
// machine stay links.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// systemFiles are the parts of /etc that programs and TLS libraries read. /etc as
// a whole would show /etc/shadow to root, and /etc/ssl its private keys.
var systemFiles = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/etc/timezone",
	"/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/redhat-release", "/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/gai.conf", "/etc/host.conf",
	"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf",
	"/etc/pki/ca-trust/extracted", "/etc/crypto-policies", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/fonts",
}

// nameFiles say who and where we are; in a network of its own a process gets
// made ones.
var nameFiles = []string{"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group"}

// machineFiles are what of /proc is about the machine and not about processes.
var machineFiles = []string{"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version", "/proc/filesystems",
	"/proc/sys/kernel/osrelease", "/proc/sys/kernel/ostype", "/proc/sys/kernel/random", "/proc/sys/kernel/pid_max", "/proc/sys/vm/overcommit_memory", "/proc/sys/net/core/somaxconn"}

// devices are the harmless ones.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// caVariables name files with certificates. Only where the person's own
// environment names the same file it is shown.
var caVariables = []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "DENO_CERT"}

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

// below tells whether path is one of the folders or below one.
func below(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return path == f || strings.HasPrefix(path, strings.TrimSuffix(f, "/")+"/") })
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
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
			return sp, &UnenforceableError{What: "writing to " + quote(path), Why: whyNoSpot(path)}
		}
		sp.write = both(sp.write, path)
	}
	for _, path := range slices.Concat(p.Read, programPaths(program), s.certificates()) {
		path = filepath.Clean(path)
		if filepath.IsAbs(path) && path != "/" && exists(path) && !below(path, sp.write) {
			sp.read = both(sp.read, path)
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

package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// The profile of macOS's sandbox-exec (SBPL). It denies by default. Its network
// rules know ports, "localhost" and everything, but no host; so a list of hosts
// is refused, not rounded up. A profile holds no secret and may stand in an
// argument.

// seatbeltRead are the parts of the system that programs need.
var seatbeltRead = []string{
	"/usr/lib", "/usr/bin", "/usr/libexec", "/usr/share", "/usr/local", "/bin", "/sbin", "/usr/sbin", "/System", "/Library/Frameworks", "/Library/Apple", "/Library/Developer/CommandLineTools",
	"/opt/homebrew", "/opt/local", "/private/etc/ssl", "/private/etc/hosts", "/private/etc/resolv.conf", "/private/etc/services", "/private/etc/protocols", "/private/etc/localtime",
	"/private/var/db/timezone", "/private/var/db/dyld", "/private/var/run/resolv.conf", "/dev/random", "/dev/urandom", "/dev/null", "/dev/zero", "/dev/fd",
}

// seatbeltServices are the services that the language runtimes look up. None of
// them holds secrets; the keychain's is not among them.
var seatbeltServices = []string{
	"com.apple.system.logger", "com.apple.system.notification_center", "com.apple.system.opendirectoryd.libinfo", "com.apple.system.opendirectoryd.membership",
	"com.apple.CoreServices.coreservicesd", "com.apple.dyld.closured", "com.apple.logd",
}

// seatbelt writes the profile for p. read and write are the paths of policy,
// program and private folders.
func seatbelt(p Policy, read, write []string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("(version 1)")
	line("(deny default)")
	line("(allow process-fork)")
	line("(allow process-exec)")
	line("(allow signal (target same-sandbox))")
	line("(allow sysctl-read)")
	line("(allow file-read-metadata)")
	for _, s := range seatbeltServices {
		line("(allow mach-lookup (global-name %s))", scheme(s))
	}
	line("(allow file-read* (literal \"/\"))")
	for _, path := range slices.Concat(seatbeltRead, read) {
		line("(allow file-read* (subpath %s))", scheme(path))
	}
	for _, path := range write {
		line("(allow file-read* file-write* (subpath %s))", scheme(path))
	}
	line("(allow file-write-data (literal \"/dev/null\") (literal \"/dev/zero\"))")
	seatbeltNetwork(p, line)
	return b.String()
}

func seatbeltNetwork(p Policy, line func(string, ...any)) {
	if p.Network.All {
		line("(allow system-socket)")
		line("(allow network-outbound)")
		line("(deny network-outbound (remote unix-socket))")
		line("(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))")
		if !p.Loopback {
			line("(deny network-outbound (remote ip \"localhost:*\"))")
		}
	} else if p.Loopback {
		line("(allow system-socket)")
		line("(allow network-outbound (remote ip \"localhost:*\"))")
	}
	if p.Loopback {
		line("(allow network-bind network-inbound (local ip \"localhost:*\"))")
	}
	if p.Agent != "" {
		line("(allow network-outbound (literal %s))", scheme(filepath.Clean(p.Agent)))
	}
}

// scheme writes a string of SBPL.
func scheme(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// seatbeltRefuses tells what a profile cannot hold.
func seatbeltRefuses(p Policy) error {
	switch {
	case !p.Network.All && len(p.Network.Hosts) > 0:
		return &UnenforceableError{What: "network only to " + listed(p.Network.Hosts), Why: "sandbox-exec knows ports, not hosts"}
	case p.Browser:
		return &UnenforceableError{What: "a browser that confines its own pages", Why: "there can be no sandbox inside sandbox-exec"}
	}
	return nil
}

// seatbeltNotHeld lists what of p a profile leaves open.
func seatbeltNotHeld(p Policy) []string {
	list := []string{"names and attributes of files: it can see whether a file is there"}
	if p.Network.All {
		list = append(list, "network: link-local and metadata addresses can be reached")
	}
	return list
}

package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// steeringPrefixes begin the names that steer loaders, interpreters, package
// managers and TLS (security.md, H18). They are compared in upper case.
var steeringPrefixes = [...]string{"LD_", "DYLD_", "NODE_", "PYTHON", "NPM_", "GIT_", "PIP_", "SSL_"}

// steeringNames are the same kind without a common prefix: shells, search
// paths, the home, resolvers, certificate stores.
var steeringNames = [...]string{
	"PATH", "HOME", "ENV", "BASH_ENV", "SHELL", "SHELLOPTS", "BASHOPTS", "IFS", "PS4", "CDPATH", "PROMPT_COMMAND",
	"TMPDIR", "TEMP", "TMP", "USER", "LOGNAME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "COMSPEC", "PATHEXT", "SYSTEMROOT", "WINDIR",
	"PERL5LIB", "PERL5OPT", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "GCONV_PATH", "LOCPATH", "NLSPATH",
	"GETCONF_DIR", "GLIBC_TUNABLES", "MALLOC_TRACE", "NIS_PATH", "TZDIR", // the C library reads them before main, and drops them for setuid programs
	"SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", // the agent is a grant
	"HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN", "RESOLV_HOST_CONF", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CURL_HOME",
	"OPENSSL_CONF", "OPENSSL_MODULES", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
}

// harmless are names of a denied family that only tune the connector's own
// interpreter; an author may set them in mcp_config.env.
var harmless = [...]string{"NODE_ENV", "NODE_PATH", "NODE_NO_WARNINGS", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8",
	"PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONWARNINGS"}

// ValidEnvName checks the name of a value that a person gives:
// ^[A-Za-z_][A-Za-z0-9_]{0,63}$ and none that steers the loader, the
// interpreter or the network (format.md, section 4).
func ValidEnvName(name string) error {
	if err := envNameShape(name); err != nil {
		return err
	}
	if isSteering(name) {
		return fmt.Errorf("name %q steers the loader, the interpreter or the network", name)
	}
	return nil
}

// validServerEnvName is ValidEnvName for mcp_config.env, where the author may
// tune the interpreter but not replace what it loads or where it connects.
func validServerEnvName(name string) error {
	if slices.Contains(harmless[:], name) {
		return nil
	}
	return ValidEnvName(name)
}

func envNameShape(name string) error {
	switch {
	case name == "":
		return errors.New("an empty name")
	case len(name) > maxEnvName:
		return fmt.Errorf("a name of %d bytes; at most %d", len(name), maxEnvName)
	case name[0] >= '0' && name[0] <= '9':
		return fmt.Errorf("name %q begins with a digit", name)
	}
	for i := range len(name) {
		if !isNameByte(name[i]) {
			return fmt.Errorf("name %q holds something other than letters, digits and underscore", name)
		}
	}
	return nil
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isSteering(name string) bool {
	upper := strings.ToUpper(name)
	if strings.HasSuffix(upper, "_PROXY") || slices.Contains(steeringNames[:], upper) {
		return true
	}
	for _, prefix := range steeringPrefixes {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return false
}

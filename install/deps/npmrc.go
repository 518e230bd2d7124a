package deps

import (
	"net"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"skald-connectors/internal/lazyre"
	"skald-connectors/keystore"
)

// npmSettings are the person's settings that are passed on.
type npmSettings struct {
	lines    []setting // in the order in which they are written
	registry string
	secrets  []keystore.Handle
	files    []string // certificates that npm has to read
	notes    []string
}

// npmPassed are the keys that npm is given from the person's settings. None of them
// names a program, a script or a place to write to.
var npmPassed = []string{"registry", "cafile", "ca", "ca[]", "proxy", "https-proxy", "http-proxy", "noproxy", "no-proxy", "strict-ssl",
	"before", "min-release-age", "min-release-age-exclude", "min-release-age-exclude[]", "fetch-retries", "fetch-retry-mintimeout", "fetch-retry-maxtimeout", "fetch-timeout", "maxsockets", "local-address", "nodedir"}

// npmOpen are those of them that install scripts may see, as far as they hold no
// credential: what a download of a prebuilt binary or a compiler's run needs.
var npmOpen = []string{"cafile", "ca", "ca[]", "proxy", "https-proxy", "http-proxy", "noproxy", "no-proxy", "strict-ssl", "nodedir"}

// npmCredentials are the keys that belong to one registry.
var npmCredentials = []string{"_authToken", "_auth", "username", "_password", "email", "certfile", "keyfile"}

// readNPMSettings reads npm's settings as npm would outside of a project:
// environment, the person's file, the machine's file, npm's own file. own is npm's
// default registry.
func readNPMSettings(environ []string, home, node, npmDir, own string) npmSettings {
	env, vars := npmEnviron(environ), environMap(environ)
	builtin := readSettings(filepath.Join(npmDir, "npmrc"), parseNPMRC)
	user := readSettings(or(env["userconfig"], filepath.Join(home, ".npmrc")), parseNPMRC)
	prefix := filepath.Dir(filepath.Dir(node))
	if runtime.GOOS == "windows" {
		prefix = filepath.Dir(node)
	}
	prefix = or(env["prefix"], vars["PREFIX"], last(user, "prefix"), last(builtin, "prefix"), prefix)
	global := readSettings(or(env["globalconfig"], last(user, "globalconfig"), last(builtin, "globalconfig"), filepath.Join(prefix, "etc", "npmrc")), parseNPMRC)
	var fromEnv []setting
	for key, value := range env {
		fromEnv = append(fromEnv, setting{key: key, value: value})
	}
	slices.SortFunc(fromEnv, func(a, b setting) int { return strings.Compare(a.key, b.key) })
	merged := mergeSettings(vars, builtin, global, user, fromEnv)
	return chooseNPM(merged, home, own)
}

// npmEnviron takes npm's settings out of an environment, by their keys.
func npmEnviron(environ []string) map[string]string {
	out := map[string]string{}
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || value == "" || len(name) < 12 || !strings.EqualFold(name[:11], "npm_config_") {
			continue
		}
		key := name[11:]
		if !strings.HasPrefix(key, "//") {
			key = key[:1] + strings.ReplaceAll(key[1:], "_", "-")
			key = strings.ToLower(key)
		}
		out[key] = value
	}
	return out
}

func environMap(environ []string) map[string]string {
	out := map[string]string{}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok {
			out[name] = value
		}
	}
	return out
}

func or(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

func last(list []setting, key string) string {
	for _, s := range slices.Backward(list) {
		if s.key == key && s.section == "" {
			return s.value
		}
	}
	return ""
}

// npmVariable is npm's own form of a variable in a setting.
var npmVariable = lazyre.New(`\$\{([^${}?]+)(\??)\}`)

// mergeSettings lays later lists over earlier ones and fills in variables: they are
// the person's own, in their own files. One that is not set stays as it is written.
func mergeSettings(vars map[string]string, lists ...[]setting) []setting {
	var out []setting
	for _, list := range lists {
		for _, s := range list {
			if strings.HasSuffix(s.key, "[]") && s.section == "" {
				continue // replaced below, list by list
			}
			out = slices.DeleteFunc(out, func(o setting) bool { return o.key == s.key && o.section == s.section })
			out = append(out, s)
		}
		if slices.ContainsFunc(list, func(s setting) bool { return strings.HasSuffix(s.key, "[]") }) {
			out = slices.DeleteFunc(out, func(o setting) bool { return strings.HasSuffix(o.key, "[]") })
			out = append(out, slices.DeleteFunc(slices.Clone(list), func(s setting) bool { return !strings.HasSuffix(s.key, "[]") })...)
		}
	}
	for i := range out {
		out[i].key = fillVariables(out[i].key, vars)
		out[i].value = fillVariables(out[i].value, vars)
	}
	return out
}

func fillVariables(s string, vars map[string]string) string {
	return npmVariable.ReplaceAllStringFunc(s, func(token string) string {
		m := npmVariable.FindStringSubmatch(token)
		if value, ok := vars[m[1]]; ok || m[2] != "" {
			return value
		}
		return token
	})
}

// chooseNPM keeps what is passed on. A credential goes along only when its registry
// is one that is used.
func chooseNPM(all []setting, home, own string) npmSettings {
	n := npmSettings{registry: or(last(all, "registry"), own)}
	registries := []string{n.registry}
	for _, s := range all {
		if s.section == "" && isScope(s.key) {
			registries = append(registries, s.value)
		}
	}
	for _, s := range all {
		host, credential, isCredential := splitCredential(s.key)
		switch {
		case s.section != "" || strings.ContainsAny(s.key+s.value, "\r\n\x00") && s.key != "ca" && s.key != "ca[]":
			continue
		case slices.Contains(npmPassed, s.key) || isScope(s.key):
		case isCredential && slices.Contains(npmCredentials, credential) && slices.ContainsFunc(registries, func(r string) bool { return belongs(r, host) }):
		default:
			continue
		}
		if strings.HasSuffix(s.key, "file") {
			if rest, ok := strings.CutPrefix(s.value, "~/"); ok {
				s.value = filepath.Join(home, rest)
			}
			n.files = append(n.files, s.value)
		} else if isCredential {
			n.secrets = append(n.secrets, keystore.Handle{Name: credential, Value: keystore.NewSecret(s.value), Secret: true})
		}
		if s.key == "strict-ssl" && s.value == "false" {
			n.notes = append(n.notes, "your npm settings turn the check of certificates off (strict-ssl)")
		}
		n.secrets = append(n.secrets, userinfo(s.value)...)
		n.lines = append(n.lines, s)
	}
	return n
}

func isScope(key string) bool {
	return strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry")
}

// splitCredential takes "//host/path/:key" apart.
func splitCredential(key string) (host, name string, ok bool) {
	i := strings.LastIndex(key, ":")
	if !strings.HasPrefix(key, "//") || i < 3 {
		return "", "", false
	}
	return key[:i], key[i+1:], true
}

// belongs tells that a credential for host ("//host/path/") is for that registry.
func belongs(registry, host string) bool {
	u, err := url.Parse(registry)
	return err == nil && u.Host != "" && strings.HasPrefix("//"+u.Host+strings.TrimSuffix(u.Path, "/")+"/", strings.TrimSuffix(host, "/")+"/")
}

// userinfo takes the credential out of an address, for the redactor.
func userinfo(address string) []keystore.Handle {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return nil
	}
	password, _ := u.User.Password()
	if password == "" {
		password = u.User.Username()
	}
	return []keystore.Handle{{Name: "password", Value: keystore.NewSecret(password), Secret: true}}
}

// rc writes the settings as the file that npm is given.
func (n npmSettings) rc() []byte {
	var b strings.Builder
	for _, s := range n.lines {
		b.WriteString(s.key + "=" + quoteNPM(s.value) + "\n")
	}
	return []byte(b.String())
}

// open is the part that install scripts may see.
func (n npmSettings) open() npmSettings {
	return npmSettings{lines: slices.DeleteFunc(slices.Clone(n.lines), func(s setting) bool {
		return !slices.Contains(npmOpen, s.key) || userinfo(s.value) != nil
	})}
}

// keys are the files that sign in at a registry.
func (n npmSettings) keys() []string {
	var list []string
	for _, s := range n.lines {
		if _, _, ok := splitCredential(s.key); ok && slices.Contains(n.files, s.value) {
			list = append(list, s.value)
		}
	}
	return list
}

// quoteNPM keeps npm from reading a comment or a list in a value.
func quoteNPM(s string) string {
	if strings.ContainsAny(s, ";#\"'\\=[]\n ") {
		return strings.TrimSuffix(string(marshal(s)), "\n")
	}
	return s
}

// hosts are the hosts of the registries, for the sandbox: "host:port".
func (n npmSettings) hosts() []string {
	list := []string{hostPort(n.registry)}
	for _, s := range n.lines {
		if isScope(s.key) || s.key == "proxy" || s.key == "https-proxy" || s.key == "http-proxy" {
			list = append(list, hostPort(s.value))
		}
	}
	return compactHosts(list)
}

func hostPort(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = "443"
		if u.Scheme == "http" {
			port = "80"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func compactHosts(list []string) []string {
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" })
}

package deps

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"skald-connectors/keystore"
)

// pipPassed are the person's settings that pip is given, as variables. None of them
// names a program, a place to write to, or lets sources be built.
var pipPassed = []string{"index-url", "extra-index-url", "no-index", "find-links", "cert", "client-cert", "proxy", "trusted-host", "timeout", "default-timeout", "retries"}

// pipSettings are the person's settings that are passed on.
type pipSettings struct {
	values  map[string]string
	secrets []keystore.Handle
	files   []string
	notes   []string
}

// readPipSettings reads pip's settings as pip would: files of the machine, of the
// person, of the interpreter, then PIP_CONFIG_FILE, then variables.
func readPipSettings(environ []string, home, prefix string) pipSettings {
	vars := environMap(environ)
	p := pipSettings{values: map[string]string{}}
	for _, file := range pipFiles(vars, home, prefix) {
		list := readSettings(file, parsePipConf)
		for _, section := range []string{"global", "install"} {
			for _, s := range list {
				if s.section == section && slices.Contains(pipPassed, s.key) {
					p.values[s.key] = s.value
				}
			}
		}
	}
	for name, value := range vars {
		key, ok := strings.CutPrefix(name, "PIP_")
		if key = strings.ToLower(strings.ReplaceAll(key, "_", "-")); ok && value != "" && slices.Contains(pipPassed, key) {
			p.values[key] = value
		}
	}
	for key, value := range p.values {
		for word := range strings.FieldsSeq(value) {
			p.secrets = append(p.secrets, userinfo(word)...)
			if (key == "find-links" || key == "cert" || key == "client-cert") && !strings.Contains(word, "://") {
				p.files = append(p.files, expandHome(word, home))
			}
		}
	}
	if p.values["trusted-host"] != "" {
		p.notes = append(p.notes, "your pip settings turn the check of certificates off for some hosts (trusted-host)")
	}
	slices.Sort(p.files)
	return p
}

func expandHome(p, home string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return p
}

// pipFiles are the places of pip's settings, the weakest first.
func pipFiles(vars map[string]string, home, prefix string) []string {
	var out []string
	if vars["PIP_CONFIG_FILE"] == pipNoFile() {
		return nil
	}
	switch runtime.GOOS {
	case "windows":
		out = append(out, filepath.Join(vars["ProgramData"], "pip", "pip.ini"), filepath.Join(home, "pip", "pip.ini"), filepath.Join(vars["APPDATA"], "pip", "pip.ini"), filepath.Join(prefix, "pip.ini"))
	case "darwin":
		out = append(out, "/Library/Application Support/pip/pip.conf", filepath.Join(home, ".pip", "pip.conf"),
			filepath.Join(or(vars["XDG_CONFIG_HOME"], filepath.Join(home, ".config")), "pip", "pip.conf"), filepath.Join(home, "Library", "Application Support", "pip", "pip.conf"), filepath.Join(prefix, "pip.conf"))
	default:
		for _, dir := range filepath.SplitList(or(vars["XDG_CONFIG_DIRS"], "/etc/xdg")) {
			out = append(out, filepath.Join(dir, "pip", "pip.conf"))
		}
		out = append(out, "/etc/pip.conf", filepath.Join(home, ".pip", "pip.conf"), filepath.Join(or(vars["XDG_CONFIG_HOME"], filepath.Join(home, ".config")), "pip", "pip.conf"), filepath.Join(prefix, "pip.conf"))
	}
	if named := vars["PIP_CONFIG_FILE"]; named != "" {
		out = append(out, named)
	}
	return out
}

// pipNoFile is the name that makes pip read no file.
func pipNoFile() string {
	if runtime.GOOS == "windows" {
		return "nul"
	}
	return "/dev/null"
}

// environ is the settings as pip's variables.
func (p pipSettings) environ() []string {
	out := []string{"PIP_CONFIG_FILE=" + pipNoFile()}
	for _, key := range pipPassed {
		if value := p.values[key]; value != "" {
			if key == "find-links" || key == "extra-index-url" || key == "trusted-host" {
				value = strings.Join(strings.Fields(value), " ")
			}
			out = append(out, "PIP_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_"))+"="+value)
		}
	}
	return out
}

// hosts are the hosts of the indexes, for the sandbox.
func (p pipSettings) hosts(defaults []string) []string {
	var list []string
	if p.values["no-index"] == "" {
		if p.values["index-url"] == "" {
			list = append(list, defaults...)
		}
		for _, key := range []string{"index-url", "extra-index-url"} {
			for word := range strings.FieldsSeq(p.values[key]) {
				list = append(list, hostPort(word))
			}
		}
	}
	for _, key := range []string{"find-links", "proxy"} {
		for word := range strings.FieldsSeq(p.values[key]) {
			list = append(list, hostPort(word))
		}
	}
	return compactHosts(list)
}

// secret tells that an index needs a credential.
func (p pipSettings) secret() bool { return len(p.secrets) > 0 || p.values["client-cert"] != "" }

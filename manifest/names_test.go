package manifest

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

func TestValidID(t *testing.T) {
	for _, id := range []string{"a", "0", "gmail", "http-fetch", "a.b_c-d", "context7", strings.Repeat("a", 64), "cona", "a-", "com0x"} {
		if err := ValidID(id); err != nil {
			t.Errorf("ValidID(%q): %v", id, err)
		}
	}
	for _, id := range []string{"", "../../x", "con", "nul.x", "com1", "lpt9.a.b", "a/b", ".", "..", ".a", "-rf", "--help", "_a", "Å", "ａ", strings.Repeat("a", 65),
		strings.Repeat("a", 300), "x\u202ey", "whatsApp", "a b", "a\x00", "a\n", "a__b", "a..b", "a.", `a\b`, "a:b"} {
		if ValidID(id) == nil {
			t.Errorf("ValidID(%q) accepts it", id)
		}
	}
}

func TestValidPath(t *testing.T) {
	for _, p := range []string{"index.js", "pkg/server.py", "a/b/c/d/e/f/g/h", "icon_sm.svg", "é.py", "my file.py", "@scope/x.js", "authentication/x", "gitx", "auth.js",
		"sub/auth/x", "sub/node_modules/x", "pip_helper.py", "lib/pip.py", "consul.js", "…/x"} {
		if err := ValidPath(p); err != nil {
			t.Errorf("ValidPath(%q): %v", p, err)
		}
	}
	for _, p := range []string{"", "../../.bashrc", "/etc/x", "a/../../b", "a\x00b", `..\x`, "C:x", "a//b", "a/./b", "./a", "a/", "NUL.js", "con", "a/AUX", "lpt¹", "com1 .txt", "x ", "a /b", "x.", "a./b",
		"..", ".", "e\u0301.py", "a\u202eb", "a\u200bb", "a\nb", "a\x7fb", "a\ufffdb", "a\xffb", "a\u2028b", strings.Repeat("a", 256), "a/b/c/d/e/f/g/h/i",
		".skald-install.lock", ".git", ".git/config", ".gitignore", ".GitAttributes", "node_modules/x", "Node_Modules/x", ".pydeps/x", "auth/token", "AUTH/x", "auth", "state/x",
		".npmrc", "sub/.npmrc", "a/.NPMRC", ".yarnrc", "x/.yarnrc.yml", ".pnpmrc", "x/pip.conf", "sitecustomize.py", "a/b/usercustomize.py", "pip/__main__.py", "pip.py", "PIP/x"} {
		if ValidPath(p) == nil {
			t.Errorf("ValidPath(%q) accepts it", p)
		}
	}
}

func paths(list ...string) []File {
	var files []File
	for _, p := range list {
		files = append(files, File{Path: p, Size: -1})
	}
	return files
}

func TestValidPaths(t *testing.T) {
	many := make([]string, MaxFiles)
	for i := range many {
		many[i] = "f" + strconv.Itoa(i)
	}
	for _, files := range [][]File{nil, paths("a", "b", "a.b", "ab/c", "ab/d"), paths("Lib/a", "lib/b"), paths(many...)} {
		if err := ValidPaths(files); err != nil {
			t.Errorf("ValidPaths(%d files): %v", len(files), err)
		}
	}
	for _, files := range [][]File{
		paths("a", "a"), paths("index.js", "Index.js"), paths("é", "É"), paths("straße", "STRASSE"), paths("ﬁ", "fi"), paths("a", "a/b"), paths("A/b/c", "a/B"), paths("ok", "../x"),
		paths(append(many, "more")...), {{Path: "a", Size: MaxFileBytes + 1}},
		{{Path: "1", Size: MaxFileBytes}, {Path: "2", Size: MaxFileBytes}, {Path: "3", Size: MaxFileBytes}, {Path: "4", Size: MaxFileBytes}, {Path: "5", Size: MaxFileBytes},
			{Path: "6", Size: MaxFileBytes}, {Path: "7", Size: MaxFileBytes}, {Path: "8", Size: MaxFileBytes}, {Path: "9", Size: 1}},
	} {
		if ValidPaths(files) == nil {
			t.Errorf("ValidPaths(%.200v) accepts them", files)
		}
	}
	if err := ValidPaths(paths("Index.js", "index.js")); err == nil || err.Error() != `path "index.js" is the same as "Index.js" where case does not count` {
		t.Errorf("text: %v", err)
	}
}

func TestValidEnvName(t *testing.T) {
	for _, name := range []string{"A", "_x", "EMAIL_IMAP_HOST", "tavilyApiKey", "GITHUB_TOKEN", "GOOGLE_MAPS_API_KEY", "SSH_MCP_TIMEOUT", "NODES", "HOMEPAGE", strings.Repeat("A", 64)} {
		if err := ValidEnvName(name); err != nil {
			t.Errorf("ValidEnvName(%q): %v", name, err)
		}
	}
	for _, name := range []string{"PATH", "Path", "LD_PRELOAD", "ld_preload", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "BASH_ENV", "ENV", "HOME", "HTTPS_PROXY", "https_proxy",
		"NO_PROXY", "SSL_CERT_FILE", "NODE_TLS_REJECT_UNAUTHORIZED", "npm_config_x", "GIT_SSH_COMMAND", "PIP_INDEX_URL", "GLIBC_TUNABLES", "glibc_tunables", "SSH_AUTH_SOCK", "LD_AUDIT", "MALLOC_TRACE", "A=B", "a\nb", "", "1A", "a-b", "é", "A B", strings.Repeat("A", 65)} {
		if ValidEnvName(name) == nil {
			t.Errorf("ValidEnvName(%q) accepts it", name)
		}
	}
	for name, want := range map[string]bool{"PYTHONPATH": true, "PYTHONUNBUFFERED": true, "NODE_ENV": true, "NODE_OPTIONS": false, "PYTHONSTARTUP": false, "LD_PRELOAD": false, "GLIBC_TUNABLES": false, "SSH_AUTH_SOCK": false, "A-B": false} {
		if got := validServerEnvName(name) == nil; got != want {
			t.Errorf("validServerEnvName(%q) accepts it: %t, want %t", name, got, want)
		}
	}
}

func TestValidURL(t *testing.T) {
	for _, u := range []string{"https://mcp.example.com", "https://mcp.example.com:8443/a/b?k={SECRET:k}&x=1", "https://e.org/{ENV:TEAM}/mcp", "http://localhost:3000/mcp", "http://127.0.0.1/x",
		"http://[::1]:80/", "https://10.0.0.5/mcp", "https://e.org/?key={key}", "https://xn--e1afmkfd.xn--p1ai/"} {
		if err := ValidURL(u); err != nil {
			t.Errorf("ValidURL(%q): %v", u, err)
		}
	}
	for _, u := range []string{"", "e.org", "http://e.org/", "file:///etc/passwd", "ftp://e.org/", "https://u:p@e.org/", "https://u@e.org/", "https://169.254.169.254/", "https://[fe80::1]/", "https://[::ffff:127.0.0.1]/",
		"https://[::ffff:7f00:1]/", "https://0x7f.1/", "https://2130706433/", "https://127.1/", "https://0177.0.0.1/", "https://0.0.0.0/", "https://[::]/", "https://224.0.0.1/", "https://metadata.google.internal/",
		"https://100.100.100.200/", "https:///x", "https://e.org/#f", "https://e.org/#", "https://e.org/ x", "https://e.org\\@evil.org/", "https://e.org/\n", "https://[fe80::1%25eth0]/", "//e.org/", "javascript:alert(1)"} {
		if ValidURL(u) == nil {
			t.Errorf("ValidURL(%q) accepts it", u)
		}
	}
	for _, u := range []string{"https://{SECRET:k}.e.org/", "https://{ENV:H}", "{ENV:U}", "https://e.org:{ENV:P}/", "{ENV:S}://e.org/", "https://e.org{ENV:X}?a"} {
		var place *TokenPlaceError
		if err := ValidURL(u); !errors.As(err, &place) {
			t.Errorf("ValidURL(%q): %v, want a *TokenPlaceError", u, err)
		}
	}
}

package manifest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hostile are values that would do something if they were ever read as code.
var hostile = []string{
	"plain", "", " ", "two words", "a  b\tc", "*", "~", "-n", "'", `"`, `\`, "$HOME", "$(touch canary)", "`touch canary`", "; touch canary", "&& touch canary",
	"'; touch canary; '", `"; touch canary; "`, `'"'"; touch canary; "'"'`, "\n touch canary\n", "x\ntouch canary", "| touch canary", "> canary", "${HOME}", "$((1+1))", "#", "{ENV:X}", "!!", "a\\nb", "é😀\u202e",
	"<<EOF", "\r\n", "%s", "a]b", "?(x)", "=", "`", "$", "$$",
}

// TestShellCommandDeliversTheValue runs each script in real shells: the value
// arrives exactly as one argument, and nothing is executed.
func TestShellCommandDeliversTheValue(t *testing.T) {
	scripts := []struct{ cmd, before, after string }{
		{`./show {ENV:X}`, "", ""},
		{`./show a{ENV:X}b`, "a", "b"},
		{`./show "{ENV:X}"`, "", ""},
		{`./show "a {ENV:X}b"`, "a ", "b"},
		{`./show '{ENV:X}'`, "", ""},
		{`./show 'a $b "{ENV:X}" \c'`, `a $b "`, `" \c`},
		{`./show 'it'"s"{ENV:X}`, "its", ""},
		{`./show "it's {ENV:X} 'quoted'"`, "it's ", " 'quoted'"},
		{`./show "\"{ENV:X}\""`, `"`, `"`},
		{`./show "\\{ENV:X}\\"`, `\`, `\`},
		{`./show \'{ENV:X}\'`, "'", "'"},
		{`./show --key={ENV:X}`, "--key=", ""},
		{`V={ENV:X} ; ./show "$V"`, "", ""},
		{`V="{ENV:X}" && ./show "$V"`, "", ""},
		{`V='{ENV:X}'; ./show "$V"`, "", ""},
		{`true; if [ -n "x{ENV:X}" ]; then ./show {ENV:X}; fi`, "", ""},
		{`case {ENV:X} in "{ENV:X}") ./show {ENV:X};; esac`, "", ""},
		{`for v in {ENV:X}; do ./show "$v"; done`, "", ""},
		{`./show "$(printf '%s' 'a'){ENV:X}"`, "a", ""},
		{`./show "$(printf '%sE' {ENV:X})"`, "", "E"},
		{`./show "$(printf '%sE' "{ENV:X}")"`, "", "E"},
		{`./show "$(printf '%sE' '{ENV:X}')"`, "", "E"},
		{`./show "$( (printf '%sE' "{ENV:X}") )"`, "", "E"},
		{`test "$$" && ./show "$?"{ENV:X}`, "0", ""},
		{"# it's a comment\n./show {ENV:X}", "", ""},
		{"./show \\\n{ENV:X}", "", ""},
		{`(./show {ENV:X})`, "", ""},
		{`{ ./show {ENV:X}; }`, "", ""},
		{`A=$((1+(2))) ./show {ENV:X}`, "", ""},
		{`./show "${HOME:+y}{ENV:X}"`, "y", ""},
		{"./show `echo a`{ENV:X}", "a", ""},
		{`./show {ENV:X} > out; cat out`, "", ""},
		{`./show 2>&1 {ENV:X}`, "", ""},
		{`./show x#{ENV:X}`, "x#", ""},
		{`./show ""#{ENV:X}`, "#", ""},
		{`./show "$#"{ENV:X}`, "0", ""},
		{`sh -c './show "$1"' x {ENV:X}`, "", ""},
		{`sh show {ENV:X}`, "", ""},
		{`sh show -c {ENV:X}`, "", ""},
	}
	all := strings.Join(hostile, " ")
	for _, shell := range shells(t) {
		for _, s := range scripts {
			for _, value := range []string{all, "", "a  *"} {
				runScript(t, shell, s.cmd, value, s.before+value+s.after)
			}
		}
		for _, value := range hostile {
			for _, i := range []int{0, 2, 4} { // bare, in double quotes, in single quotes
				s := scripts[i]
				runScript(t, shell, s.cmd, value, s.before+value+s.after)
			}
		}
	}
}

// shells gives the POSIX shells of this machine, each once.
func shells(t *testing.T) []string {
	t.Helper()
	var found []string
	seen := map[string]bool{}
	for _, name := range []string{"dash", "bash", "busybox", "sh"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || seen[real] {
			continue
		}
		seen[real] = true
		found = append(found, path)
	}
	if len(found) == 0 {
		t.Skip("no POSIX shell here")
	}
	return found
}

func runScript(t *testing.T, shell, cmd, value, want string) {
	t.Helper()
	script, refs, err := shellCommand(cmd, "linux")
	if err != nil || len(refs) == 0 {
		t.Fatalf("%s: %v %v", cmd, refs, err)
	}
	dir := t.TempDir()
	// The last argument is shown between brackets, byte for byte.
	show := "#!/bin/sh\nfor last do :; done\nprintf '[%s]' \"$last\"\n"
	if err := os.WriteFile(filepath.Join(dir, "show"), []byte(show), 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"-c", script}
	if filepath.Base(shell) == "busybox" {
		args = []string{"sh", "-c", script}
	}
	c := exec.Command(shell, args...)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	for _, ref := range refs {
		c.Env = append(c.Env, ref.Var+"="+value)
	}
	out, err := c.CombinedOutput()
	if err != nil || string(out) != "["+want+"]" {
		t.Errorf("%s -c %s\nwith %q: %q %v, want %q", filepath.Base(shell), script, value, out, err, "["+want+"]")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "show" && e.Name() != "out" {
			t.Errorf("%s with %q left %q", script, value, e.Name())
		}
	}
}

func TestShellCommandRefuses(t *testing.T) {
	for cmd, place := range map[string]string{
		"cat <<EOF\n{ENV:X}\nEOF":                    "or behind a here-document",
		"cat <<-'E'\nx\nE\necho {ENV:X}":             "or behind a here-document",
		"cat <<< {ENV:X}":                            "or behind a here-document",
		"echo `echo {ENV:X}`":                        "or behind backquotes",
		"echo `echo 'a'` {ENV:X}":                    "or behind backquotes",
		"echo `a {ENV:X}":                            "or behind backquotes",
		`echo \{ENV:X}`:                              "a place behind a backslash",
		`echo "\{ENV:X}"`:                            "a place behind a backslash",
		`echo ${ENV:X}`:                              "a parameter expansion",
		`echo "${ENV:X}"`:                            "a parameter expansion",
		`echo ${Y:-{ENV:X}}`:                         "or behind a parameter expansion that is not plain",
		`echo "${Y:-"a b"}" {ENV:X}`:                 "or behind a parameter expansion that is not plain",
		`echo ${Y:-$(x)} {ENV:X}`:                    "or behind a parameter expansion that is not plain",
		`echo $((1+{ENV:X}))`:                        "an arithmetic expansion",
		`echo $((1+'{ENV:X}'))`:                      "an arithmetic expansion",
		`echo $'a\'b' {ENV:X}`:                       "or behind a string in $'...'",
		"echo # it's {ENV:X}":                        "a comment",
		"echo '{ENV:X}":                              "",
		"echo 'a {ENV:X} b":                          "or behind a quote that is not closed",
		`eval "echo {ENV:X}"`:                        "the program text of another interpreter",
		`eval echo {ENV:X}`:                          "the program text of another interpreter",
		`sh -c 'echo {ENV:X}'`:                       "the program text of another interpreter",
		`sh -c "echo {ENV:X}"`:                       "the program text of another interpreter",
		`/bin/bash -ec {ENV:X}`:                      "the program text of another interpreter",
		`bash -o pipefail -c "{ENV:X}"`:              "the program text of another interpreter",
		`env A=1 timeout 5 sh -c "x {ENV:X}"`:        "the program text of another interpreter",
		`$SHELL -c "{ENV:X}"`:                        "the program text of another interpreter",
		`"$SHELL" "-c" "{ENV:X}"`:                    "the program text of another interpreter",
		`python3 -c "print('{ENV:X}')"`:              "the program text of another interpreter",
		`python3.12 -c '{ENV:X}'`:                    "the program text of another interpreter",
		`node -e "f('{SECRET:X}')"`:                  "the program text of another interpreter",
		`node --eval {ENV:X}`:                        "the program text of another interpreter",
		`node -r x -p {ENV:X}`:                       "the program text of another interpreter",
		`perl -ne {ENV:X}`:                           "the program text of another interpreter",
		`sh -c "x $(printf %s {ENV:X})"`:             "the program text of another interpreter",
		`trap "echo {ENV:X}" EXIT`:                   "the program text of another interpreter",
		`{ENV:X} --version`:                          "the name of a command",
		`"{ENV:X}" --version`:                        "the name of a command",
		`A=1 ./bin/{ENV:X}`:                          "the name of a command",
		`if '{ENV:X}'; then :; fi`:                   "the name of a command",
		`true && {ENV:X}`:                            "the name of a command",
		`echo "$({ENV:X})"`:                          "the name of a command",
		`echo "$(case a in a) echo {ENV:X};; esac)"`: "or behind a case inside a substitution",
	} {
		if place == "" { // a token, then an open quote
			place = "or behind a quote that is not closed"
		}
		script, refs, err := shellCommand(cmd, "linux")
		var got *TokenPlaceError
		if !errors.As(err, &got) || got.Place != place || script != "" || refs != nil {
			t.Errorf("%s: %q %v, want it refused in %q", cmd, script, err, place)
		}
	}
}

func TestShellCommandForms(t *testing.T) {
	for cmd, want := range map[string]string{
		"":                                 "",
		"python3 verify.py":                "python3 verify.py",
		"cat <<EOF\nx\nEOF":                "cat <<EOF\nx\nEOF",
		`node -e "if(a){b('{key}')}"`:      `node -e "if(a){b('{key}')}"`,
		`x {ENV:A} {ENV:B} {ENV:A}`:        `x "$SKALD_TOKEN_1" "$SKALD_TOKEN_2" "$SKALD_TOKEN_1"`,
		`x "{ENV:A}" {SECRET:A}`:           `x "${SKALD_TOKEN_1}" "$SKALD_TOKEN_2"`,
		`x '{ENV:A}{ENV:B}'`:               `x ''"$SKALD_TOKEN_1"''"$SKALD_TOKEN_2"''`,
		`x {ENV:A} {env:B} {ENV:`:          `x "$SKALD_TOKEN_1" {env:B} {ENV:`,
		`curl -c jar -e {ENV:A} https://e`: `curl -c jar -e "$SKALD_TOKEN_1" https://e`,
		`x {ENV:A} <<E` + "\nb\nE":         `x "$SKALD_TOKEN_1" <<E` + "\nb\nE",
	} {
		script, _, err := shellCommand(cmd, "linux")
		if err != nil || script != want {
			t.Errorf("%s: %s %v, want %s", cmd, script, err, want)
		}
	}
	_, refs, err := shellCommand(`x {ENV:A} {SECRET:B} {ENV:A}`, "darwin")
	if err != nil || len(refs) != 3 || refs[0].Var != refs[2].Var || refs[0].Var == refs[1].Var || refs[1].Name != "B" {
		t.Errorf("refs %+v %v", refs, err)
	}
	_, _, err = shellCommand(`x {ENV:A}`, "windows")
	if want := "the token {ENV:A} stands in a command for the Windows shell"; err == nil || err.Error() != want {
		t.Errorf("on Windows: %v, want %s", err, want)
	}
	if script, _, err := shellCommand(`x`, "windows"); err != nil || script != "x" {
		t.Errorf("on Windows without tokens: %q %v", script, err)
	}
}

func TestSplitCommand(t *testing.T) {
	for s, want := range map[string]string{
		`python3 server.py`:           `python3|server.py`,
		`  a  	b  `:                   `a|b`,
		`a 'b c' "d e" f\ g`:          `a|b c|d e|f g`,
		`a "" ''`:                     `a||`,
		`a b"c"'d'e`:                  `a|bcde`,
		`a "x\"y\\z\n"`:               `a|x"y\z\n`,
		`a '\"'`:                      `a|\"`,
		`a '$x;|' "'"`:                `a|$x;|` + "|'",
		"a \\\nb":                     `a|b`,
		"a b\n":                       `a|b`,
		`a "{ENV:X} y" {SECRET:K}`:    `a|{ENV:X} y|{SECRET:K}`,
		`a b#c ~ * ? [x] {a,b} x=y !`: `a|b#c|~|*|?|[x]|{a,b}|x=y|!`,
		`é "ü ß"`:                     `é|ü ß`,
	} {
		words, err := SplitCommand(s)
		if got := strings.Join(words, "|"); err != nil || got != want {
			t.Errorf("SplitCommand(%q) = %q %v, want %q", s, got, err, want)
		}
	}
	for s, want := range map[string]string{
		``:       "splitting a command: it is empty",
		" \n":    "splitting a command: it is empty",
		`a | b`:  `splitting a command: it holds "|", which only a shell understands`,
		`a; b`:   `splitting a command: it holds ";", which only a shell understands`,
		`a && b`: `splitting a command: it holds "&", which only a shell understands`,
		`a > b`:  `splitting a command: it holds ">", which only a shell understands`,
		`a $(b)`: `splitting a command: it holds "$", which only a shell understands`,
		"a `b`":  "splitting a command: it holds \"`\", which only a shell understands",
		`a "$b"`: `splitting a command: it holds "$", which only a shell understands`,
		`(a)`:    `splitting a command: it holds "(", which only a shell understands`,
		`A=1 b`:  `splitting a command: it begins with an assignment to "A"`,
		"a\nb":   "splitting a command: it has more than one line",
		`a 'b`:   "splitting a command: a single quote is not closed",
		`a "b`:   "splitting a command: a double quote is not closed",
		`a \`:    "splitting a command: it ends in a backslash",
		`a # b`:  "splitting a command: it holds a comment",
	} {
		if words, err := SplitCommand(s); err == nil || err.Error() != want {
			t.Errorf("SplitCommand(%q) = %q %v, want %s", s, words, err, want)
		}
	}
}

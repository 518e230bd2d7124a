package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// Concerns lists what is unusual about how a local connector is started
// (security.md, H16 and H17), for the plan that a person consents to. An Error
// is something that needs its own permission: a program other than node and
// python3, code in an argument, an entry file that is not shipped. A Warning is
// worth a line. files are the pins of the entry. nil means: node or python3
// runs a shipped file.
func (m *Manifest) Concerns(files []File) []Diagnostic {
	if m.Type == typeRemote {
		return nil
	}
	c := &concerns{files: files}
	c.command(m.Server.Command)
	if slices.Contains(interpretersOfFiles[:], m.Server.Command) {
		c.entry(m.Server.Command, m.Server.Args)
	}
	for i, arg := range m.Server.Args {
		if leadsOutside(arg) {
			c.say(Error, "args-path-outside", fmt.Sprintf("mcp_config.args[%d]", i), "the argument %q leads out of the connector's folder", arg)
		}
	}
	return c.found
}

// interpretersOfFiles run the file that their first argument names.
var interpretersOfFiles = [...]string{"node", "python3"}

// fetchers download and run a package that nothing pins.
var fetchers = [...]string{"npx", "bunx", "pnpx", "uvx", "pipx", "uv", "pnpm", "yarn"}

// harmlessOptions of an interpreter change how it runs, not what it runs.
var harmlessOptions = map[string][]string{
	"python3": {"-u", "-B", "-s", "-E", "-I", "-P", "-O", "-OO"},
	"node":    {"--no-warnings", "--enable-source-maps", "--experimental-strip-types"},
}

type concerns struct {
	files []File
	found []Diagnostic
}

func (c *concerns) say(s Severity, rule, path, format string, args ...any) {
	c.found = append(c.found, Diagnostic{File: "connector.json", Path: path, Severity: s, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

func (c *concerns) command(name string) {
	const path = "mcp_config.command"
	switch {
	case slices.Contains(interpretersOfFiles[:], name):
	case slices.Contains(fetchers[:], name):
		c.say(Warning, "command-fetches-code", path, "%s downloads and runs code that the index does not pin", name)
	case strings.ContainsAny(name, `/\`):
		c.say(Error, "command-is-a-path", path, "the command %q is a path, expected a name such as node or python3", name)
	case strings.ContainsFunc(name, func(r rune) bool { return r > 0x7e || !isNameByte(byte(r)) && !strings.ContainsRune(".-+", r) }):
		c.say(Error, "command-not-a-name", path, "the command %q is not the name of one program", name)
	default:
		c.say(Error, "command-unknown", path, "the command is %q, expected node or python3", name)
	}
}

// entry looks for the shipped file that the interpreter runs.
func (c *concerns) entry(command string, args []string) {
	for i, arg := range args {
		path := fmt.Sprintf("mcp_config.args[%d]", i)
		_, ships := Shipped(c.files, arg)
		switch {
		case slices.Contains(harmlessOptions[command], arg):
			continue
		case strings.HasPrefix(arg, "-"):
			c.say(Error, "args-option-before-entry", path, "the option %q stands before the file that is run", arg)
		case !ships:
			c.say(Error, "args-entry-not-shipped", path, "%q is run, and the index does not pin it", arg)
		}
		return
	}
	c.say(Error, "args-entry-missing", "mcp_config.args", "no file is named, expected one that is shipped")
}

// Shipped tells which of files a word of a command names, "./" in front or not.
func Shipped(files []File, word string) (path string, ok bool) {
	path = strings.TrimPrefix(word, "./")
	return path, slices.ContainsFunc(files, func(f File) bool { return f.Path == path })
}

// leadsOutside tells whether an argument is an absolute path or climbs out of
// the folder. A value behind "--name=" is looked at too.
func leadsOutside(arg string) bool {
	if strings.HasPrefix(arg, "-") {
		_, arg, _ = strings.Cut(arg, "=")
	}
	if strings.Contains(arg, "://") {
		return false
	}
	slashed := strings.ReplaceAll(arg, `\`, "/")
	isDrive := len(slashed) > 2 && slashed[1] == ':' && slashed[2] == '/'
	return strings.HasPrefix(slashed, "/") || strings.HasPrefix(slashed, "~/") || isDrive || slices.Contains(strings.Split(slashed, "/"), "..")
}

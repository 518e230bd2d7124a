package manifest

import (
	"slices"
	"strings"
)

// interpreters read an argument as a program; the flags are those that are
// followed by it.
var interpreters = map[string][]string{
	"sh": {"c"}, "bash": {"c"}, "dash": {"c"}, "ash": {"c"}, "zsh": {"c"}, "ksh": {"c"}, "mksh": {"c"}, "fish": {"c", "--command"}, "su": {"c", "--command"},
	"python": {"c"}, "pypy": {"c"},
	"node": {"e", "p", "--eval", "--print"}, "nodejs": {"e", "p", "--eval", "--print"}, "bun": {"e", "p", "--eval", "--print"}, "deno": {"eval"},
	"perl": {"e", "E"}, "ruby": {"e"}, "lua": {"e"}, "osascript": {"e"}, "php": {"r"}, "powershell": {"c", "-command"}, "pwsh": {"c", "-command"},
}

// withArgument are flags of interpreters that take the next word.
var withArgument = [...]string{"-o", "-O", "-W", "-X", "-r", "-I", "-M", "--require", "--import", "--rcfile", "--init-file"}

// isProgramText tells whether the word that follows these is run as a program.
func isProgramText(words []string) bool {
	for i, word := range words {
		plain := unquoted(word)
		if plain == "eval" || plain == "trap" {
			return true
		}
		name := strings.TrimRight(plain[strings.LastIndexByte(plain, '/')+1:], "0123456789.")
		if strings.HasPrefix(plain, "$") { // it may be any program
			name = "sh"
		}
		if flags := interpreters[name]; flags != nil && endsInProgramFlag(words[i+1:], flags) {
			return true
		}
	}
	return false
}

// endsInProgramFlag tells whether an interpreter's arguments are options only,
// the last of them one that a program follows.
func endsInProgramFlag(args, flags []string) bool {
	for i, arg := range args {
		plain := unquoted(arg)
		if i == len(args)-1 {
			return slices.ContainsFunc(flags, func(flag string) bool { return isFlag(plain, flag) })
		}
		if !strings.HasPrefix(plain, "-") && (i == 0 || !slices.Contains(withArgument[:], unquoted(args[i-1]))) {
			return false
		}
	}
	return false
}

// isFlag tells whether word is the flag, also as the last of joined ones (-ec).
func isFlag(word, flag string) bool {
	if len(flag) > 1 {
		return strings.EqualFold(word, flag)
	}
	return len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.HasSuffix(word, flag)
}

// beforeCommand are words that may stand before the name of a command.
var beforeCommand = [...]string{"if", "then", "elif", "else", "while", "until", "do", "{", "!", "time", "exec", "command", "builtin", "env", "nohup", "sudo", "nice"}

// isCommandName tells whether a word that begins with prefix, after these
// words, is the name of a command rather than an argument or an assignment.
func isCommandName(words []string, prefix string) bool {
	for _, word := range words {
		if !slices.Contains(beforeCommand[:], word) && !isAssignment(word) {
			return false
		}
	}
	return !isAssignment(prefix)
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && envNameShape(name) == nil
}

func unquoted(word string) string {
	return strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(word)
}

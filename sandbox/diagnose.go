package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skald-connectors/internal/lazyre"
)

// What was denied of files is known to nobody but the program that asked, so it
// is read out of what the program says: a line that tells of an error and names a
// path that is on this machine but not, or not for writing, in the sandbox.

// failureWords stand in the lines in which programs tell that a file was refused.
var failureWords = []string{"ENOENT", "EACCES", "EPERM", "EROFS", "no such file", "permission denied", "read-only file system", "operation not permitted",
	"not found", "cannot open", "can't open", "cannot find"}

// refusalWords are those of them that tell of a file that is there.
var refusalWords = []string{"EACCES", "EPERM", "EROFS", "permission denied", "read-only file system", "operation not permitted"}

// pathInText is an absolute path up to white space, a quote or a bracket.
var pathInText = lazyre.New("(?:^|[\\s\"'`(=:\\[])(/[^\\s\"'`()<>\\[\\]{}|*?]+)")

const (
	// diagnoseLimit bounds the output that is looked at: the last part of it.
	diagnoseLimit = 64 << 10
	// mostPaths bounds the paths that are looked at.
	mostPaths = 200
)

// Explain looks in what a process has written for files that the sandbox kept
// from it under p. Run does it for a process that failed; a caller of Start does
// it with the output that it has kept. It is a guess from words, and may find
// nothing.
func (s *Sandbox) Explain(p Policy, c Command, output []byte) []Denial {
	if s.mode == None || s.mode == Container || s.mode == Job {
		return nil
	}
	path, err := resolve(c)
	if err != nil {
		return nil
	}
	sp, err := s.spotsOf(p, c, path)
	if err != nil {
		return nil
	}
	output = output[max(0, len(output)-diagnoseLimit):]
	var found denied
	looked := 0
	for line := range bytes.Lines(output) {
		text := string(line)
		if !saysOneOf(text, failureWords) {
			continue
		}
		for _, m := range pathInText.Get().FindAllStringSubmatch(text, -1) {
			if looked++; looked > mostPaths {
				return found.all()
			}
			target := filepath.Clean(strings.TrimRight(m[1], ".,;:!"))
			if why := sp.hides(target, saysOneOf(text, refusalWords)); why != "" {
				found.add(Denial{Kind: DeniedFile, Target: target, Why: why})
			}
		}
	}
	return found.all()
}

func saysOneOf(text string, words []string) bool {
	lower := strings.ToLower(text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, strings.ToLower(w)) })
}

// hides tells why a process could not use path, "" when that is not known.
func (sp spots) hides(path string, refused bool) string {
	onMachine := exists(path) || refused && existsFolder(filepath.Dir(path))
	switch {
	case path == "/" || !onMachine || below(path, sp.write):
		return ""
	case below(path, sp.read) || below(path, systemFolders) || below(path, shownFiles()):
		if refused {
			return "it may be read, not written"
		}
		return ""
	}
	return "it is not visible in the sandbox"
}

func existsFolder(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir() && path != "/"
}

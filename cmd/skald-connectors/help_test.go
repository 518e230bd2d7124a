package main

import (
	"strings"
	"testing"
)

// A wide column of flags leaves the text its room, and an example that is broken is still one command.
func TestLayHelp(t *testing.T) {
	const text = "about is one line that is longer than the terminal is wide, as it happens.\n\nExamples:\n" +
		"  skald-connectors call http-fetch fetch_url '{\"url\": \"https://example.org\"}'\n  skald-connectors search\n\nFlags:\n" +
		"  -h, --help                       help for it\n      --secret-file NAME/FIELD=PATH   read a secret from a file, - for standard input\n"
	const want = "about is one line that is longer than the\nterminal is wide, as it happens.\n\nExamples:\n" +
		"  skald-connectors call http-fetch \\\n    fetch_url \\\n    '{\"url\": \"https://example.org\"}'\n  skald-connectors search\n\nFlags:\n" +
		"  -h, --help\n          help for it\n      --secret-file NAME/FIELD=PATH\n          read a secret from a file, - for\n          standard input\n"
	if got := layHelp(text, 44); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := layHelp(text, 120); got != text {
		t.Errorf("what fits is changed:\n%s", got)
	}
	if got := wrapCommand("  skald-connectors install a --set B=c --yes", 34); got != "  skald-connectors install a \\\n    --set B=c --yes" {
		t.Errorf("got:\n%s", got)
	}
	if words := shellWords("a 'b c' d"); strings.Join(words, "|") != "a|'b c'|d" {
		t.Errorf("words: %q", words)
	}
}

// The best hits of each marketplace are left.
func TestBestOf(t *testing.T) {
	var lines []searchLine
	for _, m := range []string{"a", "a", "b", "a", "b"} {
		lines = append(lines, searchLine{Marketplace: m, ID: m})
	}
	if got := bestOf(lines, 2); len(got) != 4 || got[2].ID != "b" {
		t.Errorf("left: %+v", got)
	}
	if got := bestOf(nil, 2); len(got) != 0 {
		t.Errorf("of none: %+v", got)
	}
}

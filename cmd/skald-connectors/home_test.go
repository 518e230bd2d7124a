package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestHomeNames: what docs/home.md lists is what a purge knows, and the reverse. A name
// that is missing here would keep every purge from its work.
func TestHomeNames(t *testing.T) {
	doc, err := os.ReadFile("../../docs/home.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(doc)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cell, _, _ := strings.Cut(line[2:], "|")
		for _, m := range regexp.MustCompile("`([a-z]+(\\.json)?)").FindAllStringSubmatch(cell, -1) {
			listed = append(listed, m[1])
		}
	}
	known := homeNames(anyPlace)
	for _, name := range listed {
		if name != "locks" && !slices.Contains(known, name) {
			t.Errorf("docs/home.md has %s, and homePlaces has not", name)
		}
	}
	for _, name := range known {
		if name != "sandbox" && name != "providers" && !slices.Contains(listed, name) {
			t.Errorf("homePlaces has %s, and docs/home.md has not", name)
		}
	}
}

package main

import (
	"bytes"
	"strings"
	"testing"

	"skald-connectors/fetch"
)

// TestTableKeepsColumns: rows that end early do not move the columns of the next.
func TestTableKeepsColumns(t *testing.T) {
	var b bytes.Buffer
	rows := [][]string{{"email", "", ""}, {"http-fetch", "version 2", "cursor"}, {"x", "", "zed"}}
	if err := table(&b, []string{"NAME", "UPDATE", "MOUNTED IN"}, rows); err != nil {
		t.Fatal(err)
	}
	want := "NAME        UPDATE     MOUNTED IN\nemail\nhttp-fetch  version 2  cursor\nx                      zed\n"
	if b.String() != want {
		t.Errorf("%q\nwant\n%q", b.String(), want)
	}
}

// TestProgressNeverGoesBack: the events of files that come at once overtake each other.
func TestProgressNeverGoesBack(t *testing.T) {
	var b bytes.Buffer
	p := &progress{w: &b, live: true, files: true, totals: map[string]fetch.Event{}, said: map[string]bool{}}
	event := func(files int, bytes int64) fetch.Event {
		return fetch.Event{Connector: "x", Files: files, TotalFiles: 3, Bytes: bytes, TotalBytes: 30}
	}
	for _, e := range []fetch.Event{event(2, 20), event(1, 10), event(3, 30), event(2, 25)} {
		p.show(e)
	}
	want := "downloading: 2 of 3 files, 20 bytes of 30 bytes\r\x1b[Kx: 3 files, 30 bytes, every byte checked\n"
	if b.String() != want {
		t.Errorf("%q\nwant\n%q", b.String(), want)
	}
}

func TestWrapLines(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"prose", "note: clients will start it now", "note: clients will start\nit now"},
		{"fits", "a  b   c", "a  b   c"},
		{"list", "  1. open the page which is there", "  1. open the page which\n     is there"},
		{"column", "  -q  say only what was wrong", "  -q  say only what was\n      wrong"},
		{"no room", "  --paste      say only what was wrong", "  --paste say only what\n  was wrong"},
		{"indented", "    say only what went quite wrong", "    say only what went\n    quite wrong"},
		{"long word", "reading /a/very/long/path/that/no/line/holds: gone", "reading\n/a/very/long/path/that/no/line/holds:\ngone"},
		{"lines", "one\n\ntwo", "one\n\ntwo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := wrapLines(c.in, 25); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if got := wrapLines(strings.Repeat("→ ", 30), 20); strings.Count(got, "\n") != 2 {
		t.Errorf("%q", got)
	}
}

func TestReflow(t *testing.T) {
	in := "one two three four\nfive six.\n\n  code  stays\n  as it is\n\nlast"
	want := "one two three\nfour five six.\n\n  code  stays\n  as it is\n\nlast"
	if got := reflow(in, 16); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

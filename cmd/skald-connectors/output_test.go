package main

import (
	"bytes"
	"strings"
	"testing"

	"skald-connectors/fetch"
)

// TestTableKeepsColumns: rows that end early do not move the columns of the next.
func TestTableKeepsColumns(t *testing.T) {
	rows := [][]string{{"email", "", ""}, {"http-fetch", "version 2", "cursor"}, {"x", "", "zed"}}
	want := "NAME        UPDATE     MOUNTED IN\nemail\nhttp-fetch  version 2  cursor\nx                      zed\n"
	for _, width := range []int{0, 100, 33} {
		if got := tableText([]string{"NAME", "UPDATE", "MOUNTED IN"}, rows, width, wrap); got != want {
			t.Errorf("at %d: %q\nwant\n%q", width, got, want)
		}
	}
}

// TestTableFits: whatever is in it and however narrow the terminal, no line is wider than it, and nothing is lost.
func TestTableFits(t *testing.T) {
	header := []string{"ID", "VERSION", "NAME", "DESCRIPTION"}
	rows := [][]string{
		{"weather", "1.0.0", "Weather (Open-Meteo)", "Current weather, forecasts up to sixteen days"},
		{"日本", "1.0.0", "天気予報", "現在の天気と十六日間の予報を調べます。登録は要りません。"},
		{"x", "2", "é́e", "🙂 a 👍🏽 b"}, // marks that take no cell, emoji that take two
	}
	for width := 20; width <= 110; width++ {
		for name, last := range map[string]fit{"wrap": wrap, "cut": cut} {
			text := tableText(header, rows, width, last)
			for line := range strings.Lines(text) {
				if n := cells(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s at %d: %d cells: %q", name, width, n, line)
				}
			}
			if bare := strings.Join(strings.Fields(text), ""); name == "wrap" {
				for _, cell := range []string{"Weather(Open-Meteo)", "forecastsuptosixteendays"} {
					if !strings.Contains(bare, cell) && width > 40 {
						t.Errorf("at %d %q is lost:\n%s", width, cell, text)
					}
				}
			}
		}
	}
	for _, c := range []struct {
		width int
		want  string
	}{
		{60, "ID       VERSION  NAME                  DESCRIPTION\nweather  1.0.0    Weather (Open-Meteo)  Current weather, fo…\n"},
		{45, "ID       VERSION  NAME\n    DESCRIPTION\nweather  1.0.0    Weather (Open-Meteo)\n    Current weather, forecasts up to sixteen…\n"},
		{30, "weather\n  version: 1.0.0\n  name: Weather (Open-Meteo)\n  description: Current\n    weather, forecasts up to\n    sixteen days\n"},
	} {
		if got := tableText(header, rows[:1], c.width, cut); got != c.want {
			t.Errorf("at %d:\n%s\nwant\n%s", c.width, got, c.want)
		}
	}
}

// TestTableLeavesOutEmptyColumns: where room is short, what says nothing goes first.
func TestTableLeavesOutEmptyColumns(t *testing.T) {
	header, rows := []string{"NAME", "UPDATE", "STATE", "MOUNTED IN"}, [][]string{{"email", "", "ready", ""}, {"gmail", "", "expired", ""}}
	if got, want := tableText(header, rows, 20, wrap), "NAME   STATE\nemail  ready\ngmail  expired\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := tableText(header, rows, 60, wrap); !strings.Contains(got, "MOUNTED IN") {
		t.Errorf("%q", got)
	}
}

// TestWrapCountsCells: ideographs take two cells and may be parted; combining marks take none; paths stay whole.
func TestWrapCountsCells(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"ideographs", "今日は良い天気です。明日も", "今日は良い\n天気です。\n明日も"},
		{"marks", "e\u0301e\u0301e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301e\u0301", "e\u0301e\u0301e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301e\u0301"},
		{"emoji", "🙂🙂🙂 🙂🙂🙂", "🙂🙂🙂 🙂\n🙂🙂"},
		{"opening", "says \"今日は\"", "says \"今日\nは\""},
		{"opening at the end", "it says, \"今日は\"", "it says,\n\"今日は\""},
		{"mixed", "API の鍵 SECRET", "API の鍵\nSECRET"},
		{"path", "see /a/very/long/path/é", "see\n/a/very/long/path/é"},
	} {
		if got := wrap(c.in, 10, ""); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := shorten("今日は良い天気です", 8); got != "今日は…" {
		t.Errorf("%q", got)
	}
}

// TestProgressNeverGoesBack: the events of files that come at once overtake each other.
func TestProgressNeverGoesBack(t *testing.T) {
	var b bytes.Buffer
	p := &progress{w: &b, live: true, width: 40, files: true, totals: map[string]fetch.Event{}, said: map[string]bool{}}
	event := func(files int, bytes int64) fetch.Event {
		return fetch.Event{Connector: "x", Files: files, TotalFiles: 3, Bytes: bytes, TotalBytes: 30}
	}
	for _, e := range []fetch.Event{event(2, 20), event(1, 10), event(3, 30), event(2, 25)} {
		p.show(e)
	}
	want := "downloading: 2 of 3 files, 20 bytes of…\r\x1b[Kx: 3 files, 30 bytes, every byte checked\n"
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

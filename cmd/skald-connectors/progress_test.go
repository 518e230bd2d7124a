package main

import (
	"bytes"
	"testing"
	"time"
)

// TestPackagesMoveOneLine: the line is redrawn in place and gone before lasting text.
func TestPackagesMoveOneLine(t *testing.T) {
	var b bytes.Buffer
	p := &progress{w: &b, live: true}
	start := time.Unix(1_800_000_000, 0)
	p.packages("npm", 0, 92, start)
	p.packages("npm", 93, 92, start.Add(5*time.Second))
	p.packages("pip", 1, 0, start.Add(6*time.Second))
	p.clear()
	want := "npm: 0 of 92 packages in place, 0 s" +
		"\r\x1b[Knpm: 92 of 92 packages in place, 5 s" +
		"\r\x1b[Kpip: 1 package in place, 6 s" + "\r\x1b[K"
	if got := b.String(); got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

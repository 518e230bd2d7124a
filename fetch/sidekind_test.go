package fetch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSideFilesOfTwoPrograms lets a program with another form of the side file share the cache: neither touches the
// other's, until one has not been written for so long that its program is gone.
func TestSideFilesOfTwoPrograms(t *testing.T) {
	if want := fmt.Sprintf("side%d", sideMagic[len(sideMagic)-1]); sideKind != want {
		t.Errorf("side files are called %q and have the format of %q", sideKind, want)
	}
	tr, _ := demo()
	c := newClock()
	o := options(t, serve(t, tr))
	o.Now = c.now
	m := open(t, o)
	ix := get(t, m, Cached)
	own, err := filepath.Glob(filepath.Join(o.CacheDir, indexDir, "*."+sideKind))
	if err != nil || len(own) != 1 {
		t.Fatalf("side files: %q, %v", own, err)
	}
	base := strings.TrimSuffix(own[0], sideKind)
	before, err := os.Stat(own[0])
	if err != nil {
		t.Fatal(err)
	}
	others := map[string]time.Duration{"side": time.Hour, "side1": pruneAge + time.Hour, "side9": pruneAge - time.Hour}
	for kind, age := range others {
		if err := os.WriteFile(base+kind, []byte("of another form"), 0o600); err != nil {
			t.Fatal(err)
		}
		when := c.now().Add(freshFor + time.Second - age)
		if err := os.Chtimes(base+kind, when, when); err != nil {
			t.Fatal(err)
		}
	}
	c.add(freshFor + time.Second)
	if again := get(t, m, Cached); again.Digest() != ix.Digest() {
		t.Error("another index")
	}
	if after, err := os.Stat(own[0]); err != nil || !os.SameFile(before, after) {
		t.Errorf("our own was made anew: %v", err)
	}
	for kind, age := range others {
		data, err := os.ReadFile(base + kind)
		switch {
		case age > pruneAge && !isMissing(err):
			t.Errorf("%s, which nobody has written for %v, is still here", kind, age)
		case age < pruneAge && string(data) != "of another form":
			t.Errorf("%s: %q, %v", kind, data, err)
		}
	}
}

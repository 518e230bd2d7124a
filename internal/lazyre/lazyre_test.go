package lazyre

import "testing"

func TestPatternsAreCompiledOnce(t *testing.T) {
	r := New(`a(b+)`)
	if !r.MatchString("abb") || r.FindString("xabbx") != "abb" || r.FindStringSubmatch("abb")[1] != "bb" || r.ReplaceAllString("abab", "c") != "cc" {
		t.Error("it does not match as a pattern does")
	}
	if first, again := r.Get(), r.Get(); first != again {
		t.Error("compiled twice")
	}
	bad := New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("a pattern that does not compile is used")
		}
	}()
	bad.MatchString("")
}

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSeatbeltProfiles(t *testing.T) {
	for name, p := range map[string]Policy{
		"none":     {},
		"all":      {Network: Network{All: true}},
		"loopback": {Loopback: true, Agent: "/private/tmp/agent"},
		"open":     {Network: Network{All: true}, Loopback: true},
	} {
		want, err := os.ReadFile(filepath.Join("testdata", "seatbelt", name+".sb"))
		got := seatbelt(p, []string{"/Users/anna/Mail"}, []string{`/Users/anna/a "b\c"`})
		if *update {
			err = os.WriteFile(filepath.Join("testdata", "seatbelt", name+".sb"), []byte(got), 0o644)
			want = []byte(got)
		}
		if err != nil || got != string(want) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	for want, p := range map[string]Policy{
		"enforcing network only to a.example:1: sandbox-exec knows ports, not hosts":                   {Network: Network{Hosts: []string{"a.example:1"}}},
		"enforcing a browser that confines its own pages: there can be no sandbox inside sandbox-exec": {Browser: true},
	} {
		if err := seatbeltRefuses(p); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if list := seatbeltNotHeld(Policy{Network: Network{All: true}}); len(list) != 2 {
		t.Errorf("not held: %q", list)
	}
}

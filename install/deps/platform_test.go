package deps

import (
	"os"
	"strings"
	"testing"
)

// TestHere: the plan counts what npm installs on a machine, not all that a lock names.
func TestHere(t *testing.T) {
	entry := func(where, more string) string {
		return `"` + where + `":{"version":"1.0.0","integrity":"` + digest512 + `"` + more + `}`
	}
	src := lockOf(strings.Join([]string{
		entry("node_modules/a", `,"dependencies":{"both":"1.0.0"},"optionalDependencies":{"mac":"1.0.0","glibc":"1.0.0","musl":"1.0.0","lost":"1.0.0","notwin":"1.0.0"}`),
		entry("node_modules/both", ""),
		entry("node_modules/mac", `,"optional":true,"os":["darwin"],"dependencies":{"onlymac":"1.0.0","both":"1.0.0"}`),
		entry("node_modules/onlymac", `,"optional":true`),
		entry("node_modules/glibc", `,"optional":true,"os":["linux"],"cpu":["x64"],"libc":["glibc"]`),
		entry("node_modules/musl", `,"optional":true,"os":["linux"],"cpu":["x64"],"libc":["musl"]`),
		entry("node_modules/notwin", `,"optional":true,"os":["!win32"]`),
		entry("node_modules/lost", `,"optional":true,"dependencies":{"inner":"1.0.0"}`),
		entry("node_modules/lost/node_modules/inner", `,"optional":true,"cpu":["wasm32"]`),
	}, ","))
	l, err := readLock(lockFile, []byte(src), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m    machine
		want string
	}{
		{machine{"linux", "x64", "glibc"}, "a both glibc notwin"},
		{machine{"linux", "x64", "musl"}, "a both musl notwin"},
		{machine{"linux", "arm64", "glibc"}, "a both notwin"},
		{machine{"darwin", "arm64", ""}, "a both mac notwin onlymac"},
		{machine{"win32", "x64", ""}, "a both"},
	} {
		var names []string
		for _, p := range l.on(c.m) {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%v: %s, want %s", c.m, got, c.want)
		}
	}
}

// TestHereWhatsapp: 99 is what an installation of this lock leaves on Linux, x64, glibc.
func TestHereWhatsapp(t *testing.T) {
	src, err := os.ReadFile("../../connectors/whatsapp/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	l, err := readLock(lockFile, src, false)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(l.on(machine{"linux", "x64", "glibc"})); n != 99 {
		t.Errorf("%d packages", n)
	}
}

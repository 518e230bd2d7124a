package sandbox

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// rows are the attempts in the order of the table.
var rows = []string{
	"Files:",
	"read an SSH key in your home", "list your home", "read the vault of the key store", "read the state of another connector",
	"write a file in your home", "change the permissions of a file in your home", "read the passwords of the system",
	"Other programs:",
	"see the other processes", "read the environment of the launcher", "read the memory of the launcher", "trace the launcher", "signal the launcher",
	"talk to the Docker socket", "talk to D-Bus on an abstract socket", "send to a socket through a datagram pair",
	"The kernel:",
	"make a user namespace", "set up io_uring", "use the key ring of the kernel", "catch its own page faults",
	"Network, when one host is declared:",
	"reach a host that is not declared", "reach a port that is not declared", "reach a private address", "reach the metadata address",
	"reach a service of this machine", "reach a host by MPTCP", "send a datagram to a host",
	"Network, when every host is granted:",
	"then reach the metadata address", "then reach the metadata address by MPTCP", "then reach a service of this machine", "then send a datagram to the metadata address",
	"More than its share:",
	"start more processes than allowed", "take more memory than allowed", "write a larger file than allowed", "fill the disk with temporary files",
	"Staying:",
	"outlive its end (two forks, own session, limits changed)", "outlive a launcher that is killed", "leave a listener behind",
	"The install script of an npm package:",
	"npm: read an SSH key in your home", "npm: list your home", "npm: read the vault of the key store",
	"npm: read the environment of the launcher", "npm: talk to the Docker socket",
	"What must work:",
	"works: read its own folder", "works: write its state", "works: write temporary files", "works: start a program",
	"works: reach a declared host", "works: reach a host", "works: reach a private host",
}

// shut are the attempts that do not come through even where nothing is enforced:
// the system itself holds them, or we do.
var shut = map[string]bool{"take more memory than allowed": true, "write a larger file than allowed": true}

func TestEscapes(t *testing.T) {
	if text := os.Getenv(escapeWorld); text != "" { // as the ordinary user
		var w world
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			t.Fatal(err)
		}
		found, err := json.Marshal(collect(t, w))
		if err == nil {
			err = os.WriteFile(os.Getenv(escapeResult), found, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can be both users")
	}
	for _, tool := range []string{"/usr/bin/python3", "/usr/bin/node", "/usr/bin/npm", "/usr/bin/bwrap"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	if !isolated(t) {
		return
	}
	w := newWorld(t)
	byUser := map[string]outcomes{"root": collect(t, w), "user": asOrdinary(t, w)}
	for user, all := range byUser {
		for attempt, by := range all {
			works := strings.HasPrefix(attempt, "works: ")
			if !by[None] && !shut[attempt] && (user == "root" || works) {
				t.Errorf("%s: %q fails where nothing is enforced, so it shows nothing", user, attempt)
			}
			if by[Combined] != works && attempt != "then send a datagram to the metadata address" {
				t.Errorf("%s: %q under everything: %v", user, attempt, by[Combined])
			}
		}
	}
	compareTable(t, table(byUser))
}

// newWorld serves on every address of this network.
func newWorld(t *testing.T) world {
	w := world{Port: greeter(t, "0.0.0.0"), Other: greeter(t, "0.0.0.0"), DNS: "127.0.0.1:53"}
	for range 2 { // two free ports
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		w.Local = l.Addr().(*net.TCPAddr).Port
		l.Close()
	}
	for _, at := range []string{"0.0.0.0:0", "0.0.0.0:53"} {
		pc, err := net.ListenPacket("udp4", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pc.Close() })
		if w.UDP == 0 {
			w.UDP = pc.LocalAddr().(*net.UDPAddr).Port
		}
		go func() {
			buf := make([]byte, dnsLimit)
			for {
				n, from, err := pc.ReadFrom(buf)
				if err != nil {
					return
				}
				if n == 1 {
					_, _ = pc.WriteTo([]byte("hello"), from)
					continue
				}
				_, _ = pc.WriteTo(respond(buf[:n], func(name string) (netip.Addr, byte) {
					if !strings.HasSuffix(name, "example.org") {
						return netip.Addr{}, dnsNoName
					}
					return netip.MustParseAddr("93.184.215.14"), dnsOK
				}), from)
			}
		}()
	}
	return w
}

// table writes the outcomes in Markdown.
func table(byUser map[string]outcomes) string {
	var b strings.Builder
	modes := []Mode{None, Landlock, Bubblewrap, Combined}
	b.WriteString("| it tries to | nothing enforced | Landlock | bubblewrap | both |\n|---|---|---|---|---|\n")
	for _, row := range rows {
		if title, ok := strings.CutSuffix(row, ":"); ok && !strings.HasPrefix(row, "works") {
			fmt.Fprintf(&b, "| **%s** | | | | |\n", title)
			continue
		}
		name, works := strings.CutPrefix(row, "works: ")
		name = strings.TrimPrefix(strings.TrimPrefix(name, "then "), "npm: ")
		fmt.Fprintf(&b, "| %s |", name)
		for _, m := range modes {
			fmt.Fprintf(&b, " %s |", cell(byUser["root"][row][m], byUser["user"][row][m], works))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func cell(root, user, works bool) string {
	yes, no := "**open**", "held"
	if works {
		yes, no = "works", "**refused**"
	}
	switch {
	case root && user:
		return yes
	case root:
		return yes + " to root"
	case user:
		return yes + " to a user"
	}
	return no
}

const tableBegin, tableEnd = "<!-- made by go test ./sandbox -run TestEscapes -update -->\n", "<!-- end -->\n"

// compareTable holds the table against the one in the documentation, or writes it.
func compareTable(t *testing.T, made string) {
	t.Helper()
	path := filepath.Join("..", "docs", "sandbox.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	have, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+tableBegin+made+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != made {
		t.Errorf("%s is not what was found:\n%s", path, made)
	}
}

package sandbox

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// sockets tries what is around the sockets of the Unix family. Its arguments are a
// folder that is shown to it with a socket "other" in it, and an abstract name.
const sockets = `
import os, socket, sys
shown, abstract = sys.argv[1], "\0" + sys.argv[2]
home, here = os.environ["HOME"], os.getcwd()
def say(name, f):
    try:
        f()
        print(name, "works")
    except OSError as e:
        print(name, os.strerror(e.errno))
def connect(to, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind)
    s.connect(to)
def listen(at):
    s = socket.socket(socket.AF_UNIX)
    s.bind(at)
    s.listen(1)
    return s
def datagram(kind):
    a, b = socket.socketpair(socket.AF_UNIX, kind)
    a.sendto(b"x", shown + "/other")
def own(path):
    s = listen(path)
    connect(path)
    s.accept()
os.symlink(shown, here + "/link")
os.symlink(shown + "/other", here + "/file")
os.symlink(here, home + "/back")
say("other", lambda: connect(shown + "/other"))
say("other-seqpacket", lambda: connect(shown + "/other", socket.SOCK_SEQPACKET))
say("dots", lambda: connect(home + "/.." + shown + "/other"))
say("dots-here", lambda: connect(here + "/../" + os.path.basename(shown) + "/other"))
say("link", lambda: connect(here + "/link/other"))
say("file", lambda: connect(here + "/file"))
say("magic", lambda: connect("/proc/self/root" + shown + "/other"))
say("fd", lambda: connect("/proc/self/fd/%d" % os.open(shown + "/other", os.O_PATH)))
say("abstract", lambda: connect(abstract))
say("empty", lambda: connect(""))
say("datagram", lambda: datagram(socket.SOCK_DGRAM))
say("raw", lambda: datagram(socket.SOCK_RAW))
say("socket-datagram", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
say("missing", lambda: connect(home + "/missing"))
say("home", lambda: own(home + "/socket"))
say("here", lambda: own(here + "/socket"))
say("tmp", lambda: own("/tmp/socket"))
say("pair", lambda: socket.socketpair())
say("take", lambda: listen("\0taken-" + sys.argv[2]))
say("low", lambda: socket.socket().bind(("127.0.0.1", 1)))
`

// TestSocketsOfGrants holds that an agent's or a browser's grant opens sockets in
// the connector's own folders and no other, whatever name is given.
func TestSocketsOfGrants(t *testing.T) {
	shortPaths(t)
	shown, agent := t.TempDir(), filepath.Join(t.TempDir(), "agent")
	for _, address := range []string{agent, filepath.Join(shown, "other"), "@" + filepath.Base(shown) + t.Name()} {
		l, err := net.Listen("unix", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	for _, mode := range []Mode{Bubblewrap, Combined} {
		s := openMode(t, mode)
		if s.facts.Watch != "" {
			t.Skip(s.facts.Watch)
		}
		for name, p := range map[string]Policy{
			"browser": Policy{}.WithBrowser(), "agent": {Agent: agent}, "browser in the machine's network": Policy{Network: Network{All: true}}.WithBrowser(),
			"agent in the machine's network": {Agent: agent, Network: Network{All: true}, Loopback: true},
		} {
			dir := t.TempDir()
			p.Own, p.Read = []string{dir}, []string{shown}
			c := Command{Dir: dir, Env: []string{"HOME=/home/connector", "TMPDIR=/tmp"}, Argv: []string{"/usr/bin/python3", "-c", sockets, shown, filepath.Base(shown) + t.Name()}}
			r, err := s.Run(t.Context(), p, c, nil)
			if err != nil || r.Code != 0 {
				t.Errorf("%s, %s: %v, %d\n%s", mode, name, err, r.Code, r.Stderr)
			}
			for line := range strings.Lines(string(r.Stdout)) {
				attempt, outcome, _ := strings.Cut(strings.TrimSpace(line), " ")
				want := "Permission denied"
				switch attempt {
				case "home", "here", "tmp", "pair":
					want = "works"
				case "missing":
					want = "No such file or directory"
				case "take":
					if !p.Network.All {
						want = "works" // among its own
					}
				}
				if outcome != want {
					t.Errorf("%s, %s: %s: %s", mode, name, attempt, outcome)
				}
			}
			if n := strings.Count(string(r.Stdout), "\n"); n != 20 {
				t.Errorf("%s, %s: %d attempts\n%s", mode, name, n, r.Stdout)
			}
		}
		if name := "agent.sock"; (&Sandbox{mode: Landlock}).refuses(Policy{Browser: true, Agent: name}) == nil {
			t.Error("Landlock alone takes a browser")
		}
	}
}

package sandbox

import (
	"testing"
)

func TestConfinedRun(t *testing.T) {
	for _, mode := range []Mode{Combined, Bubblewrap, Landlock} {
		t.Run(string(mode), func(t *testing.T) {
			s := openMode(t, mode)
			work := t.TempDir()
			c := Command{Argv: []string{"python3", "-c", "import os;print(os.getcwd(),os.environ['S'])"}, Dir: work, Env: []string{"PATH=/usr/bin:/bin", "S=x", "HOME=/home/u"}}
			r, err := s.Run(t.Context(), Policy{Own: []string{work}}, c, nil)
			t.Logf("%v %+v %s %s", err, r, r.Stdout, r.Stderr)
			c.Argv = []string{"node", "-e", "console.log(process.cwd(), require('os').userInfo().username, require('os').cpus().length); process.exit(7)"}
			r, err = s.Run(t.Context(), Policy{Own: []string{work}}, c, nil)
			t.Logf("%v %+v %s %s", err, r, r.Stdout, r.Stderr)
		})
	}
}

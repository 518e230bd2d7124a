package sandbox

import (
	"os"
	"slices"
	"testing"
	"time"
)

// BenchmarkStart measures what a start costs under each back end. Every round
// also makes a bare start, so that the ratio does not depend on how busy the
// machine is; the figures are medians. The program does nothing, so all of it is
// the start.
func BenchmarkStart(b *testing.B) {
	hosts := Policy{Network: Network{Hosts: []string{"imap.example.org:993"}}}
	everything := Policy{Network: Network{All: true}}
	for _, tt := range []struct {
		name string
		mode Mode
		p    Policy
	}{
		{"none", None, Policy{}},
		{"landlock", Landlock, Policy{}},
		{"landlock, judged", Landlock, everything},
		{"bubblewrap", Bubblewrap, Policy{}},
		{"both, judged", Combined, everything},
		{"both, forwarder", Combined, hosts},
	} {
		b.Run(tt.name, func(b *testing.B) {
			s := openMode(b, tt.mode)
			var bare, ours []time.Duration
			for b.Loop() {
				began := time.Now()
				bareStart(b)
				bare = append(bare, time.Since(began))
				r, err := s.Run(b.Context(), tt.p, Command{Argv: []string{"/bin/true"}, Dir: "/usr"}, nil)
				if err != nil || r.Code != 0 {
					b.Fatal(r, err)
				}
				ours = append(ours, r.Elapsed)
			}
			b.ReportMetric(float64(median(ours))/float64(time.Millisecond), "ms/start")
			b.ReportMetric(float64(median(ours)-median(bare))/float64(time.Millisecond), "ms/more")
			b.ReportMetric(float64(median(ours))/float64(median(bare)), "x-bare")
		})
	}
}

func bareStart(b *testing.B) {
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Dir: "/", Env: []string{}})
	if err != nil {
		b.Fatal(err)
	}
	_, _ = p.Wait()
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkMessage measures a line to a running process and back: what confines
// it must not be in the way.
func BenchmarkMessage(b *testing.B) {
	for _, mode := range []Mode{None, Landlock, Combined} {
		b.Run(string(mode), func(b *testing.B) {
			p, err := openMode(b, mode).Start(b.Context(), Policy{}, Command{Argv: []string{"/bin/cat"}, Dir: "/usr"})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close(Ladder{})
			msg, back := []byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"), make([]byte, 64)
			for b.Loop() {
				if _, err := p.Stdin.Write(msg); err != nil {
					b.Fatal(err)
				}
				if _, err := p.Stdout.Read(back); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package sandbox

import (
	"os"
	"testing"
)

// BenchmarkStart compares a bare start with ours.
func BenchmarkStart(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Dir: "/", Env: []string{}})
			if err != nil {
				b.Fatal(err)
			}
			_, _ = p.Wait()
		}
	})
	b.Run("plain", func(b *testing.B) {
		s := plainSandbox(b)
		for b.Loop() {
			if _, err := s.Run(b.Context(), Policy{}, Command{Argv: []string{"/bin/true"}, Dir: "/"}, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

package keystore

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// benchHandles gives n values of length bytes, as API keys look.
func benchHandles(n, length int) []Handle {
	rnd := rand.New(rand.NewPCG(1, 2))
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	var hs []Handle
	for i := range n {
		b := make([]byte, length)
		for j := range b {
			b[j] = alphabet[rnd.IntN(len(alphabet))]
		}
		hs = append(hs, Handle{Name: fmt.Sprintf("H%d", i), Value: NewSecret(string(b)), Secret: true})
	}
	return hs
}

// benchText is 1 MiB of JSON-RPC replies without a secret.
func benchText() []byte {
	const line = `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"{\"subject\":\"Quarterly \\\"report\\\"\",\"from\":\"ann@example.org\",\"body\":\"Dear all,\\nplease find the numbers below: %x\\nKind regards\"}"}]}}` + "\n"
	rnd := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, line, i, rnd.Uint64())
	}
	return []byte(b.String())
}

func BenchmarkRedact(b *testing.B) {
	text := benchText()
	for _, n := range []int{1, 10, 100} {
		for _, length := range []int{8, 16, 24, 40} {
			r := NewRedactor(benchHandles(n, length))
			b.Run(fmt.Sprintf("bytes/%dx%d", n, length), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					if out := r.Bytes(text); &out[0] != &text[0] {
						b.Fatal("changed")
					}
				}
			})
		}
	}
}

// BenchmarkContains is the plain loop: raw values only, and all forms.
func BenchmarkContains(b *testing.B) {
	text := benchText()
	hs := benchHandles(100, 24)
	r := NewRedactor(hs)
	var raw [][]byte
	for _, h := range hs {
		raw = append(raw, []byte(h.Value.Reveal()))
	}
	var all [][]byte
	for _, p := range r.now.Load().begin.sorted {
		all = append(all, []byte(p))
	}
	for name, patterns := range map[string][][]byte{"raw/100x24": raw, "all/100x24": all} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for _, p := range patterns {
					if bytes.Contains(text, p) {
						b.Fatal("found")
					}
				}
			}
		})
	}
}

func BenchmarkRedactWriter(b *testing.B) {
	text := benchText()
	r := NewRedactor(benchHandles(100, 24))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		w := r.Writer(io.Discard)
		for part := range bytes.Lines(text) {
			w.Write(part)
		}
		w.Close()
	}
}

func BenchmarkRedactShort(b *testing.B) {
	text := benchText()
	r := NewRedactor(handles("PIN", "1234"))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Bytes(text)
	}
}

func BenchmarkNewRedactor(b *testing.B) {
	hs := benchHandles(100, 24)
	big := handles("BIG", strings.Repeat(pemValue, 100))
	b.Run("100x24", func(b *testing.B) {
		for b.Loop() {
			NewRedactor(hs)
		}
	})
	b.Run("27KiB", func(b *testing.B) {
		for b.Loop() {
			NewRedactor(big)
		}
	})
}

package launch

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"skald-connectors/keystore"
)

const smallReply = `{"jsonrpc":"2.0","id":12345,"result":{"content":[{"type":"text","text":"pong"}]}}` + "\n"

func textReply(n int) []byte {
	return []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("Lorem ipsum dolor sit amet, consectetur.\\n", n/41) + `"}]}}` + "\n")
}

func BenchmarkInspect(b *testing.B) {
	for name, line := range map[string][]byte{"small": []byte(smallReply), "1MiB": textReply(1 << 20)} {
		b.Run(name+"/scan", func(b *testing.B) {
			var s scanner
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if !s.scan(line) {
					b.Fatal("refused")
				}
			}
		})
		b.Run(name+"/unmarshal", func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				var m map[string]any
				if err := json.Unmarshal(line, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range secretCounts {
		r := keystore.NewRedactor(secrets(n))
		line := textReply(1 << 20)
		b.Run("find/"+string(rune('0'+n/10)), func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				if r.Find(line) != nil {
					b.Fatal("found")
				}
			}
		})
		b.Run("mask/"+string(rune('0'+n/10)), func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				w := r.Masker(io.Discard, nil)
				w.Write(line)
				w.Close()
			}
		})
	}
}

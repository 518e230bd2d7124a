package mount

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// largeConfig is a file with the history of a thousand projects in it, 5 MB.
func largeConfig() []byte {
	var b bytes.Buffer
	b.WriteString("{\n  \"mcpServers\": {},\n  \"projects\": {\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "    \"/p/%d\": {\"history\": [%q], \"mcpServers\": {}},\n", i, strings.Repeat("a \"line\"\n", 400))
	}
	b.WriteString("    \"last\": {}\n  }\n}\n")
	return b.Bytes()
}

func BenchmarkLargeFile(b *testing.B) {
	src := largeConfig()
	b.Run("anchor: encoding/json reads it", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			var v any
			check(b, json.Unmarshal(src, &v))
		}
	})
	b.Run("mount and unmount", func(b *testing.B) {
		w := newWorld(b, "linux")
		w.write(w.file("claude-code"), src)
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			w.mount(Request{Client: "claude-code", Name: "mail"})
			w.unmount(Request{Client: "claude-code", Name: "mail"})
		}
	})
}

package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// The tree of the benchmark: 10,000 files, 205 MB.
const (
	benchConnectors = 20
	benchFiles      = 500 // a connector, the two documents and an icon among them
	benchFileBytes  = 20500
)

func benchTree(b *testing.B) string {
	dir := b.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	list := "["
	for i := range benchConnectors {
		id := fmt.Sprintf("c%02d", i)
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf("%q", id)
		both := fmt.Sprintf(`"id":%q,"name":"C","type":"mcp_remote","scope":"user","requires":[],"tags":[],"version":1,"version_string":"1.0.0","version_release_date":"2026-11-30","tools":[],"auth":{"type":"none"}`, id)
		write(b, dir, id+"/fragment.json", `{`+both+`,"user_description":"d","icon_small":"`+id+`/icon.svg","icon_large":"`+id+`/icon.svg"}`)
		write(b, dir, id+"/connector.json", `{`+both+`,"docs":[{"lang":"en","description":"d","llm_short_description":"d"}],"mcp_config":{"url":"https://c.example.org/mcp","transport":"streamable-http"},"icon_small":"icon.svg","icon_large":"icon.svg"}`)
		write(b, dir, id+"/icon.svg", "<svg/>")
		data := make([]byte, benchFileBytes)
		for j := range benchFiles - 2 {
			for k := 0; k < len(data); k += 64 {
				data[k] = byte(r.Uint32())
			}
			write(b, dir, fmt.Sprintf("%s/d%d/f%03d.bin", id, j%10, j), string(data))
		}
	}
	write(b, dir, "index.json", list+"]")
	return dir
}

// rawHash is the anchor: one loop that reads each file and hashes it, and does nothing with the result.
func rawHash(b *testing.B, dir string) {
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(src)
		_ = hex.EncodeToString(sum[:])
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkVerify compares a whole Verify (scan, hash, compile, compare) of a current tree with the raw loop, turn by
// turn in the same run. The goal of docs is 1.3 × raw.
func BenchmarkVerify(b *testing.B) {
	dir := benchTree(b)
	if r, err := Compile(b.Context(), dir, Options{}); err != nil {
		b.Fatalf("%v\n%s", err, said(r))
	}
	rawHash(b, dir) // both find the files in the page cache
	var ratios []float64
	for b.Loop() {
		began := time.Now()
		rawHash(b, dir)
		raw := time.Since(began)
		began = time.Now()
		if _, err := Verify(b.Context(), dir, Options{}); err != nil {
			b.Fatal(err)
		}
		ratios = append(ratios, float64(time.Since(began))/float64(raw))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x/raw")
	b.SetBytes(benchConnectors * benchFiles * benchFileBytes)
}

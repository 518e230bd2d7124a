package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"skald-connectors/internal/atomicfile"
)

func receiptFile(home string) string { return filepath.Join(home, receiptsDir, "mail.json") }

// Missing and damaged receipts are rebuilt from the folders; the next command that
// writes one writes it whole.
func TestReceiptRebuilt(t *testing.T) {
	for what, text := range map[string]string{
		"missing": "-", "empty": "", "not JSON": "{", "list": "[]", "null": "null", "no format": `{"connector":"mail","versions":[]}`, "format 0": `{"format":0}`,
		"of another": `{"format":1,"connector":"chat","versions":[]}`, "no versions": `{"format":1,"connector":"mail"}`,
		"hostile":     `{"format":1,"connector":"mail","versions":[{"version":1,"digest":"../../../../../x"}]}`,
		"text number": `{"format":1,"connector":"mail","versions":[{"version":"1","digest":"0123456789abcdef"}]}`,
	} {
		home := tempDir(t)
		s := Open(home)
		ref := mustPut(t, s, v1(), "work")
		good, err := os.ReadFile(receiptFile(home))
		check(t, err)
		check(t, os.Remove(receiptFile(home)))
		if text != "-" {
			write(t, receiptFile(home), text)
		}
		r, err := s.Receipts()
		if err != nil || len(r) != 1 || !slices.Equal(r[0].Versions, []Ref{ref}) {
			t.Errorf("%s: %v %v", what, r, err)
		}
		_, err = s.Sweep(context.Background(), map[string][]Ref{"work": {ref}})
		check(t, err)
		content(t, receiptFile(home), string(good))
	}
}

func TestReceiptUnknownFieldsKept(t *testing.T) {
	home := tempDir(t)
	s := Open(home)
	ref := mustPut(t, s, v1(), "work")
	gone := Ref{Connector: "mail", Version: 7, Digest: strings.Repeat("0", 16)}
	write(t, receiptFile(home), fmt.Sprintf("\ufeff"+`{"format":1,"later":{"a":[1]},"connector":"mail","versions":[
		{"version":7,"digest":"%s"},{"digest":"%s","version":1,"cache":"fast"}]}`, gone.Digest, ref.Digest))
	r, err := s.Receipts()
	if err != nil || len(r) != 1 || !slices.Equal(r[0].Versions, []Ref{ref}) { // version 7 has no folder
		t.Errorf("%v %v", r, err)
	}
	mustPut(t, s, v2(), "work")
	data, err := os.ReadFile(receiptFile(home))
	check(t, err)
	want := fmt.Sprintf(`{
  "connector": "mail",
  "format": 1,
  "later": {
    "a": [
      1
    ]
  },
  "versions": [
    {
      "cache": "fast",
      "digest": "%s",
      "version": 1
    },
    {
      "digest": "%s",
      "version": 2
    }
  ]
}
`, ref.Digest, v2().ref().Digest)
	if string(data) != want {
		t.Errorf("wrote %s", data)
	}
}

func TestReceiptNewer(t *testing.T) {
	home := tempDir(t)
	s := Open(home)
	mustPut(t, s, v1(), "work")
	other := v1()
	other.id = "chat"
	mustPut(t, s, other, "chat")
	write(t, receiptFile(home), `{"format":2,"odd":true}`)
	before := snapshot(t, home)

	want := fmt.Sprintf(`reading receipt "mail": %q has format 2; this program knows formats up to 1: it was written by a newer version`, receiptFile(home))
	var newer *NewerError
	r, err := s.Receipts()
	if err == nil || err.Error() != want || !errors.As(err, &newer) || newer.Format != 2 {
		t.Errorf("%v, want %s", err, want)
	}
	if len(r) != 1 || r[0].Connector != "chat" {
		t.Errorf("the others: %v", r)
	}
	if err := put(s, v2(), "work", nil, nil, nil); !errors.As(err, &newer) {
		t.Errorf("installed: %v", err)
	}
	same(t, "refused", snapshot(t, home), before)
	removed, err := s.Sweep(context.Background(), map[string][]Ref{"work": {v1().ref()}})
	if !errors.As(err, &newer) || !slices.Contains(removed, "connectors/chat/"+other.ref().Dir()) {
		t.Errorf("swept %v %v", removed, err)
	}
	clean(t, s, v1(), "work")
	content(t, receiptFile(home), `{"format":2,"odd":true}`)
}

func TestReceiptUnsafe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	home := tempDir(t)
	s := Open(home)
	mustPut(t, s, v1(), "work")
	moved := filepath.Join(tempDir(t), "mail.json")
	check(t, os.Rename(receiptFile(home), moved))
	check(t, os.Symlink(moved, receiptFile(home)))
	var unsafe *atomicfile.UnsafeError
	if _, err := s.Receipts(); !errors.As(err, &unsafe) {
		t.Errorf("a linked receipt: %v", err)
	}
	check(t, os.Remove(receiptFile(home)))
	check(t, os.Rename(moved, receiptFile(home)))
	check(t, os.Chmod(receiptFile(home), 0o666))
	if err := put(s, v2(), "work", nil, nil, nil); !errors.As(err, &unsafe) {
		t.Errorf("a receipt that others can write: %v", err)
	}
}

func FuzzReceipt(f *testing.F) {
	for _, seed := range []string{
		`{"format":1,"connector":"mail","versions":[{"version":1,"digest":"0123456789abcdef"}]}`,
		`{"format":1,"connector":"mail","versions":[{"version":2,"digest":"0123456789abcdef","x":{}},{"version":1,"digest":"0123456789abcdef"}],"y":[null]}`,
		`{"format":1,"connector":"mail","versions":[]}`, `{"format":2}`, `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		r, err := parseReceipt("mail", src)
		if err != nil {
			return
		}
		out, err := r.marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseReceipt("mail", out)
		if err != nil || !slices.Equal(again.Versions, r.Versions) {
			t.Fatalf("%q became %q: %v", src, out, err)
		}
		for _, ref := range r.Versions {
			if err := ref.valid(); err != nil {
				t.Fatal(err)
			}
		}
		twice, err := again.marshal()
		if err != nil || string(twice) != string(out) {
			t.Fatalf("%q became %q", out, twice)
		}
	})
}

package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"skald-connectors/fetch/trust"
)

// TestSideFileFormat holds the bytes of a side file to those that earlier versions wrote: they lie in caches.
func TestSideFileFormat(t *testing.T) {
	for n, want := range map[int]string{0: "28c5eea399559ba6", 1: "582058bb1da95da5", 700: "616a2104e40983aa", 5000: "d3ddfcde5ce243d9"} {
		sum := sha256.Sum256(built(t, syntheticIndex(n)))
		if got := hex.EncodeToString(sum[:8]); got != want {
			t.Errorf("%d entries: %s, want %s", n, got, want)
		}
	}
}

func TestSideIsOfTheJudgedBytesOnly(t *testing.T) {
	body := syntheticIndex(900)
	digest, size := sha256.Sum256(body), int64(len(body))
	other := bytes.Replace(body, []byte(syntheticID(500)), []byte(syntheticID(501)), 1)
	for name, r := range map[string]io.Reader{
		"other bytes": bytes.NewReader(other),
		"fewer":       bytes.NewReader(body[:size-1]),
		"more":        io.MultiReader(bytes.NewReader(body), strings.NewReader(" ")),
		"none":        strings.NewReader(""),
		"no index":    strings.NewReader("<html>"),
	} {
		if _, _, err := buildSide(r, size, digest, false); err != errDamaged {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := errors.New("broken")
	if _, _, err := buildSide(io.MultiReader(bytes.NewReader(body[:size/2]), iotest.ErrReader(broken)), size, digest, true); err != broken {
		t.Error(err)
	}
	if s, _, err := buildSide(iotest.HalfReader(bytes.NewReader(body)), size, digest, true); err != nil || !bytes.Equal(s.bytes(), built(t, body)) {
		t.Errorf("in small pieces: %v", err)
	}
}

// TestStrictSideTellsTheFirstFault: many batches, so that several processors find a fault.
func TestStrictSideTellsTheFirstFault(t *testing.T) {
	body := syntheticIndex(3000)
	for _, i := range []int{2900, 1700, 600} {
		body = bytes.Replace(body, fmt.Appendf(nil, `{"id": %q`, syntheticID(i)), fmt.Appendf(nil, `{"Id": 1, "id": %q`, syntheticID(i)), 1)
	}
	_, _, err := buildSideOf(body, true)
	var refused *BrokenError
	at := fmt.Sprintf("the entry at byte %d has the member ", bytes.Index(body, []byte(`{"Id": 1`)))
	if !errors.As(err, &refused) || !strings.HasPrefix(refused.Reason, at) {
		t.Errorf("%v; want %s", err, at)
	}
	if _, _, err := buildSideOf(body, false); err != nil {
		t.Error(err)
	}
	// What is wrong with the document as a whole comes before its entries.
	if _, _, err := buildSideOf(append(body, '{'), true); err == nil || !strings.Contains(err.Error(), "data after the document") {
		t.Error(err)
	}
}

func TestSideGivesTheHead(t *testing.T) {
	const before, after = "{\"type\": \"skald.index/v1\", \"connectors\": [\n", " ], \"seq\": 7}"
	_, head, err := buildSideOf([]byte(before+`{"id": "a"}, {"id": "b"}`+after), true)
	if got := strings.Join(strings.Fields(string(head)), " "); err != nil || got != `{"type": "skald.index/v1", "connectors": [], "seq": 7}` && got != `{"type": "skald.index/v1", "connectors": [ ], "seq": 7}` {
		t.Errorf("%q, %v", head, err)
	}
	_, head, err = buildSideOf([]byte(`{"pad": "`+strings.Repeat("x", trust.MaxHeadBytes)+`", "connectors": [{}]}`), false)
	if err != nil || len(head) != trust.MaxHeadBytes+1 {
		t.Errorf("%d bytes of a long head, %v", len(head), err)
	}
}

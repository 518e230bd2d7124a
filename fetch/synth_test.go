package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// syntheticIndex is an index of n entries of about 1,180 bytes, with words of a skewed frequency.
func syntheticIndex(n int) []byte {
	var b bytes.Buffer
	b.Grow(n * 1240)
	b.WriteString("{\n  \"version\": 1,\n  \"connectors\": [\n")
	for i := range n {
		if i > 0 {
			b.WriteString(",\n")
		}
		syntheticEntry(&b, i)
	}
	b.WriteString("\n  ]\n}\n")
	return b.Bytes()
}

var syntheticWords = strings.Fields("mail calendar search notes tasks weather maps music video chat code review deploy logs metrics alerts " +
	"invoice ledger wiki docs sheet slides photo scan print translate summarise remind schedule travel hotel flight train")

func syntheticID(i int) string { return fmt.Sprintf("connector-%06d", i) }

func syntheticEntry(b *bytes.Buffer, i int) {
	w := func(k int) string { return syntheticWords[(i*7+k*13+i/37)%len(syntheticWords)] }
	fmt.Fprintf(b, `    {"id": %q, "folder": %q, "name": "%s %s %d", "type": "mcp_local", "scope": "user",`, syntheticID(i), syntheticID(i), w(1), w(2), i)
	fmt.Fprintf(b, ` "icon_small": "%s/icon_sm.svg", "icon_large": "%s/icon_lg.svg",`, syntheticID(i), syntheticID(i))
	fmt.Fprintf(b, ` "user_description": "Lets an agent work with %s, %s and %s of service %d, with care for %s.",`, w(3), w(4), w(5), i%977, w(6))
	fmt.Fprintf(b, ` "requires": ["API_KEY", "PYTHON"], "tags": [%q, %q, "mcp", "local"],`, w(1), w(7))
	fmt.Fprintf(b, ` "auth": {"type": "api_key", "delivery": "env", "param": "SERVICE_KEY"}, "version": %d, "version_string": "1.%d.0", "version_release_date": "2026-07-19",`, i%9+1, i%9)
	b.WriteString(` "files": [`)
	for k, name := range []string{"connector.json", "server.py", "icon_lg.svg", "icon_sm.svg", "requirements.txt"} {
		if k > 0 {
			b.WriteString(", ")
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s", i, name))
		fmt.Fprintf(b, `{"path": %q, "sha256": "%s", "size": %d}`, name, hex.EncodeToString(sum[:]), 250+i%40000)
	}
	b.WriteString(`]}`)
}

func BenchmarkBuildSide(b *testing.B) {
	body := syntheticIndex(100_000)
	b.SetBytes(int64(len(body)))
	b.ReportMetric(float64(len(body))/1e6, "MB-index")
	for b.Loop() {
		built, _, err := buildSideOf(body, false)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(built))/float64(len(body)), "side/index")
	}
}

// serveBytes answers with bytes that are not copied.
func serveBytes(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.(*recorder).body = body
	}
}

// A recorder is the answer of a handler that runs without a network.
type recorder struct {
	header http.Header
	code   int
	body   []byte
}

func newRecorder() *recorder                    { return &recorder{header: http.Header{}, code: 200} }
func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(code int)        { r.code = code }
func (r *recorder) Write(p []byte) (int, error) { r.body = append(r.body, p...); return len(p), nil }
func (r *recorder) Result(q *http.Request) *http.Response {
	return &http.Response{StatusCode: r.code, Header: r.header, Body: io.NopCloser(bytes.NewReader(r.body)), ContentLength: int64(len(r.body)), Request: q}
}

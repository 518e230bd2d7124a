package launch

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"skald-connectors/keystore"
)

func TestFirst(t *testing.T) {
	cr, cw := io.Pipe()
	or, ow := io.Pipe()
	ur, uw := io.Pipe()
	vr, vw := io.Pipe()
	var log bytes.Buffer
	go func() {
		sc := bufio.NewScanner(ur)
		for sc.Scan() {
			t.Log("up got", sc.Text())
			if strings.Contains(sc.Text(), "initialize\"") {
				io.WriteString(vw, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`+"\n")
			}
			if strings.Contains(sc.Text(), "tools/call") {
				io.WriteString(vw, `{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`+"\n")
			}
		}
		vw.Close()
	}()
	s := New(Options{Name: "x", Connector: "x", Client: cr, Out: ow, Log: &log, Now: time.Now, Redactor: keystore.NewRedactor(nil),
		Upstream: &Upstream{Input: uw, Output: vr, Stop: func() { uw.Close() }}})
	go func() {
		sc := bufio.NewScanner(or)
		for sc.Scan() {
			t.Log("client got", sc.Text())
		}
	}()
	go func() {
		io.WriteString(cw, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`+"\n")
		io.WriteString(cw, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`+"\n")
		cw.Close()
	}()
	t.Log(s.Run(context.Background()))
	t.Log(log.String())
}

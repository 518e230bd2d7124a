package launch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"skald-connectors/keystore"
)

// Several processes are this test binary under another role.
const roleVariable = "SKALD_LAUNCH_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role, arg, _ := strings.Cut(os.Getenv(roleVariable), " "); role {
	case "echo":
		echoServer(os.Stdin, os.Stdout)
	case "relay":
		relay()
	case "filter":
		n, _ := strconv.Atoi(arg)
		filter(n)
	default:
		os.Exit(m.Run())
	}
}

// echoServer is a trivial MCP server: a call of "big" answers with 1 MiB, one of "burst N" is
// preceded by N notifications.
func echoServer(r io.Reader, w io.Writer) {
	in := bufio.NewReaderSize(r, 1<<16)
	big := strings.Repeat("Lorem ipsum dolor sit amet, consectetur. ", 1<<20/41)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		text := string(line)
		_, id, _ := strings.Cut(text, `"id":`)
		id = id[:strings.IndexAny(id+",", ",}")]
		switch {
		case strings.Contains(text, `"initialize"`):
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}}`+"\n", id)
		case strings.Contains(text, `"big"`):
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`+"\n", id, big)
		case strings.Contains(text, `"huge"`):
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
			for range 32 {
				io.WriteString(w, big)
			}
			io.WriteString(w, `"}]}}`+"\n")
		case strings.Contains(text, `"burst`):
			burst(w, text, id)
		case id != "":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"pong"}]}}`+"\n", id)
		}
	}
}

func burst(w io.Writer, text, id string) {
	_, count, _ := strings.Cut(text, `"n":`)
	n, _ := strconv.Atoi(count[:strings.IndexAny(count, "},")])
	batched := strings.Contains(text, `"burst-batched"`)
	out := bufio.NewWriterSize(w, 1<<16)
	for i := range n {
		fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":%d,"message":"working on it"}}`+"\n", i)
		if !batched {
			out.Flush()
		}
	}
	fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", id)
	out.Flush()
}

// relay copies bytes both ways between its own streams and a server's.
func relay() {
	up := startEcho()
	go func() {
		io.Copy(struct{ io.Writer }{up.stdin}, struct{ io.Reader }{os.Stdin})
		up.stdin.Close()
	}()
	io.Copy(struct{ io.Writer }{os.Stdout}, struct{ io.Reader }{up.stdout})
}

// filter is the launcher's filter with n secrets.
func filter(n int) {
	up := startEcho()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := New(Options{Name: "bench", Connector: "bench", Client: os.Stdin, Out: os.Stdout, Log: io.Discard, Receipts: io.Discard,
		Now: time.Now, Redactor: keystore.NewRedactor(secrets(n)),
		Upstream: &Upstream{Input: up.stdin, Output: up.stdout, Stop: func() { up.stdin.Close(); up.cmd.Wait() }}})
	if f := os.Getenv("SKALD_LAUNCH_TEST_PROFILE"); f != "" {
		out, _ := os.Create(f)
		pprof.StartCPUProfile(out)
		defer pprof.StopCPUProfile()
	}
	s.Run(ctx)
}

// secrets gives n values of 40 characters.
func secrets(n int) (hs []keystore.Handle) {
	for i := range n {
		value := fmt.Sprintf("sk-%03d-%s", i, strings.Repeat(string(rune('A'+i%26))+"x7"+string(rune('a'+i/26)), 8))
		hs = append(hs, keystore.Handle{Name: fmt.Sprintf("KEY_%d", i), Value: keystore.NewSecret(value), Secret: true})
	}
	return hs
}

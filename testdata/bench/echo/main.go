// Command echo is a trivial MCP server for benchmarks: a call of "big" answers with
// 1 MiB, one of "huge" with 32 MiB, one of "burst" or "burst-batched" is preceded by
// as many notifications as its argument "n" says, written one by one or together.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

func main() {
	w := os.Stdout
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
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

// Command python3 stands in for the interpreter where a test starts the servers of its
// marketplace a thousand times: it says where it is and which version it is, as it is
// asked by activate, and does what the server.py and verify.py of
// cmd/skald-connectors/testdata/market do. It runs nothing else.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// right is the digest of the right password, as in verify.py.
const right = "4104d36f8da2c254349f85836793ebe029e0c957063a34c91c2e9203187b5631"

func main() {
	switch self, err := os.Executable(); {
	case err != nil || len(os.Args) < 2:
		os.Exit(2)
	case os.Args[1] == "-I":
		fmt.Printf("%s\n3.13.0\n", self)
	case !there(os.Args[1]): // the shipped file is what runs
		fmt.Fprintf(os.Stderr, "can't open file %q\n", os.Args[1])
		os.Exit(2)
	case filepath.Base(os.Args[1]) == "verify.py":
		verify()
	case filepath.Base(os.Args[1]) == "server.py":
		serve()
	default:
		os.Exit(2)
	}
}

func there(path string) bool {
	data, err := os.ReadFile(path)
	return err == nil && len(data) > 0
}

func verify() {
	sum := sha256.Sum256([]byte(os.Getenv("MAIL_PASSWORD")))
	if hex.EncodeToString(sum[:]) != right {
		fmt.Println(`{"ok": false, "message": "the server refused the password"}`)
		os.Exit(1)
	}
	fmt.Println(`{"ok": true, "message": "signed in"}`)
}

func serve() {
	tools := json.RawMessage(`{"tools":[{"name":"echo","title":"Echo","description":"Says it again.","inputSchema":{"type":"object"}},` +
		`{"name":"send_it","description":"Sends it.","inputSchema":{"type":"object"}}]}`)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var msg struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version   string            `json:"protocolVersion"`
				Arguments map[string]string `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &msg) != nil || msg.ID == nil {
			continue
		}
		var result any = tools
		switch msg.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": msg.Params.Version, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]string{"name": "test", "version": "1"}}
		case "tools/call":
			result = map[string]any{"content": []map[string]string{{"type": "text", "text": msg.Params.Arguments["text"]}}}
		}
		reply, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": msg.ID, "result": result})
		if err != nil {
			os.Exit(1)
		}
		fmt.Printf("%s\n", reply)
	}
}

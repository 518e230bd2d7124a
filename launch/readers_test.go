package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// otherReaders print, for each line on their input, what they take for the
// method and the tool.
var otherReaders = map[string][]string{
	"python3": {"-c", `
import json, sys
for line in sys.stdin.buffer:
    m = json.loads(line.decode("utf-8"))
    p = m.get("params")
    print(json.dumps([m.get("method"), p.get("name") if isinstance(p, dict) else None]))`},
	"node": {"-e", `
for (const line of require("fs").readFileSync(0, "utf8").split("\n")) {
  if (line.trim() === "") continue
  const m = JSON.parse(line), p = m.params
  console.log(JSON.stringify([m.method ?? null, p !== null && typeof p === "object" && !Array.isArray(p) ? p.name ?? null : null]))
}`},
}

// forwardedLines are calls in many spellings, of which those that pass are given
// with the tool that the scope check saw.
func forwardedLines(t *testing.T) (lines []string, tools []string) {
	client, _, _ := quietSession(t, 0)
	client.s.tools.set(Grant{Deny: []string{"other"}})
	names := []string{`"name"`, `"n\u0061me"`, `"Name"`, `"NAME"`, `"\u006e\u0061\u006d\u0065"`, `"name\u0000"`}
	values := []string{`"small"`, `"sm\u0061ll"`, `"other"`, `"oth\u0065r"`, `"ſmall"`, `"\ud83d\ude00"`, `"a\/b"`, `["other"]`, `null`, `1e400`}
	shapes := []string{
		`{"jsonrpc":"2.0","id":%[3]d,"method":"tools/call","params":{%[1]s:%[2]s}}`,
		`{"params":{%[1]s:%[2]s},"method":"tools\/call","id":%[3]d}`,
		`{"jsonrpc":"2.0","id":%[3]d,"method":"tools/call","params":{"name":"small",%[1]s:%[2]s}}`,
		`{"jsonrpc":"2.0","id":%[3]d,"method":"tools/call","params":{%[1]s:%[2]s},"Params":{"name":"small"}}`,
		`{"jsonrpc":"2.0","id":%[3]d,"meth\u006fd":"tools/call","params":{"arguments":{"name":"other"},%[1]s:%[2]s}}`,
		"\t" + `{ "id" :%[3]d , "method":"tools/call" , "params" : { %[1]s : %[2]s } } ` + "\r",
	}
	for i, shape := range shapes {
		for j, name := range names {
			for k, value := range values {
				line := fmt.Sprintf(shape, name, value, 10_000*i+100*j+k)
				client.fromClient([]byte(line + "\n"))
				if client.pass {
					tool, _ := client.scanner.text(client.line, fieldName)
					lines, tools = append(lines, line), append(tools, string(tool))
				}
			}
		}
	}
	return lines, tools
}

func TestReadersOfOtherLanguagesAgree(t *testing.T) {
	lines, tools := forwardedLines(t)
	if len(lines) < 40 {
		t.Fatalf("only %d lines pass", len(lines))
	}
	for program, arguments := range otherReaders {
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				if os.Getenv("SKALD_TEST_REQUIRE") != "" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			cmd := exec.Command(program, arguments...)
			cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			seen := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
			if len(seen) != len(lines) {
				t.Fatalf("%d lines read, %d sent", len(seen), len(lines))
			}
			for i, line := range lines {
				var pair [2]*string
				if err := json.Unmarshal(seen[i], &pair); err != nil {
					t.Fatal(err)
				}
				if pair[0] == nil || *pair[0] != "tools/call" || pair[1] == nil || *pair[1] != tools[i] {
					t.Errorf("%s: the scope check saw %q, %s sees %s", line, tools[i], program, seen[i])
				}
			}
		})
	}
}

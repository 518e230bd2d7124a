package main

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// googleDouble plays Google's sign-in and the three APIs; with an address as its argument it is the browser.
const googleDouble = "../../connectors/tests/google_double.py"

// google: starts the double for as long as the script runs. GOOGLE is its address, GOOGLE_HOST the same as HOST:PORT,
// GOOGLE_ID and GOOGLE_SECRET a client of it, GOOGLE_TOKEN the refresh token that it will give; BROWSER goes to any
// address and consents.
func cmdGoogle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: google")
	}
	python, err := exec.LookPath("python3")
	ts.Check(err)
	double, err := filepath.Abs(googleDouble)
	ts.Check(err)
	cmd := exec.Command(python, "-B", double)
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() { _, _ = in.Close(), cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	var said struct {
		URL        string
		ID         string `json:"client_id"`
		Secret     string `json:"client_secret"`
		Credential struct {
			Token string `json:"refresh_token"`
		}
	}
	ts.Check(json.Unmarshal([]byte(line), &said))
	for name, value := range map[string]string{
		"GOOGLE": said.URL, "GOOGLE_HOST": strings.TrimPrefix(said.URL, "http://"), "GOOGLE_ID": said.ID, "GOOGLE_SECRET": said.Secret,
		"GOOGLE_TOKEN": said.Credential.Token, "BROWSER": python + " -B " + double,
	} {
		ts.Setenv(name, value)
	}
}

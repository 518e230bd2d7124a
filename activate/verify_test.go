package activate

import (
	"strings"
	"testing"
	"time"

	"skald-connectors/keystore"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

func TestJudge(t *testing.T) {
	tests := []struct {
		name    string
		res     sandbox.Result
		ok      bool
		message string
	}{
		{"one object", sandbox.Result{Stdout: []byte(`{"ok":true,"message":"fine"}`)}, true, "fine"},
		{"last line counts", sandbox.Result{Stdout: []byte("noise\n{\"ok\":false,\"message\":\"a\"}\n{\"ok\":true,\"message\":\"b\"}\n")}, true, "b"},
		{"noise after it", sandbox.Result{Stdout: []byte("{\"ok\":true,\"message\":\"b\"}\nbye\n")}, true, "b"},
		{"over many lines", sandbox.Result{Stdout: []byte("{\n \"ok\": true,\n \"message\": \"wide\"\n}\n")}, true, "wide"},
		{"ok with a bad exit", sandbox.Result{Stdout: []byte(`{"ok":true,"message":"x"}`), Code: 1}, false, "it reported success and ended with exit code 1"},
		{"ok with a signal", sandbox.Result{Stdout: []byte(`{"ok":true}`), Code: -1, Signal: "SIGKILL"}, false, "it reported success and ended with signal SIGKILL"},
		{"not ok with exit 0", sandbox.Result{Stdout: []byte(`{"ok":false,"message":"no"}`)}, false, "no"},
		{"ok is no boolean", sandbox.Result{Stdout: []byte(`{"ok":"true","message":"x"}`), Code: 2}, false, `{"ok":"true","message":"x"}`},
		{"ok twice", sandbox.Result{Stdout: []byte(`{"ok":false,"ok":true}`), Code: 0}, true, `{"ok":false,"ok":true}`},
		{"plain success", sandbox.Result{Stdout: []byte("all good\n")}, true, "all good"},
		{"plain failure says stderr", sandbox.Result{Stderr: []byte("boom\n"), Code: 4}, false, "boom"},
		{"stdout before stderr", sandbox.Result{Stdout: []byte("out"), Stderr: []byte("err"), Code: 4}, false, "out"},
		{"silent failure", sandbox.Result{Code: 127}, false, "it ended with exit code 127 and said nothing"},
		{"silent success", sandbox.Result{}, true, "passed"},
		{"too long", sandbox.Result{TimedOut: true, Code: -1, Stdout: []byte(`{"ok":true}`)}, false, "timed out after 15 s"},
		{"message of another kind", sandbox.Result{Stdout: []byte(`{"ok":false,"message":7}`), Code: 1}, false, "it ended with exit code 1 and said nothing"},
		{"no UTF-8", sandbox.Result{Stdout: []byte("a\xffb"), Code: 1}, false, "a\uFFFDb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := judge(tt.res, 15*time.Second)
			if got.OK != tt.ok || got.Message != tt.message {
				t.Errorf("ok %v, message %q; want %v, %q", got.OK, got.Message, tt.ok, tt.message)
			}
		})
	}
}

// TestOutcomeIsSafe: what verify says is struck of the values in each of their
// encodings, made visible and cut, before anybody sees it.
func TestOutcomeIsSafe(t *testing.T) {
	secret := keystore.Handle{Name: "PW", Secret: true, Value: keystore.NewSecret("hunter2/hunter2")}
	o := Outcome{Message: "bad \x1b[31mhunter2/hunter2\x1b[0m or hunter2%2Fhunter2 " + strings.Repeat("x", 5000), Details: "{\n \"pw\": \"hunter2/hunter2\"\n}"}
	got := o.safe(keystore.NewRedactor([]keystore.Handle{secret}))
	for _, text := range []string{got.Message, got.Details} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "\x1b") {
			t.Errorf("unsafe: %q", text)
		}
	}
	if len(got.Message) > verifyMessage+8 {
		t.Errorf("the message has %d bytes", len(got.Message))
	}
	if !strings.Contains(got.Details, "\n") {
		t.Error("the details lost their lines")
	}
}

func TestVerifyScriptsMustBePinned(t *testing.T) {
	files := []manifest.File{{Path: "verify.py"}, {Path: "lib/check.sh"}}
	for command, refused := range map[string]string{
		"python3 verify.py":                      "",
		"python3 ./verify.py":                    "",
		"sh lib/check.sh --fast":                 "",
		"node -e 'import(\"x\")'":                "",
		"python3 other.py":                       "other.py",
		"python3 ../verify.py":                   "../verify.py",
		"sh /tmp/x.sh":                           "/tmp/x.sh",
		"true":                                   "",
		"python3 evil.py; true":                  "evil.py",
		"cd lib && sh check2.sh":                 "check2.sh",
		"FILE=x.js node -e 'import(\"./y.js\")'": "x.js",
		"(python3 verify.py)":                    "",
	} {
		err := checkScript(&manifest.Manifest{ID: "c", Verify: &manifest.Verify{Command: command}}, files)
		switch {
		case refused == "" && err != nil:
			t.Errorf("%s: %v", command, err)
		case refused != "" && (err == nil || err.Error() != `verify of "c" names the script "`+refused+`", which is not among its pinned files`):
			t.Errorf("%s: %v", command, err)
		}
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte(`{"ok":true,"message":"m","details":{"a":[1]}}`))
	f.Add([]byte("noise\n{\"ok\":false}"))
	f.Fuzz(func(t *testing.T, out []byte) {
		got := judge(sandbox.Result{Stdout: out, Code: 1}, time.Second)
		if got.OK {
			t.Fatalf("passed with exit code 1: %q", out)
		}
	})
}

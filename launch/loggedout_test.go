package launch

import "testing"

func TestSaysLoggedOut(t *testing.T) {
	for line, want := range map[string]bool{
		`{"result":{"structuredContent":{"state":"logged_out"}}}`:                               true,
		`{"result":{"structuredContent":{"state":"need_scan","qr":"x"}}}`:                       true,
		`{"result":{"structuredContent":{"state":"ready"}}}`:                                    false,
		`{"result":{"structuredContent":{"state":"connecting"}}}`:                               false,
		`{"result":{"content":[{"type":"text","text":"{\"state\":\"need_scan\"}"}]}}`:           true,
		`{"result":{"content":[{"type":"text","text":"{\"state\":\"ready\"}"}]}}`:               false,
		`{"result":{"content":[{"type":"text","text":"logged_out"}]}}`:                          false,
		`{"result":{"structuredContent":{"state":1},"content":[{"text":"{\"state\":\"x\"}"}]}}`: false,
		`nonsense`: false,
	} {
		if got := saysLoggedOut([]byte(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

//go:build unix

package form

import (
	"testing"

	"skald-connectors/manifest"
)

func TestFillTyped(t *testing.T) {
	c := start(t, script{Term: "xterm-256color", Fields: []scripted{
		{Field: manifest.Field{Name: "HOST", Label: "Mail server", Required: true, Example: "imap.example.org"}},
		{Field: manifest.Field{Name: "KEY", Label: "API key", Required: true, Secret: true}},
	}}, 80, 24)
	c.steps("such as imap.example.org", "mail.test", "mail.test", "\r", "2 of 2", "canary-secret-1", "15 characters", "\r")
	out := c.finish()
	if out.Err != "" || out.Values["HOST"] != "mail.test" || out.Values["KEY"] != "canary-secret-1" {
		t.Errorf("outcome %+v", out)
	}
	c.hidden("canary-secret-1")
	if s := c.text(); s != "" {
		t.Errorf("left on the screen:\n%s", s)
	}
}

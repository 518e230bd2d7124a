package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"skald-connectors/launch"
)

// TestLastWords: what a person reads when a launcher is lost, or when a session cannot
// go on behind its client (launcher.md sections 4 and 6).
func TestLastWords(t *testing.T) {
	var errs bytes.Buffer
	a := &app{stderr: &errs}
	lost := &lostError{name: "mail", err: errors.New("connector.internal: mail: the connector ended"), code: exitConnector,
		tail: []string{"mail: cannot open the thing", "mail: giving up"}}
	if code := a.finish(&exitError{statusCode(lost), lost}); code != exitConnector {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{"asking \"mail\": connector.internal", "\nthe last lines that it wrote:\n", "cannot open the", "mail: giving up\n"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("no %q in %s", want, errs.String())
		}
	}

	errs.Reset()
	a.serving = "mail"
	s := &served{app: a, name: "mail"}
	out := launch.Outcome{Cause: launch.RestartClient, Detail: "the connector speaks another protocol version than the one that this session began with"}
	if code := a.finish(s.ended(context.Background(), out)); code != exitConnector {
		t.Errorf("exit %d", code)
	}
	if got := errs.String(); strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "; restart the client, so that it begins a new session\n") {
		t.Errorf("stderr %q", got)
	}
}

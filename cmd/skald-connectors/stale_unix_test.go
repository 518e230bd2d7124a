//go:build unix

package main

import (
	"errors"
	"io"
	"testing"
	"time"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/connectors"
)

// TestPlanOfWhatAnotherCommandChanges: an upgrade whose connector another command changes or removes while it plans does not
// call the files of the version that is gone changed.
func TestPlanOfWhatAnotherCommandChanges(t *testing.T) {
	p := newPlace(t)
	p.do("install", "plain", "--yes")
	a := &app{environ: p.env, stdin: nil, stdout: io.Discard, stderr: io.Discard, homeFlag: p.home,
		hooks: hooks{now: time.Now, builtin: connectors.Tree(), keychain: noKeychain{}, work: testWork}}
	act, rec, err := a.openInstalled("plain")
	if err != nil {
		t.Fatal(err)
	}
	old := *rec
	old.Digest = "0000000000000000" + old.Digest[16:] // its folder was swept when the present one came
	var stale *activate.StaleError
	if _, err := act.PlanUpgrade(t.Context(), &old, nil, activate.PlanOptions{}); !errors.As(err, &stale) || classifyOnly(err) != exitUsage {
		t.Errorf("changed: %v", err)
	}
	p.do("uninstall", "plain")
	var gone *record.NotInstalledError
	if _, err := act.PlanUpgrade(t.Context(), rec, nil, activate.PlanOptions{}); !errors.As(err, &gone) || classifyOnly(err) != exitNotFound {
		t.Errorf("removed: %v", err)
	}
}

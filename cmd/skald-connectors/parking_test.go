package main

import (
	"fmt"
	"testing"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
)

// A session that was parked already says as well that its connector is gone, and advises nothing that cannot help.
func TestParkedAndUninstalled(t *testing.T) {
	start := &activate.Start{Record: &record.Record{Name: "mail"}, State: record.Pending}
	p := parkingOf(start, fmt.Errorf("preparing: %w", &record.NotInstalledError{Name: "mail"}))
	if want := "connector mail was uninstalled"; p.Message != want || p.State != "unauthorized" {
		t.Errorf("%q (%s), want %q", p.Message, p.State, want)
	}
}

package activate

import (
	"context"

	"skald-connectors/activate/record"
)

// onRecord runs do on an installed activation while no other process works on it.
func (a *Activator) onRecord(ctx context.Context, name string, do func(present *record.Record) error) error {
	if _, err := a.Records().Read(name); err != nil {
		return err
	}
	unlock, err := a.lockName(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	present, err := a.Records().Read(name)
	if err != nil {
		return err
	}
	a.payOwed(ctx, name)
	return do(present)
}

// rewrite writes a changed copy of a record under the commit lock, and gives it. The
// caller holds the lock of the name. What the change itself puts on disk is there
// before the record names it; its error leaves the record as it is.
func (a *Activator) rewrite(ctx context.Context, present *record.Record, step string, change func(next *record.Record) error) (*record.Record, error) {
	unlock, err := a.lockCommit(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	next := *present
	if err := change(&next); err != nil {
		return nil, err
	}
	next.UpdatedAt = a.Now().UTC()
	a.step(step)
	if err := a.Records().Write(&next); err != nil {
		return nil, err
	}
	return &next, nil
}

// writeRecord is the step before a record alone is replaced.
const writeRecord = "write-record"

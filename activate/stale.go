package activate

import (
	"errors"
	"fmt"

	"skald-connectors/activate/record"
)

// StaleError says that an activation is no longer what a plan was made for.
type StaleError struct{ Name string }

func (e *StaleError) Error() string {
	return fmt.Sprintf("upgrading %q: another command changed it meanwhile", e.Name)
}

// stale tells whether another command changed or removed an activation since its record was read: then that is why
// something of it could not be read. Errors: *StaleError, *record.NotInstalledError.
func (a *Activator) stale(rec *record.Record) error {
	now, err := a.Records().Read(rec.Name)
	var gone *record.NotInstalledError
	switch {
	case errors.As(err, &gone):
		return err
	case err == nil && now.Ref() != rec.Ref():
		return &StaleError{Name: rec.Name}
	}
	return nil // a record that cannot be read is for others to say
}

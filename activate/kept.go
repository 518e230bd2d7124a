package activate

import (
	"fmt"
	"strings"
)

// keptFor is what data is kept for: a connector of a marketplace. A session of it is no business of another one's connector that
// has the same name.
func keptFor(connector, marketplace string) string { return connector + "\n" + marketplace }

// keptForOf is keptFor for an activation. Where its record cannot be read nobody can say, and nothing is given that data again.
func (a *Activator) keptForOf(name string) string {
	rec, err := a.Records().Read(name)
	if err != nil {
		return keptFor("", "")
	}
	return keptFor(rec.Connector, rec.Index.URL)
}

// KeptError says that the data which is kept under a name is another connector's.
type KeptError struct{ Name, Connector, Marketplace string }

func newKeptError(name, was string) error {
	connector, marketplace, _ := strings.Cut(was, "\n")
	return &KeptError{Name: name, Connector: connector, Marketplace: marketplace}
}

func (e *KeptError) Error() string {
	if e.Connector == "" {
		return fmt.Sprintf("installing %q: data is kept under this name, and whose it is cannot be told", e.Name)
	}
	return fmt.Sprintf("installing %q: data is kept under this name, of %q from %s", e.Name, e.Connector, e.Marketplace)
}

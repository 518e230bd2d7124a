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
type KeptError struct {
	Name, Connector, Marketplace string
	// Unvouched: it would be its own, if a bundle file that nobody signed is from where it says.
	Unvouched bool
}

// keptData tells whether data is kept under the name of a plan, or refuses the plan where that is not for its connector.
func (a *Activator) keptData(p *Plan) (kept bool, err error) {
	was, kept := a.Store.Kept(p.Name)
	trust := p.Index.Trust()
	unvouched := trust.Bundled && !trust.Signed
	if !kept || was == keptFor(p.Entry.ID, p.Index.Location()) && !unvouched {
		return kept, nil
	}
	connector, marketplace, _ := strings.Cut(was, "\n")
	return true, &KeptError{Name: p.Name, Connector: connector, Marketplace: marketplace, Unvouched: unvouched}
}

func (e *KeptError) Error() string {
	if e.Connector == "" {
		return fmt.Sprintf("installing %q: data is kept under this name, and whose it is cannot be told", e.Name)
	}
	said := fmt.Sprintf("installing %q: data is kept under this name, of %q from %s", e.Name, e.Connector, e.Marketplace)
	if e.Unvouched {
		said += ", and nobody signed that the bundle is from there"
	}
	return said
}

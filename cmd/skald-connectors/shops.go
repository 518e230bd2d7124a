package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"skald-connectors/fetch"
	"skald-connectors/manifest"
)

// single is the one marketplace where there is only one.
func (s *shops) single() bool { return len(s.open) == 1 && len(s.closed) == 0 }

// lookup finds the connector that a person names: by its id, or by marketplace
// and id (acme/gmail) where several have that id. Nobody chooses for them: an
// id that two marketplaces have, or that one which cannot be read may have, has
// to be named in full.
func (s *shops) lookup(name string) (*shop, manifest.Entry, error) {
	if market, id, qualified := strings.Cut(name, "/"); qualified {
		for _, one := range s.open {
			if one.name == market || s.single() && one.named(market) {
				e, err := one.index.Lookup(id)
				return one, e, err
			}
		}
		if slices.Contains(s.closed, market) {
			return nil, manifest.Entry{}, &exitError{exitFailed, fmt.Errorf("the marketplace %q cannot be read", market)}
		}
		return nil, manifest.Entry{}, withHint(&exitError{exitNotFound, fmt.Errorf("there is no marketplace %q", market)}, "see %s marketplace list", program)
	}
	var found []*shop
	var only manifest.Entry
	var broken error
	var missing error
	for _, one := range s.open {
		e, err := one.index.Lookup(name)
		var gone *fetch.NotFoundError
		switch {
		case errors.As(err, &gone):
			missing = gone
		default: // also one that is broken there: it has that id
			found, only, broken = append(found, one), e, err
		}
	}
	switch {
	case len(found) == 1 && len(s.closed) == 0:
		return found[0], only, broken
	case len(found) == 1:
		return nil, manifest.Entry{}, withHint(usagef("the marketplace %s cannot be read, and may have a connector %q too", strings.Join(s.closed, ", "), name),
			"say which one is meant: %s/%s", found[0].name, name)
	case len(found) > 1:
		return nil, manifest.Entry{}, withHint(usagef("%d marketplaces have a connector %q", len(found), name), "say which one is meant: %s", strings.Join(qualified(found, name), " or "))
	}
	return nil, manifest.Entry{}, missing
}

// named tells whether the only marketplace of a run is called that.
func (s *shop) named(name string) bool {
	listed, err := readPlaces(s.home)
	if err != nil {
		return false
	}
	p, ok := listed.named(name)
	return ok && p.Location == s.index.Location()
}

func qualified(found []*shop, id string) []string {
	names := make([]string, len(found))
	for i, s := range found {
		names[i] = s.name + "/" + id
	}
	return names
}

// home is the home of all of them.
func (s *shops) home() string { return s.open[0].home }

// from names them in words.
func (s *shops) from() string {
	names := make([]string, len(s.open))
	for i, one := range s.open {
		names[i] = one.from()
	}
	return strings.Join(names, ", ")
}

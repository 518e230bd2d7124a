package main

import (
	"context"
	"errors"
	"fmt"

	"skald-connectors/fetch"
)

// builtinLocation is the marketplace inside the program.
const builtinLocation = "builtin"

// shop is an opened marketplace with its index.
type shop struct {
	market *fetch.Marketplace
	index  *fetch.Index
	home   string
}

// from names the marketplace in words.
func (s *shop) from() string { return marketName(s.index.Location()) }

func marketName(location string) string {
	if location == builtinLocation {
		return "the built-in catalogue"
	}
	return location
}

// openShop reads the index of the chosen marketplace. When the public one
// cannot be reached a person is offered the built-in one; nothing switches by
// itself.
func (a *app) openShop(ctx context.Context, mode fetch.Freshness) (*shop, error) {
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	location, err := a.location(home)
	if err != nil {
		return nil, err
	}
	s, err := a.readShop(ctx, home, location, mode)
	var offline *fetch.UnreachableError
	var page *fetch.WebPageError
	if err == nil || location == builtinLocation || !errors.As(err, &offline) && !errors.As(err, &page) {
		return s, err
	}
	term := a.terminal()
	if term == nil {
		return nil, err
	}
	a.clearProgress()
	yes, terr := term.Confirm(ctx, "Use the connectors that come with this program instead?", fmt.Sprintf("%v\n", err), "Use the built-in ones", "Stop")
	if terr != nil {
		return nil, terr
	}
	if !yes {
		return nil, &exitError{exitFailed, errors.New("stopped; nothing was changed")}
	}
	return a.readShop(ctx, home, builtinLocation, mode)
}

func (a *app) readShop(ctx context.Context, home, location string, mode fetch.Freshness) (*shop, error) {
	m, err := a.marketplace(location, home)
	if err != nil {
		return nil, err
	}
	ix, err := m.Index(ctx, mode)
	if err != nil {
		return nil, err
	}
	if ix.Err() != nil {
		a.say("%s cannot be reached (%v); using the index of %s", marketName(ix.Location()), ix.Err(), age(a.hooks.now(), ix.Fetched()))
	}
	return &shop{market: m, index: ix, home: home}, nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"skald-connectors/fetch"
	"skald-connectors/install"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

const (
	// publicName is what the public marketplace is called among several.
	publicName = "public"
	// marketsFormat is the format number of HOME/marketplaces.json, which this file owns.
	marketsFormat = 1
	// marketsLimit bounds that file: a hundred marketplaces with sixteen keys each stay below it.
	marketsLimit = 256 << 10
	marketsMost  = 100
)

// marketEntry is one marketplace by its name: where it is, and the keys that the
// person pinned for it.
type marketEntry struct {
	Name     string   `json:"name"`
	Location string   `json:"location"`
	Keys     []string `json:"keys,omitempty"`
	Needed   int      `json:"threshold,omitempty"`
}

// places is HOME/marketplaces.json: the marketplaces beside the public one.
// NoPublic says that the public one was removed. Members that this program does
// not know are kept.
type places struct {
	Format   int           `json:"format"`
	NoPublic bool          `json:"no_public,omitempty"`
	Listed   []marketEntry `json:"marketplaces"`

	rest map[string]json.RawMessage
}

func placesPath(home string) string { return filepath.Join(home, "marketplaces.json") }

// readPlaces reads the list; a missing file is an empty one, a damaged one is not.
func readPlaces(home string) (*places, error) {
	path := placesPath(home)
	data, err := atomicfile.Read(path, marketsLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return &places{Format: marketsFormat}, nil
	}
	p := &places{}
	if err == nil {
		err = json.Unmarshal(data, p)
	}
	if err == nil {
		err = json.Unmarshal(data, &p.rest)
	}
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of marketplaces %s: %w", path, err)
	}
	for i, m := range p.Listed { // as an earlier version, or a person, spelled it
		p.Listed[i].Location = fetch.OneLocation(m.Location)
	}
	return p, nil
}

// editPlaces changes the list, from what is on the disk now: another process may have changed it while this one asked the network.
func editPlaces(ctx context.Context, home string, change func(*places) error) error {
	path, err := install.Open(home).OwnLock("marketplaces")
	if err != nil {
		return fmt.Errorf("writing the list of marketplaces: %w", err)
	}
	unlock, err := atomicfile.Lock(ctx, path, nil)
	if err != nil {
		return fmt.Errorf("writing the list of marketplaces: %w", err)
	}
	defer unlock()
	now, err := readPlaces(home)
	if err == nil {
		err = change(now)
	}
	if err != nil {
		return err
	}
	return now.write(home)
}

func (p *places) check() error {
	if p.Format > marketsFormat {
		return fmt.Errorf("it has format %d and this program knows %d: it was written by a newer version", p.Format, marketsFormat)
	}
	if p.Format != marketsFormat {
		return errors.New("it has no format number")
	}
	seen := map[string]bool{}
	for _, m := range p.Listed {
		switch {
		case manifest.ValidID(m.Name) != nil:
			return fmt.Errorf("%q is not a name", m.Name)
		case seen[m.Name] || m.Name == builtinLocation:
			return fmt.Errorf("the name %q stands there twice, or is taken", m.Name)
		case m.Location == "":
			return fmt.Errorf("%q has no location", m.Name)
		}
		seen[m.Name] = true
	}
	return nil
}

func (p *places) write(home string) error {
	p.Format = marketsFormat
	if p.Listed == nil {
		p.Listed = []marketEntry{}
	}
	known, err := json.Marshal(p)
	if err != nil {
		return err
	}
	all := maps.Clone(p.rest)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	delete(all, "no_public")
	if err := json.Unmarshal(known, &all); err != nil {
		return err
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = atomicfile.PrivateDir(home)
	}
	if err == nil {
		err = atomicfile.Write(placesPath(home), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the list of marketplaces: %w", err)
	}
	return nil
}

// all is the list with the public marketplace in front, unless it was removed
// or stands in the list itself, with keys.
func (p *places) all() []marketEntry {
	listed := func(m marketEntry) bool { return m.Name == publicName || m.Location == publicMarketplace }
	if p.NoPublic || slices.ContainsFunc(p.Listed, listed) {
		return p.Listed
	}
	return append([]marketEntry{{Name: publicName, Location: publicMarketplace}}, p.Listed...)
}

// at gives the listed marketplace at a location, however that is spelled. Of two that were one once they are spelled alike, the
// one with keys.
func (p *places) at(location string) (marketEntry, bool) {
	location = fetch.OneLocation(location)
	found := marketEntry{Location: location}
	is := false
	for _, m := range p.all() {
		if m.Location == location && (!is || len(found.Keys) == 0) {
			found, is = m, true
		}
	}
	return found, is
}

// sameKeys tells whether two readings of the list have the same keys pinned for a location.
func sameKeys(p, q *places, location string) bool {
	one, _ := p.at(location)
	other, _ := q.at(location)
	return slices.Equal(one.Keys, other.Keys) && one.Needed == other.Needed
}

// put lists a marketplace, in place of everything that is listed at its location.
func (p *places) put(m marketEntry, public bool) {
	there := func(old marketEntry) bool { return old.Location == m.Location }
	i := slices.IndexFunc(p.Listed, there)
	if i < 0 {
		i = len(p.Listed)
	}
	p.Listed = slices.Insert(slices.DeleteFunc(p.Listed, there), i, m)
	p.NoPublic = p.NoPublic && !public
}

func (p *places) named(name string) (marketEntry, bool) {
	for _, m := range p.all() {
		if m.Name == name {
			return m, true
		}
	}
	return marketEntry{}, false
}

// nameFor makes a name for a location that was given none: the host's own part,
// or the folder's name.
func nameFor(location string) string {
	name := filepath.Base(filepath.FromSlash(location))
	if u, err := url.Parse(location); err == nil && u.Hostname() != "" {
		parts := strings.Split(u.Hostname(), ".")
		if name = parts[0]; net.ParseIP(u.Hostname()) != nil { // no part of an address says anything
			name = u.Hostname()
		} else if len(parts) > 2 { // connectors.acme.com is acme's
			name = parts[len(parts)-2]
		}
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	if name = strings.Trim(name, "-"); manifest.ValidID(name) != nil || name == publicName || name == builtinLocation {
		return ""
	}
	return name
}

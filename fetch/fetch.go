// Package fetch turns a marketplace (https, a folder, the built-in tree) and a connector id into a Bundle whose every
// byte matched its pin. It implements sections 1 and 2 of the format page: bounded downloads, the redirect, encoding
// and retry rules, the cached index with its side file, and the content-addressed cache.
//
// The law of this package:
//   - No unchecked byte leaves it. A Bundle has no constructor and no fields outside this package; what Bundle.Open
//     reads is hashed again while it is read.
//   - Everything from outside has a limit (limits.go) and every wait has an end: connecting, the answer's head, a
//     transfer that stalls or drips, a server that says "later".
//   - A refusal leaves nothing behind: files are written beside their place in the cache and renamed when they are right.
//   - Credentials of the marketplace's URL go to that host only and appear in no message.
//   - It never decides what the user wants: an old index is returned with its age, a changed one with its digest.
package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Options say which marketplace to read and with what.
type Options struct {
	// Location is an https URL (http on loopback, or with AllowHTTP), a folder (a path or a file: URL), or "builtin".
	Location string
	// BundleFile is a bundle file in place of a Location: the marketplace is the one that it names, and is not asked.
	BundleFile string
	// AllowExpired takes the index of a bundle file although it has run out.
	AllowExpired bool
	// Builtin is the tree behind "builtin", with connectors.json at its top.
	Builtin fs.FS
	// CacheDir is the cache folder; it is made (0700) when something is stored.
	CacheDir string
	// Client gives the transport to use; nil means our own. Redirects, limits and retries stay ours in both cases.
	Client *http.Client
	// Env looks up proxy and certificate variables; nil means that none is set.
	Env func(string) string
	// AllowHTTP permits a plain http marketplace off loopback.
	AllowHTTP bool
	// TrustDir is where signed marketplaces are remembered (package trust). Empty: no signature is judged, for callers
	// that read a tree of their own.
	TrustDir string
	// Pinned are the public keys that the user pinned for this marketplace; PinnedNeeded of them have to sign (0: all).
	Pinned       []string
	PinnedNeeded int
	// Keys is the keys document that the program itself vouches for, nil where it has none for this marketplace.
	Keys []byte
	// Now is the clock; required.
	Now func() time.Time
	// Progress, if any, is told what happens. Calls come from several goroutines, one at a time.
	Progress func(Event)
	// UserAgent is sent with each request; empty means "skald-connectors".
	UserAgent string
}

// An Event tells how far a download is. Byte counts are of the connector's files only.
type Event struct {
	Connector   string        // id, empty while the index is read
	File        string        // path that just moved, or that waits
	Bytes       int64         // checked or received so far
	TotalBytes  int64         // sum of the declared sizes; files without a size count once they are here
	Files       int           // files that are complete and match
	TotalFiles  int           //
	Wait        time.Duration // above zero: the host is asked again after this time
	WaitFor     string        // why, for a person: "host answered 503"
	FromCache   bool          // the file was in the cache already
	IndexReread bool          // a pin did not match, so the index is being read afresh
}

// Freshness says how old an index may be.
type Freshness uint8

const (
	// Cached accepts a cached index of at most an hour without asking the network.
	Cached Freshness = iota
	// Refresh asks the network first and falls back to the cached index when it cannot be reached.
	Refresh
	// Offline never asks the network; without a cached index it is an UnreachableError.
	Offline
)

// A Marketplace is one place connectors come from. It is safe for concurrent use; its downloads share one limit.
type Marketplace struct {
	o     Options
	src   source
	cache *cacheDir
	store *store
	slots chan struct{} // one for each download that may run at a time
	note  func(Event)   // Options.Progress behind a mutex, never nil
}

// Open prepares a marketplace. It reads and writes nothing.
func Open(o Options) (*Marketplace, error) {
	if o.Now == nil {
		return nil, errors.New("opening marketplace: no clock given")
	}
	if o.CacheDir == "" {
		return nil, errors.New("opening marketplace: no cache folder given")
	}
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	if o.UserAgent == "" {
		o.UserAgent = "skald-connectors"
	}
	note := serialised(o.Progress)
	var src source
	var err error
	if o.BundleFile != "" {
		src, err = newTarSource(o, note)
	} else {
		src, err = openSource(o, note)
	}
	if err != nil {
		return nil, fmt.Errorf("opening marketplace: %w", err)
	}
	cache := &cacheDir{path: o.CacheDir, now: o.Now}
	return &Marketplace{o: o, src: src, cache: cache, store: newStore(cache, src, o.Now), slots: make(chan struct{}, parallelFiles), note: note}, nil
}

// serialised calls f for one event at a time; a nil f is fine.
func serialised(f func(Event)) func(Event) {
	var mu sync.Mutex
	return func(e Event) {
		if f == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		f(e)
	}
}

// Location is the marketplace's address without credentials.
func (m *Marketplace) Location() string {
	location, _ := m.src.id()
	return location
}

// host names the marketplace in messages.
func (m *Marketplace) host() string {
	location := m.Location()
	if u, err := url.Parse(location); err == nil && u.Host != "" {
		return u.Host
	}
	return location
}

// A Query selects entries of an index. Empty fields select everything; each word must occur in the id, the name, a
// tag or the description, whatever its case. Tag, Type, Scope and Requires match whole values.
type Query struct {
	Words                      []string
	Tag, Type, Scope, Requires string
	Limit                      int // most results; 0 = all
}

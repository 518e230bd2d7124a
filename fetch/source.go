package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
)

const indexName = "connectors.json"

// A source is where a marketplace's bytes come from. take is called with the bytes, and again from the start when a
// transfer broke; it returns errors that must not be repeated marked final. size is -1 when it is not known.
type source interface {
	// id is the location for people and messages (no credentials) and the name of its files in the cache.
	id() (location, name string)
	// index reads the index unless it is unchanged since known was returned. A zero known reads it in any case.
	index(ctx context.Context, known validators, take func(r io.Reader, size int64) error) (now validators, unchanged bool, err error)
	// file reads folder/name. host says who answered, for messages.
	file(ctx context.Context, name string, about Event, take func(r io.Reader, size int64, host string) error) error
	// local tells that reading costs no network, so that nothing needs to be kept when it is small.
	local() bool
}

// validators are what a marketplace gives to ask "is it still this one".
type validators struct{ ETag, LastModified string }

// OneLocation is the one spelling of a marketplace's location, as Marketplace.Location gives it: without credentials. What is no
// location comes back as it is. It touches nothing.
func OneLocation(location string) string {
	src, err := openSource(Options{Location: location, Builtin: noTree{}}, func(Event) {})
	if err != nil {
		return location
	}
	one, _ := src.id()
	return one
}

// noTree stands for the built-in tree where nothing is read of it.
type noTree struct{}

func (noTree) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// openSource finds out what kind of place a location is. It touches nothing.
func openSource(o Options, note func(Event)) (source, error) {
	switch {
	case o.Location == "builtin":
		if o.Builtin == nil {
			return nil, errors.New("no built-in marketplace given")
		}
		return &treeSource{fsys: o.Builtin, where: "builtin"}, nil
	case strings.HasPrefix(o.Location, "file:"):
		return fileURLSource(o)
	case isURL(o.Location):
		return newWebSource(o, note)
	case o.Location == "":
		return nil, errors.New("no location given")
	}
	return newDirSource(o.Location, o.Now)
}

// isURL tells a URL from a path; "C:\x" and "C:x" are paths.
func isURL(s string) bool {
	scheme, _, ok := strings.Cut(s, ":")
	if !ok || len(scheme) < 2 || !isLetter(scheme[0]) {
		return false
	}
	return !strings.ContainsFunc(scheme, func(r rune) bool {
		return r > 0x7e || !isLetter(byte(r)) && (r < '0' || r > '9') && !strings.ContainsRune("+.-", r)
	})
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func fileURLSource(o Options) (source, error) {
	s := o.Location
	u, err := url.Parse(s)
	if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return nil, fmt.Errorf("%q is not a file URL of this machine", s)
	}
	p := u.Path
	if len(p) > 2 && p[2] == ':' { // /C:/x
		p = p[1:]
	}
	return newDirSource(filepath.FromSlash(p), o.Now)
}

// shortHash tells locations apart in file names.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
)

// reaches refuses paths of the person's files by which a process would get at
// more than their names say, as an *UnenforceableError, or nil. Links are
// followed: what counts is where a path leads.
func (p Policy) reaches() error {
	for _, path := range p.Write {
		if why := p.unfit(path); why != "" {
			return &UnenforceableError{What: "writing to " + quote(path), Why: why, Always: true}
		}
	}
	for _, path := range p.Read {
		if why := p.unfit(path); why != "" {
			return &UnenforceableError{What: "reading " + quote(path), Why: why, Always: true}
		}
	}
	return nil
}

// unfit says why path cannot be granted, "" when it can.
func (p Policy) unfit(path string) string {
	real := resolved(filepath.Clean(path))
	switch {
	case real == filepath.Dir(real):
		return "it is everything"
	case below(real, []string{"/proc"}) || real == "/dev" || real == "/sys":
		return "it is the kernel's, and shows other processes and devices"
	}
	for _, hidden := range p.Hidden {
		hidden = resolved(filepath.Clean(hidden))
		if below(real, []string{hidden}) {
			return "secrets and other connectors are in it"
		}
		if below(hidden, []string{real}) {
			return "secrets and other connectors are in it, in " + quote(hidden)
		}
	}
	return p.swapped(filepath.Clean(path))
}

// swapped tells of a link on the way to path that the process itself could have
// put there: at the next start it would be shown what that leads to.
func (p Policy) swapped(path string) string {
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		if fi, err := os.Lstat(path); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		place := resolved(filepath.Dir(path))
		for _, w := range p.Write {
			if below(place, []string{resolved(filepath.Clean(w))}) && filepath.Clean(w) != path {
				return quote(path) + " is a link in a folder that it may change, so it could lead anywhere"
			}
		}
	}
	return ""
}

// resolved follows the links of path as far as it is there.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolved(dir), filepath.Base(path))
	}
	return path
}

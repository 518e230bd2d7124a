package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"

	"skald-connectors/internal/atomicfile"
)

// publicMarketplace is the index that is used when nothing else is named.
const publicMarketplace = "https://connectors.skaldagent.net"

// A homePlace is something that this program keeps at the top of its home.
type homePlace struct {
	name string
	// private: nobody else may read it. Versions and packages hold published bytes only, behind the home.
	private bool
	// single: files in it are replaced one by one, so a killed writer leaves a temporary file there.
	single bool
}

// homePlaces is everything at the top of the home (docs/home.md), but for the locks.
var homePlaces = [...]homePlace{
	{"activations", true, true}, {"tools", true, true}, {"connectors", false, false}, {"receipts", true, true}, {"deps", false, false},
	{"work", false, false}, {"state", true, true}, {"keystore", true, true}, {"cache", false, false}, {"logs", true, false}, {"calls", true, true},
	{"mounts", true, true}, {"trust", true, true}, {"providers", true, true}, {"login", false, true}, {"checked", false, true},
	{"adopted", false, false}, {"sandbox", false, false}, {"marketplaces.json", false, false}, {"settings.json", false, false},
}

func homeNames(wanted func(homePlace) bool) (names []string) {
	for _, p := range homePlaces {
		if wanted(p) {
			names = append(names, p.name)
		}
	}
	return names
}

func anyPlace(homePlace) bool { return true }

func isPrivate(p homePlace) bool { return p.private }

func isSingle(p homePlace) bool { return p.single }

// settingsLimit bounds HOME/settings.json, which holds a few short values.
const settingsLimit = 64 << 10

// home is the folder of everything that this program keeps (cli.md, global
// flags). It is the only place that knows the platform's conventions.
func (a *app) home() (string, error) {
	for _, named := range []string{a.homeFlag, a.getenv("SKALD_CONNECTORS_HOME")} {
		if named != "" {
			abs, err := filepath.Abs(named)
			if err != nil {
				return "", fmt.Errorf("finding the home folder: %w", err)
			}
			return abs, nil
		}
	}
	user := a.userHome()
	if user == "" || !filepath.IsAbs(user) {
		return "", usagef("the home folder is not known: HOME is not set to an absolute path; name one with --home DIR")
	}
	if data := a.getenv("XDG_DATA_HOME"); filepath.IsAbs(data) && runtime.GOOS != "windows" && runtime.GOOS != "darwin" {
		return filepath.Join(data, program), nil
	}
	return a.plainHome(), nil
}

// plainHome is the home folder that is found without any variable but the one that names
// the person's: what a client that was started from a desktop finds.
func (a *app) plainHome() string {
	user := a.userHome()
	switch runtime.GOOS {
	case "windows": // not AppData: the store builds of clients see a private copy of it
		return filepath.Join(user, "."+program)
	case "darwin":
		return filepath.Join(user, "Library", "Application Support", program)
	}
	return filepath.Join(user, ".local", "share", program)
}

// userHome is the person's own home folder, "" where it is not known.
func (a *app) userHome() string {
	if runtime.GOOS == "windows" {
		return a.getenv("USERPROFILE")
	}
	return a.getenv("HOME")
}

// settings is HOME/settings.json: defaults that a person or an installer
// wrote. Only reading it is this program's business.
type settings struct {
	Format   int    `json:"format"`
	Index    string `json:"index"`
	Keystore string `json:"keystore"`
}

func readSettings(home string) (settings, error) {
	path := filepath.Join(home, "settings.json")
	data, err := atomicfile.Read(path, settingsLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return settings{}, nil
	}
	var s settings
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err == nil && s.Format > 1 {
		err = fmt.Errorf("it has format %d and this program knows 1: it was written by a newer version", s.Format)
	}
	if err != nil {
		return settings{}, fmt.Errorf("reading the settings file %s: %w", path, err)
	}
	return s, nil
}

// location is the marketplace that this run was told to use, by flag, variable
// or settings file; "" where nothing names one.
func (a *app) location(home string) (string, error) {
	for _, named := range []string{a.indexFlag, a.getenv("SKALD_CONNECTORS_INDEX")} {
		if named != "" {
			return named, nil
		}
	}
	s, err := readSettings(home)
	if err != nil {
		return "", err
	}
	return s.Index, nil
}

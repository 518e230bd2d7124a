package deps

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Downloads that are carried to another machine. npm finds them by the address that they came from, so the addresses of
// the registries are carried along, without credentials. They are only names there: nothing is asked.

// registriesName is the file beside npm's downloads that names the registries.
const registriesName = "npm-registries.json"

// registriesLimit bounds it.
const registriesLimit = 64 << 10

// noteRegistries writes where npm gets its packages from, for the machine that will be given them.
func (b *build) noteRegistries() error {
	if b.o.Cache == "" || b.o.Offline {
		return nil
	}
	n := b.o.Tool.npm
	names := map[string]string{"registry": n.registry}
	for _, s := range n.lines {
		if isScope(s.key) {
			names[s.key] = s.value
		}
	}
	for key, address := range names {
		if userinfo(address) != nil {
			return fmt.Errorf("the registry of %q has a credential in its address, which is not carried along; put it into your npm settings", key)
		}
	}
	data, err := json.MarshalIndent(names, "", "  ")
	if err != nil {
		return err
	}
	return writeNew(filepath.Join(b.o.Cache, registriesName), append(data, '\n'))
}

// carriedRegistries are the settings under which npm finds what was carried here.
func (b *build) carriedRegistries() ([]byte, error) {
	data, err := readBounded(filepath.Join(b.o.Cache, registriesName), registriesLimit)
	if err != nil {
		return nil, fmt.Errorf("reading the packages of the bundle: %w", err)
	}
	var names map[string]string
	if json.Unmarshal(data, &names) != nil {
		return nil, fmt.Errorf("reading the packages of the bundle: %s is not what was written", registriesName)
	}
	var n npmSettings
	for _, key := range slices.Sorted(maps.Keys(names)) {
		address := names[key]
		if key != "registry" && !isScope(key) || strings.ContainsAny(key+address, "\r\n\x00 ") || hostPort(address) == "" {
			return nil, fmt.Errorf("reading the packages of the bundle: %s is not what was written", registriesName)
		}
		n.lines = append(n.lines, setting{key: key, value: address})
	}
	return n.rc(), nil
}

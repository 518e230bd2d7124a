package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/activate/record"
	"skald-connectors/internal/exactjson"
	"skald-connectors/manifest"
)

const (
	// setFormat is the format number of a set, which this file owns.
	setFormat = 1
	// setLimit bounds a set: a thousand activations of 500 files with 64 KiB of settings
	// are far from usual, and some of them fit.
	setLimit = 16 << 20
	// setDepth is far above the nesting of any set that we write.
	setDepth = 16
	// manifestLimit is that of format.md for a manifest.
	manifestLimit = 1 << 20
)

// set is what export writes and apply reads: activations without their secrets.
type set struct {
	Format      int         `json:"format"`
	Activations []setMember `json:"activations"`
}

// setMember is one activation of a set: which bytes, which settings, which handles
// have to be filled, what it may do, where it is mounted.
type setMember struct {
	Name          string            `json:"name"`
	Connector     string            `json:"connector"`
	Version       manifest.Version  `json:"version"`
	VersionString string            `json:"version_string,omitempty"`
	Index         string            `json:"index"`
	Signer        string            `json:"signer,omitempty"`
	Files         []setFile         `json:"files"`
	Env           map[string]string `json:"env"`
	Secrets       []string          `json:"secrets"` // names only
	Grant         record.Grant      `json:"grant"`
	Sandbox       setSandbox        `json:"sandbox"`
	Scripts       bool              `json:"scripts,omitempty"` // install scripts of packages were allowed
	Mounts        []string          `json:"mounts"`            // client ids
	// Manifest is the text of an adopted connector, which no marketplace has.
	Manifest string `json:"manifest,omitempty"`
}

type setFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

type setSandbox struct {
	Mode     string   `json:"mode"`
	Grants   []string `json:"grants,omitempty"`
	Withheld []string `json:"withheld,omitempty"`
}

func (a *app) exportCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "export",
		GroupID: "main",
		Short:   "Write the set of activations as one document, without secrets",
		Long: "export writes what is installed (versions with their digests, settings, grants, where it is\n" +
			"mounted) to standard output. Secrets are named and left out. apply makes another machine\n" +
			"the same.",
		Example: "  skald-connectors export > set.json\n  skald-connectors apply set.json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.export() },
	}
}

func (a *app) export() error {
	home, listed, err := a.installed()
	if err != nil {
		return err
	}
	out := set{Format: setFormat, Activations: []setMember{}}
	var bad []string
	for _, l := range listed {
		if l.Err != nil {
			bad = append(bad, l.Name)
			a.complain(l.Err)
			continue
		}
		m, err := memberOf(home, l.Record)
		if err != nil {
			return err
		}
		out.Activations = append(out.Activations, m)
	}
	if err := a.printJSON(out); err != nil {
		return err
	}
	if len(bad) > 0 {
		a.json = false // the one document is out
		return &exitError{exitFailed, fmt.Errorf("left out of the set: %s", strings.Join(bad, ", "))}
	}
	return nil
}

func memberOf(home string, r *record.Record) (setMember, error) {
	m := setMember{Name: r.Name, Connector: r.Connector, Version: r.Version, VersionString: r.VersionString, Index: r.Index.URL, Signer: r.Index.Signer,
		Files: []setFile{}, Env: r.Env, Secrets: []string{}, Grant: r.Grant, Mounts: []string{},
		Sandbox: setSandbox{Mode: r.Sandbox.Mode, Grants: r.Sandbox.Grants, Withheld: r.Sandbox.Withheld}}
	if m.Env == nil {
		m.Env = map[string]string{}
	}
	for _, f := range r.Files {
		m.Files = append(m.Files, setFile{f.Path, f.SHA256})
	}
	for _, s := range r.Secrets {
		m.Secrets = append(m.Secrets, s.Name)
	}
	for _, d := range r.Deps {
		m.Scripts = m.Scripts || d.Scripts
	}
	for _, mt := range r.Mounts {
		if !slices.Contains(m.Mounts, mt.Client) {
			m.Mounts = append(m.Mounts, mt.Client)
		}
	}
	slices.Sort(m.Mounts)
	if r.Index.URL == adoptedDir(home, r.Name) {
		data, err := os.ReadFile(filepath.Join(adoptedDir(home, r.Name), r.Name, "connector.json"))
		if err != nil {
			return m, fmt.Errorf("reading what %q was adopted as: %w", r.Name, err)
		}
		m.Manifest, m.Index = string(data), ""
	}
	return m, nil
}

// readSet reads a set exactly: what two readers could take for two different sets is refused.
func readSet(data []byte) (*set, error) {
	doc, repeats, err := exactjson.Parse(data, setDepth)
	switch {
	case err != nil:
		return nil, err
	case len(repeats) > 0:
		return nil, fmt.Errorf("the key %q occurs twice", repeats[0].Path)
	case doc.Kind != exactjson.Object:
		return nil, errors.New("it is not a JSON object")
	}
	var s set
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, errors.New("it is not a set that export wrote")
	}
	if s.Format > setFormat {
		return nil, fmt.Errorf("it has format %d and this program knows %d: it was written by a newer version", s.Format, setFormat)
	}
	if s.Format != setFormat || s.Activations == nil {
		return nil, errors.New("it is not a set that export wrote")
	}
	seen := map[string]bool{}
	for _, m := range s.Activations {
		if err := m.check(); err != nil {
			return nil, fmt.Errorf("activation %q: %w", m.Name, err)
		}
		if seen[m.Name] {
			return nil, fmt.Errorf("activation %q stands there twice", m.Name)
		}
		seen[m.Name] = true
	}
	return &s, nil
}

func (m *setMember) check() error {
	if err := manifest.ValidID(m.Name); err != nil {
		return err
	}
	if err := manifest.ValidID(m.Connector); err != nil {
		return err
	}
	if _, ok := sandboxModes[orElse(m.Sandbox.Mode, "auto")]; !ok {
		return fmt.Errorf("there is no sandbox mode %q", m.Sandbox.Mode)
	}
	if len(m.Manifest) > manifestLimit {
		return errors.New("its manifest is too large")
	}
	if m.Manifest == "" && m.Index == "" {
		return errors.New("it names no marketplace")
	}
	if m.Manifest != "" && m.Name != m.Connector {
		return errors.New("an adopted connector has the name of its activation")
	}
	return nil
}

// samePins tells whether these are the bytes of the set.
func (m *setMember) samePins(files []manifest.File) bool {
	if len(files) != len(m.Files) {
		return false
	}
	for _, f := range files {
		if !slices.ContainsFunc(m.Files, func(x setFile) bool { return x.Path == f.Path && strings.EqualFold(x.SHA256, f.SHA256) }) {
			return false
		}
	}
	return true
}

package catalog

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"skald-connectors/internal/exactjson"
	"skald-connectors/manifest"
)

// check compiles the entry of one connector and holds it against the rules of package manifest, against its own
// manifest, against the files that are there, and against the previous index.
func (b *build) check(c *connector) {
	if !c.found {
		return
	}
	c.entry = compileEntry(c, 0)
	e, found := manifest.ParseEntry(c.entry)
	if e.Version > 0 {
		c.entry = compileEntry(c, e.Version) // written as an integer, however the author spelled it
	}
	for _, d := range found {
		if !saidBefore(d) {
			c.diagnose(inFragment(c, d))
		}
	}
	if e.Broken != "" && !hasErrors(found) {
		c.add(manifest.Error, fragmentName, "entry-broken", "%s", e.Broken)
	}
	b.checkRaised(c, e)
	m := c.parseManifest()
	b.checkIcons(c, e, m)
	if m != nil {
		c.checkAgreement(e, m)
	}
}

func hasErrors(ds []manifest.Diagnostic) bool {
	return slices.ContainsFunc(ds, func(d manifest.Diagnostic) bool { return d.Severity == manifest.Error })
}

// saidBefore tells of the compiled entry what was said of its source: repeated keys, and the files, whose findings name
// the file itself.
func saidBefore(d manifest.Diagnostic) bool {
	return d.Rule == ruleRepeated || d.Rule == ruleCaseTwin || strings.HasPrefix(d.Path, "files")
}

// inFragment moves a diagnostic of the compiled entry to the place in fragment.json that it comes from.
func inFragment(c *connector, d manifest.Diagnostic) manifest.Diagnostic {
	d.File = c.id + "/" + fragmentName
	d.Line, d.Col = exactjson.Position(c.source, offsetOf(c.fragment, d.Path))
	return d
}

// offsetOf gives where the value of a JSON path (tools[2].name) stands, or of the longest part of it that is there.
func offsetOf(v exactjson.Value, jsonPath string) int {
	for part := range strings.FieldsFuncSeq(jsonPath, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next, ok := v.Get(part)
		if v.Kind == exactjson.Array {
			var i int
			if _, err := fmt.Sscan(part, &i); err == nil && i >= 0 && i < len(v.Items) {
				next, ok = v.Items[i], true
			}
		}
		if !ok {
			break
		}
		v = next
	}
	return v.Start
}

// parseManifest reads the connector's connector.json from the bytes that were hashed; nil when it cannot be used.
func (c *connector) parseManifest() *manifest.Manifest {
	i := slices.IndexFunc(c.files, func(f *file) bool { return f.pin.Path == manifestName })
	if i < 0 {
		if !c.reported(manifestName) {
			c.add(manifest.Error, manifestName, "manifest-missing", "the folder has no %s", manifestName)
		}
		return nil
	}
	m, found, err := manifest.ParseManifest(c.files[i].data, path.Join(c.folder, manifestName))
	c.diagnose(found...)
	var refused *manifest.RefusedError
	switch {
	case errors.As(err, &refused) && slices.Contains(found, refused.Diagnostic):
	case errors.As(err, &refused):
		c.diagnose(refused.Diagnostic)
	case err != nil:
		c.add(manifest.Error, manifestName, "manifest-unreadable", "%v", err)
	case m.Broken != "" && !hasErrors(found):
		c.add(manifest.Error, manifestName, "manifest-broken", "%s", m.Broken)
	}
	if err != nil {
		return nil
	}
	return m
}

// reported tells whether a file of the connector has an error already.
func (c *connector) reported(file string) bool {
	return slices.ContainsFunc(c.findings, func(f Finding) bool {
		return f.Severity == manifest.Error && f.File == path.Join(c.folder, file)
	})
}

// checkAgreement compares fragment and manifest with each other and with the files that are there.
func (c *connector) checkAgreement(e manifest.Entry, m *manifest.Manifest) {
	found, err := manifest.Agree(e, m)
	var differ *manifest.DisagreeError
	switch {
	case errors.As(err, &differ):
		found = append(found, manifest.Diagnostic{Path: differ.Field, Severity: manifest.Error, Rule: "disagree-" + differ.Field,
			Message: fmt.Sprintf("%s is %q here and %q in %s", differ.Field, differ.Manifest, differ.Index, fragmentName)})
	case err != nil:
		c.add(manifest.Error, manifestName, "disagree", "%v", err)
	}
	for _, d := range m.Concerns(e.Files) {
		if d.Rule == ruleEntryNotShipped { // the others are for the consent of a person who installs it
			found = append(found, d)
		}
	}
	src := c.data(manifestName)
	tree, _, err := exactjson.Parse(src, maxDepth)
	for _, d := range found {
		d.File = path.Join(c.folder, manifestName)
		if err == nil {
			d.Line, d.Col = exactjson.Position(src, offsetOf(tree, d.Path))
		}
		c.diagnose(d)
	}
}

func (c *connector) data(name string) []byte {
	for _, f := range c.files {
		if f.pin.Path == name {
			return f.data
		}
	}
	return nil
}

func (c *connector) ships(name string) bool {
	return slices.ContainsFunc(c.files, func(f *file) bool { return f.pin.Path == name })
}

// checkIcons wants both icons of the entry, which are named from the root of the marketplace, and those that the
// manifest names, from the folder.
func (b *build) checkIcons(c *connector, e manifest.Entry, m *manifest.Manifest) {
	if m != nil {
		for _, icon := range []string{m.IconSmall, m.IconLarge} {
			if icon != "" && !c.ships(icon) {
				c.add(manifest.Error, manifestName, "icon-missing", "no file %q in the folder", icon)
			}
		}
	}
	for _, icon := range []struct{ member, name string }{{"icon_small", e.IconSmall}, {"icon_large", e.IconLarge}} {
		switch inside, ok := strings.CutPrefix(icon.name, c.folder+"/"); {
		case icon.name == "":
			c.place(icon.member, offsetOf(c.fragment, icon.member), "icon-missing", icon.member+" is missing")
		case ok && c.ships(inside):
		case !ok && b.isFile(icon.name):
		default:
			c.place(icon.member, offsetOf(c.fragment, icon.member), "icon-missing", fmt.Sprintf("no file %q below the root of the marketplace", icon.name))
		}
	}
}

func (b *build) isFile(name string) bool {
	fi, err := b.root.Lstat(name)
	return err == nil && fi.Mode().IsRegular()
}

// checkRaised refuses a changed file whose connector has not got a greater version than in the previous index.
func (b *build) checkRaised(c *connector, e manifest.Entry) {
	if b.published == nil {
		return
	}
	i := slices.IndexFunc(b.published.Entries, func(p manifest.Entry) bool { return p.ID == c.id && p.Broken == "" })
	if i < 0 {
		return
	}
	old := b.published.Entries[i]
	changed := changedFiles(old.Files, c.files)
	switch at := offsetOf(c.fragment, "version"); {
	case len(changed) > 0 && e.Version <= old.Version:
		c.place("version", at, "version-not-raised", fmt.Sprintf("%s; the published version is %d, this one must be greater", strings.Join(changed, ", "), old.Version))
	case e.Version < old.Version:
		c.place("version", at, "version-lowered", fmt.Sprintf("the published version is %d", old.Version))
	}
}

// changedFiles says in words how the files differ from those pinned before, at most a few.
func changedFiles(old []manifest.File, now []*file) []string {
	const mostNamed = 3
	was := map[string]manifest.File{}
	for _, f := range old {
		was[f.Path] = f
	}
	var words []string
	for _, f := range now {
		before, ok := was[f.pin.Path]
		delete(was, f.pin.Path)
		switch {
		case !ok:
			words = append(words, fmt.Sprintf("%q is new", f.pin.Path))
		case before.SHA256 != f.pin.SHA256:
			words = append(words, fmt.Sprintf("%q has changed", f.pin.Path))
		}
	}
	for _, f := range old {
		if _, gone := was[f.Path]; gone {
			words = append(words, fmt.Sprintf("%q is gone", f.Path))
		}
	}
	if n := len(words) - mostNamed; n > 0 {
		words = append(words[:mostNamed], fmt.Sprintf("%d more", n))
	}
	return words
}

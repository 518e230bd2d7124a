package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"skald-connectors/fetch"
	"skald-connectors/internal/exactjson"
	"skald-connectors/manifest"
)

// explainStale says for each connector and file how connectors.json differs from what the tree compiles to.
func (b *build) explainStale() {
	if b.previousBytes == nil {
		b.add(indexName, "stale", "there is no compiled index")
		return
	}
	if b.previous == nil {
		return // said already, with the reason
	}
	before := len(b.report().Findings)
	at := map[string]int{}
	for i, e := range b.previous.Entries {
		at[e.ID] = i
	}
	for _, c := range b.connectors {
		i, listed := at[c.id]
		delete(at, c.id)
		if !listed {
			c.stale("", "the index does not list it")
			continue
		}
		c.explain(b.previous.Entries[i])
	}
	for _, e := range b.previous.Entries {
		if _, gone := at[e.ID]; gone {
			b.findings = append(b.findings, Finding{Connector: e.ID, Diagnostic: staleAt(indexName, "the index lists it, the tree does not have it")})
		}
	}
	if b.compiled != nil && len(b.report().Findings) == before {
		b.add(indexName, "stale", "%s", b.lastDifference())
	}
}

// lastDifference names what remains when all entries are equal: their order, or the way the file is written.
func (b *build) lastDifference() string {
	for i, c := range b.connectors {
		if i < len(b.previous.Entries) && b.previous.Entries[i].ID != c.id {
			return fmt.Sprintf("the order differs: position %d is %q, %s has %q", i+1, b.previous.Entries[i].ID, listName, c.id)
		}
	}
	return "the same content in other bytes; it was edited by hand or written by another program"
}

func staleAt(file, message string) manifest.Diagnostic {
	return manifest.Diagnostic{File: file, Severity: manifest.Error, Rule: "stale", Message: message}
}

// stale records that the index does not have the connector, or a file of it, as it is.
func (c *connector) stale(file, format string, args ...any) {
	where := c.folder
	if file != "" {
		where = path.Join(c.folder, file)
	}
	c.diagnose(staleAt(where, fmt.Sprintf(format, args...)))
}

// explain compares the compiled entry with the one of the index: files by their pins, other members by their text.
func (c *connector) explain(old manifest.Entry) {
	if c.entry == nil {
		return // refused already
	}
	was := map[string]manifest.File{}
	for _, f := range old.Files {
		was[f.Path] = f
	}
	for _, f := range c.files {
		before, pinned := was[f.pin.Path]
		delete(was, f.pin.Path)
		switch {
		case !pinned:
			c.stale(f.pin.Path, "the index does not pin it")
		case before.SHA256 != f.pin.SHA256 || before.Size != f.pin.Size:
			c.stale(f.pin.Path, "the index pins sha256 %s (%d bytes), the file has sha256 %s (%d bytes)", before.SHA256, before.Size, f.pin.SHA256, f.pin.Size)
		}
	}
	for _, f := range old.Files {
		if _, gone := was[f.Path]; gone {
			c.stale(f.Path, "the index pins it, the folder does not have it")
		}
	}
	for _, key := range differingMembers(old.Raw, c.entry) {
		c.stale(fragmentName, "%s differs from the index", key)
	}
}

// differingMembers names the members, files[] apart, that two entries do not have alike, white space apart.
func differingMembers(a, b []byte) []string {
	x, _, errX := exactjson.Parse(a, maxDepth)
	y, _, errY := exactjson.Parse(b, maxDepth)
	if errX != nil || errY != nil {
		return []string{"the entry"}
	}
	var names []string
	for _, m := range slices.Concat(x.Members, y.Members) {
		if m.Key == "files" || slices.Contains(names, m.Key) {
			continue
		}
		in, _ := x.Get(m.Key)
		now, _ := y.Get(m.Key)
		if !bytes.Equal(compact(a[in.Start:in.End]), compact(b[now.Start:now.End])) {
			names = append(names, m.Key)
		}
	}
	return names
}

// openAsUser opens the tree as a marketplace folder and takes every connector through package fetch: its index is
// accepted, its entries are found, every file matches its pin. The error is about the machine.
func (b *build) openAsUser(ctx context.Context) error {
	folder, err := filepath.Abs(b.dir) // so that no name of a folder is taken for another kind of place
	if err != nil {
		return err
	}
	market, err := fetch.Open(fetch.Options{Location: folder, CacheDir: b.o.CacheDir, Now: b.o.Now})
	if err != nil {
		return err
	}
	ix, err := market.Index(ctx, fetch.Refresh)
	if err != nil {
		return err
	}
	for _, c := range b.connectors {
		e, err := ix.Lookup(c.id)
		if err == nil {
			_, err = market.Bundle(ctx, ix, e)
		}
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil {
			c.add(manifest.Error, "", "not-installable", "%v", err)
		}
	}
	return nil
}

// compact takes the white space out of a JSON text that has been parsed before.
func compact(src []byte) []byte {
	var out bytes.Buffer
	if err := json.Compact(&out, src); err != nil {
		return src
	}
	return out.Bytes()
}

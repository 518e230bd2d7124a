package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/fetch"
	"skald-connectors/internal/atomicfile"
	"skald-connectors/internal/lazyre"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
	"skald-connectors/mount"
)

// adoption is a foreign entry on its way to becoming an activation: the same
// program, its secrets in the key store, and our entry in its place.
type adoption struct {
	entry mount.Entry
	at    []mount.Request // where it stands, with its digest
	given map[string]activate.Given
}

// adopt makes a connector of a client's foreign entry, by way of a marketplace of one
// that is written from the entry: so it is planned, agreed to, pinned, tried in the
// sandbox and recorded as any other. The file changes last.
func (a *app) adopt(ctx context.Context, o *mountOptions) error {
	act, err := a.openHome()
	if err != nil {
		return err
	}
	if err := a.withMounts(act); err != nil {
		return err
	}
	if err := manifest.ValidID(o.adopt); err != nil {
		return withHint(usagef("adopting %q: %v", o.adopt, err), "rename the entry in the client's file: lower-case letters, digits, \".\", \"_\" and \"-\"")
	}
	dir := adoptedDir(act.Home, o.adopt)
	rec, err := act.Records().Read(o.adopt)
	if act.Records().Taken(o.adopt) && (err != nil || rec.Index.URL != dir) {
		return &activate.TakenError{Name: o.adopt}
	}
	found, err := a.foreign(act.Mounts, o)
	if err != nil {
		return err
	}
	if rec != nil { // adopted before, and the file was not reached: another client, a kill
		if err := found.sameAs(ctx, act, rec, dir); err != nil {
			return err
		}
		report, err := a.mountAdopted(ctx, act, found, nil)
		if err != nil {
			return err
		}
		return a.endMounts(report, true, false)
	}
	defer func() {
		if !act.Records().Taken(o.adopt) {
			_ = os.RemoveAll(dir)
		}
	}()
	doc, err := json.MarshalIndent(found.manifest(o.adopt), "", "  ")
	if err != nil {
		return fmt.Errorf("adopting %q: %w", o.adopt, err)
	}
	about := fmt.Sprintf("Adopted from the entry of %s.", clientName(found.at[0].Client))
	s, err := a.marketOfOne(ctx, act.Home, o.adopt, about, doc)
	if err != nil {
		return err
	}
	in := &o.install
	if err := checkSandbox(in.sandbox); err != nil {
		return err
	}
	if in.grants, in.withheld, err = in.access.read(); err != nil {
		return err
	}
	in.ids, in.adopted = []string{o.adopt}, found
	a.startProgress()
	plans, err := a.agreeAll(ctx, act, &shops{open: []*shop{s}}, in, found.given)
	if err != nil {
		return err
	}
	return a.installAll(ctx, act, in, plans, found.given)
}

// foreign finds the entry in the clients that are here, or in those that are named.
// Where it stands in several with different contents, nobody can say which is meant.
func (a *app) foreign(m *mount.Mounter, o *mountOptions) (*adoption, error) {
	ids, err := o.to.named(a, m)
	if err != nil {
		return nil, err
	}
	out := &adoption{given: map[string]activate.Given{}}
	var unread []string
	for _, c := range m.Clients() {
		if !c.Detected && !slices.Contains(ids, c.ID) || c.Problem != "" || len(ids) > 0 && !slices.Contains(ids, c.ID) {
			continue
		}
		states, err := m.Inspect(c.ID, "")
		if err != nil {
			return nil, err
		}
		for _, s := range states {
			if s.Err != nil {
				unread = append(unread, s.Err.Error())
			}
			for _, e := range s.Entries {
				if e.Name != o.adopt || e.Activation != "" {
					continue
				}
				if len(out.at) > 0 && !sameStart(e, out.entry) {
					return nil, withHint(usagef("adopting %q: it is not the same in %s and %s", o.adopt, out.at[0].File, s.File), "name one with --client CLIENT")
				}
				out.entry = e
				out.at = append(out.at, mount.Request{Client: c.ID, Name: o.adopt, File: s.File, Digests: []string{e.Digest}})
			}
		}
	}
	if len(out.at) == 0 && len(unread) > 0 {
		return nil, &exitError{exitNotFound, fmt.Errorf("adopting %q: no client has an entry of that name that is not ours, in the files that can be read; %s", o.adopt, strings.Join(unread, "; "))}
	}
	if len(out.at) == 0 {
		return nil, withHint(&exitError{exitNotFound, fmt.Errorf("adopting %q: no client has an entry of that name that is not ours", o.adopt)}, "see what they have with %s clients --json", program)
	}
	return out, out.check()
}

func sameStart(x, y mount.Entry) bool {
	return x.Command == y.Command && x.URL == y.URL && slices.Equal(x.Args, y.Args) && maps.Equal(x.Env, y.Env) && maps.Equal(x.Headers, y.Headers)
}

// filledIn is a value that only the client can fill in.
var filledIn = lazyre.New(`\$\{[^}]*\}|\{(env|file|input|ENV|SECRET):[^}]*\}`)

// check refuses what cannot be carried over as it is.
func (d *adoption) check() error {
	e := d.entry
	refuse := func(format string, args ...any) error {
		return usagef("adopting %q: "+format, append([]any{e.Name}, args...)...)
	}
	if e.Command == "" && e.URL == "" {
		return refuse("it names no program and no address")
	}
	for _, where := range e.Secrets {
		if kind, _, _ := strings.Cut(where, " "); kind == "argument" {
			return withHint(refuse("its %s is a secret, and arguments are visible to every user of this machine", where), "give it by an environment variable, if the program takes it that way, and adopt it then")
		}
	}
	for name, value := range e.Env {
		if filledIn.MatchString(value) || strings.HasPrefix(value, "$") {
			return refuse("its variable %s refers to something that only the client fills in", name)
		}
	}
	for name, value := range e.Headers {
		if filledIn.MatchString(value) {
			return refuse("its header %s refers to something that only the client fills in", name)
		}
	}
	for i, arg := range append([]string{e.URL}, e.Args...) {
		if filledIn.MatchString(arg) && i == 0 {
			return refuse("its address refers to something that only the client fills in")
		} else if filledIn.MatchString(arg) {
			return refuse("its argument %d refers to something that only the client fills in", i)
		}
	}
	return nil
}

// adoptedDir is the marketplace of one that an adopted entry is written down as.
func adoptedDir(home, name string) string { return filepath.Join(home, "adopted", name) }

// marketOfOne writes the marketplace of one manifest and opens it.
func (a *app) marketOfOne(ctx context.Context, home, name, about string, doc []byte) (*shop, error) {
	m, _, err := manifest.ParseManifest(doc, "connector.json")
	if err != nil {
		return nil, usagef("adopting %q: %v", name, err)
	}
	dir := adoptedDir(home, name)
	if err := os.RemoveAll(dir); err != nil { // of an adoption that was killed
		return nil, err
	}
	for _, p := range []string{home, filepath.Dir(dir), dir, filepath.Join(dir, name)} {
		if err := atomicfile.PrivateDir(p); err != nil {
			return nil, err
		}
	}
	index, err := json.MarshalIndent(map[string]any{"version": 1, "connectors": []any{map[string]any{
		"id": name, "name": name, "folder": name, "type": m.Type, "scope": m.Scope, "version": m.Version, "version_string": m.VersionString, "tags": m.Tags,
		"requires": m.Requires, "user_description": about,
		"files": []map[string]any{{"path": "connector.json", "sha256": fmt.Sprintf("%x", sha256.Sum256(doc)), "size": len(doc)}},
	}}}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("adopting %q: %w", name, err)
	}
	for path, data := range map[string][]byte{filepath.Join(name, "connector.json"): doc, "connectors.json": index} {
		if err := atomicfile.Write(filepath.Join(dir, path), data, 0o600); err != nil {
			return nil, fmt.Errorf("adopting %q: %w", name, err)
		}
	}
	market, err := a.marketplace(dir, home)
	if err != nil {
		return nil, err
	}
	ix, err := market.Index(ctx, fetch.Refresh)
	if err != nil {
		return nil, err
	}
	return &shop{market: market, index: ix, home: home}, nil
}

func (d *adoption) base(name string) map[string]any {
	kind := "mcp_local"
	if d.entry.Command == "" {
		kind = "mcp_remote"
	}
	return map[string]any{"id": name, "name": name, "type": kind, "scope": "user", "version": 1, "version_string": "1.0.0", "tags": []string{"adopted"}, "requires": []string{}}
}

// manifest says what the entry says, with a token in the place of each secret.
func (d *adoption) manifest(name string) map[string]any {
	doc, e := d.base(name), d.entry
	var fields []map[string]any
	secret := func(field, label, value string) string {
		fields = append(fields, map[string]any{"name": field, "label": label, "secret": true, "required": true})
		d.given[field] = activate.Given{Value: keystore.NewSecret(value), Source: "the entry"}
		return "{SECRET:" + field + "}"
	}
	config := map[string]any{}
	if e.Command == "" {
		headers := map[string]string{}
		for _, h := range slices.Sorted(maps.Keys(e.Headers)) {
			headers[h] = e.Headers[h]
			if slices.Contains(e.Secrets, "header "+h) {
				scheme, token, two := strings.Cut(e.Headers[h], " ")
				if !two {
					scheme, token = "", e.Headers[h]
				}
				headers[h] = strings.TrimSpace(scheme + " " + secret(headerField(h), h, token))
			}
		}
		config["url"], config["transport"], config["headers"] = e.URL, "streamable-http", headers
		doc["mcp_config"], doc["auth"] = config, map[string]any{"type": "none"}
	} else {
		env := map[string]string{}
		for _, v := range slices.Sorted(maps.Keys(e.Env)) {
			env[v] = e.Env[v]
			if slices.Contains(e.Secrets, "env "+v) {
				env[v] = secret(v, v, e.Env[v])
			}
		}
		config["command"], config["args"], config["env"] = e.Command, append([]string{}, e.Args...), env
		doc["mcp_config"], doc["auth"], doc["transport"] = config, map[string]any{"type": "none"}, "stdio"
		if read, write := namedPaths(e); len(read)+len(write) > 0 {
			doc["permissions"] = map[string]any{"filesystem": map[string]any{"read": read, "write": write}}
		}
	}
	if len(fields) > 0 {
		doc["env"] = fields
	}
	doc["docs"] = []map[string]string{{"lang": "en", "description": "Adopted from a client's own entry.", "llm_short_description": name}}
	return doc
}

var notInName = lazyre.New(`[^A-Z0-9_]+`)

// headerField is the name of the field for a header's secret.
func headerField(header string) string {
	return "HEADER_" + notInName.ReplaceAllString(strings.ToUpper(header), "_")
}

// namedPaths are the person's files that the entry names in its arguments: a folder is
// what the program works on, a file is the program, which reads what is beside it.
func namedPaths(e mount.Entry) (read, write []string) {
	read, write = []string{}, []string{}
	for _, arg := range e.Args {
		info, err := os.Stat(arg)
		switch {
		case !filepath.IsAbs(arg) || err != nil:
		case info.IsDir():
			write = append(write, filepath.Clean(arg))
		default:
			read = append(read, filepath.Dir(arg))
		}
	}
	return read, write
}

// mountAdopted puts our entry in the place of the one that was adopted. What was written
// is not shown: it would show the secrets that are gone from it.
func (a *app) mountAdopted(ctx context.Context, act *activate.Activator, d *adoption, done []*record.Record) (*mountReport, error) {
	report := newMountReport()
	for _, req := range d.at {
		res, err := act.Mount(ctx, req)
		res.Diff = ""
		if err := report.add(req, res, err); err != nil {
			return report, err
		}
	}
	for i, rec := range done {
		if fresh, err := act.Records().Read(rec.Name); err == nil {
			done[i] = fresh
		}
	}
	a.noteTemporary(act.Home, report)
	return report, nil
}

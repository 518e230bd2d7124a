package activate

import (
	"context"
	"slices"

	"skald-connectors/activate/record"
)

// Definition is one tool as it was accepted and as the server defines it now.
type Definition struct {
	Name    string
	Title   string
	Granted bool // the user lets it through
	// Was and Now are the definitions as JSON, values struck out; nil where there
	// is none: a new tool was not, one that is gone is no more.
	Was, Now []byte
	Held     bool // its definition is not the accepted one
}

// Tools returns the accepted tools of an activation, in their order, and where
// fresh is set what its server, started once, makes of them now.
func (a *Activator) Tools(ctx context.Context, name string, fresh bool) ([]Definition, error) {
	rec, err := a.Records().Read(name)
	if err != nil {
		return nil, err
	}
	accepted, err := a.accepted(rec)
	if err != nil || !fresh {
		return accepted, err
	}
	var p *record.Probe
	err = a.onRecord(ctx, name, func(present *record.Record) error {
		rec = present
		p, err = a.probeStored(ctx, present, nil)
		return err
	})
	if err != nil {
		return accepted, err
	}
	return compareTools(rec, accepted, p), nil
}

func (a *Activator) accepted(rec *record.Record) ([]Definition, error) {
	definitions, err := a.definitions().Read(rec.Name)
	if err != nil {
		return nil, err
	}
	out := []Definition{}
	for _, t := range rec.Tools {
		out = append(out, Definition{Name: t.Name, Title: t.Title, Granted: rec.Grant.Allows(t.Name), Was: definitions[t.Digest]})
	}
	return out, nil
}

// compareTools puts what the server says now beside what was accepted.
func compareTools(rec *record.Record, accepted []Definition, p *record.Probe) []Definition {
	for i, t := range rec.Tools {
		accepted[i].Held = true
		for _, now := range p.Tools {
			if now.Name == t.Name {
				accepted[i].Now, accepted[i].Held = now.Raw, now.Digest != t.Digest
			}
		}
	}
	for _, now := range p.Tools {
		known := slices.ContainsFunc(rec.Tools, func(t record.ToolRef) bool { return t.Name == now.Name })
		if !known {
			accepted = append(accepted, Definition{Name: now.Name, Title: now.Title, Granted: rec.Grant.Allows(now.Name), Now: now.Raw, Held: true})
		}
	}
	return accepted
}

// probeStored starts the server of an installed activation once, with its stored
// values; then commit, which may be nil, is called with the trial.
func (a *Activator) probeStored(ctx context.Context, rec *record.Record, commit func(*trial, *record.Probe) error) (*record.Probe, error) {
	t, err := a.resume(ctx, rec, false)
	if err != nil {
		return nil, err
	}
	t.values.applyDefaults()
	if missing := t.values.missing(); len(missing) > 0 {
		return nil, &UnfilledError{MissingError{Name: rec.Name, Fields: missing}}
	}
	defer t.drop()
	if err := a.makeReady(ctx, t, rec); err != nil {
		return nil, err
	}
	if err := a.makeHome(t.name); err != nil {
		return nil, err
	}
	p, err := a.probe(ctx, t)
	if err == nil && commit != nil {
		err = commit(t, p)
	}
	return p, err
}

// AcceptTools starts the server once and accepts its tools as they are now.
func (a *Activator) AcceptTools(ctx context.Context, name string) error {
	return a.onRecord(ctx, name, func(present *record.Record) error {
		_, err := a.probeStored(ctx, present, func(t *trial, p *record.Probe) error {
			_, err := a.rewrite(ctx, present, writeRecord, func(next *record.Record) error {
				a.step("write-tools")
				next.Tools, next.Probe = toolRefs(t.manifest, p.Tools, next.Grant), p
				return a.definitions().Write(name, p.Tools, present)
			})
			return err
		})
		return err
	})
}

// LimitTools changes which tools are let through. deny keeps tools back. allow
// takes tools out of that list; where only listed tools are let through it adds
// to that list. Errors: *GrantError for a tool that the connector does not have.
func (a *Activator) LimitTools(ctx context.Context, name string, allow, deny []string) (rec *record.Record, err error) {
	err = a.onRecord(ctx, name, func(present *record.Record) error {
		if unknown := unknownTools(present.Tools, slices.Concat(allow, deny)); len(unknown) > 0 {
			return &GrantError{Connector: name, Unknown: unknown, Has: toolNamesOf(present.Tools)}
		}
		rec, err = a.rewrite(ctx, present, writeRecord, func(next *record.Record) error {
			next.Grant = changedGrant(present.Grant, allow, deny)
			next.Tools = slices.Clone(present.Tools)
			for i, t := range next.Tools {
				next.Tools[i].Granted = next.Grant.Allows(t.Name)
			}
			return nil
		})
		return err
	})
	return rec, err
}

func changedGrant(g record.Grant, allow, deny []string) record.Grant {
	out := record.Grant{Allow: slices.Clone(g.Allow)}
	for _, t := range slices.Concat(g.Deny, deny) {
		if !slices.Contains(allow, t) && !slices.Contains(out.Deny, t) {
			out.Deny = append(out.Deny, t)
		}
	}
	for _, t := range allow {
		if len(g.Allow) > 0 && !slices.Contains(out.Allow, t) {
			out.Allow = append(out.Allow, t)
		}
	}
	return out
}

func unknownTools(has []record.ToolRef, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return slices.ContainsFunc(has, func(t record.ToolRef) bool { return t.Name == n })
	})
}

func toolNamesOf(tools []record.ToolRef) []string {
	out := make([]string, len(tools))
	for i, t := range tools {
		out[i] = t.Name
	}
	return out
}

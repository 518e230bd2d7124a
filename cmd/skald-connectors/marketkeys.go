package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"skald-connectors/fetch"
	"skald-connectors/fetch/trust"
	"skald-connectors/form"
	"skald-connectors/manifest"
)

// vouchedFor settles by which keys a marketplace is added, where none are given. Keys that are pinned here stay, and one that is known
// as a signed one stays that: neither is a thing to agree to.
func (a *app) vouchedFor(ctx context.Context, home string, p *marketEntry, o *marketOptions, listed *places) error {
	if len(p.Keys) > 0 {
		return nil
	}
	if before, known := listed.at(p.Location); known && len(before.Keys) > 0 {
		if o.unsigned {
			return withHint(usagef("keys of %s are pinned here, so it is a signed marketplace", p.Location), "leave --unsigned out; %s marketplace remove %s takes it off the list", program, before.Name)
		}
		p.Keys, p.Needed = before.Keys, before.Needed
		return nil
	}
	m, err := a.marketplace(p.Location, home)
	if err != nil {
		return err
	}
	if signed, err := m.Signed(); err != nil || signed || o.unsigned {
		return err
	}
	return a.agreeUnsigned(ctx, home, m, p)
}

// agreeUnsigned asks about a marketplace for which no key is given: a key that
// the person knows from elsewhere, or a yes to none. A folder of this machine is
// its owner's to trust.
func (a *app) agreeUnsigned(ctx context.Context, home string, m *fetch.Marketplace, p *marketEntry) error {
	offered, err := m.OfferedKeys(ctx)
	if err != nil {
		return err
	}
	term := a.terminal()
	says := offered != nil // it calls its index signed
	if !says {
		if !strings.Contains(p.Location, "://") {
			return nil
		}
		ix, err := a.tryMarket(ctx, home, p)
		if err != nil {
			return err
		}
		says = ix.Trust().Ignored
	}
	switch {
	case term == nil && says:
		return withHint(usagef("the marketplace %s is signed, and nothing says which keys are the right ones", p.Location), "give the key that you know from its publisher: --key RWQ…")
	case term == nil:
		return withHint(usagef("the marketplace %s is not signed", p.Location), "agree to that with --unsigned, or give the key that it will be signed with: --key RWQ…")
	case offered != nil:
		return a.askForKey(ctx, term, p, offered)
	}
	title, text := "Add a marketplace that is not signed?", "Whoever has its web server decides what is in it."
	if says {
		title, text = "Add a marketplace without its key?", "It calls its index signed. With the key that its publisher tells you (--key RWQ…) that is checked; without it, whoever has its web server decides what is in it."
	}
	ok, err := term.Confirm(ctx, title, a.wrapped(text), "Add it", "Stop")
	if err == nil && !ok {
		return &exitError{exitFailed, fmt.Errorf("%s was not added: you said no", p.Location)}
	}
	return err
}

// askForKey has a person type the end of a key, which is not shown: they have
// it from the publisher, or they have not.
func (a *app) askForKey(ctx context.Context, term *form.Terminal, p *marketEntry, offered *trust.Keys) error {
	a.clearProgress()
	a.say("%s is signed. Its root keys (%d of them have to sign):", p.Location, offered.RootThreshold)
	for _, k := range offered.Root {
		a.say("  number %s, %s…", k.ID(), k.String()[:28])
	}
	const field = "tail"
	got, err := term.Fill(ctx, "Compare with what its publisher says, on another page than this one", []form.Question{{Field: manifest.Field{Name: field,
		Label: "The last 6 characters of one of these keys", Description: "They are not shown here. Without them the marketplace is not added.", Required: true}}})
	if err != nil {
		return err
	}
	typed := strings.TrimRight(strings.TrimSpace(got[field].Value.Reveal()), "=")
	if !slices.ContainsFunc(offered.Root, func(k trust.Key) bool { return k.Tail() == typed }) {
		return &exitError{exitIntegrity, fmt.Errorf("%s was not added: that is not the end of one of its keys", p.Location)}
	}
	for _, k := range offered.Root {
		p.Keys = append(p.Keys, k.String())
	}
	p.Needed = offered.RootThreshold
	return nil
}

// isAway tells whether a marketplace is not to be reached now, or its folder is not on this machine.
func isAway(err error) bool {
	_, away := errors.AsType[*fetch.UnreachableError](err)
	return away && !certificateRefused(err) || errors.Is(err, fs.ErrNotExist)
}

// certificateRefused tells whether a server was reached whose certificate is not believed.
func certificateRefused(err error) bool {
	_, refused := errors.AsType[*tls.CertificateVerificationError](err)
	return refused
}

// wrongKey adds to a refused index that the key which was given may be another one.
func wrongKey(err error, o *marketOptions) error {
	if refused, ok := errors.AsType[*trust.Error](err); ok && refused.Kind == trust.Signature && len(o.keys) > 0 {
		return withHint(err, "nothing was added; compare the key with what the marketplace's publisher says, and if it is the right one, somebody else answers in its place")
	}
	return err
}

package main

import (
	"fmt"
	"slices"
	"strings"

	"skald-connectors/activate"
	"skald-connectors/form"
	"skald-connectors/keystore"
	"skald-connectors/manifest"
	"skald-connectors/sandbox"
)

// planText shows a plan: what is downloaded, what runs here, what is asked.
func (a *app) planText(p *activate.Plan, s *shop, scripts bool) string {
	var b strings.Builder
	e, m := p.Entry, p.Manifest
	b.WriteString(a.wrapped(form.Clean(fmt.Sprintf("%s %s, from %s", orElse(e.Name, e.ID), manifest.DisplayVersion(e), s.from()))) + "\n")
	if d := m.Doc(a.language()); d.ShortDescription != "" || e.Description != "" {
		b.WriteString(wrap(form.Clean(orElse(e.Description, d.ShortDescription)), a.width(), "  ") + "\n")
	}
	b.WriteString("\n")
	row := func(label, format string, args ...any) {
		b.WriteString(labelRow(label, fmt.Sprintf(format, args...), a.width()))
	}
	label, text := planFiles(p, s.bundle != "")
	row(label, "%s", text)
	row("index", "%s", form.Clean(trustText(p.Index.Trust(), p.Index.Location())))
	if m.Remote() {
		row("connect", "%s", form.Clean(m.Server.URL))
	} else {
		row("run", "%s", form.Clean(strings.Join(p.Command, " ")))
	}
	for _, r := range p.Runtimes {
		row("with", "%s %s", form.Clean(r.Path), form.Clean(r.Version))
	}
	depsRows(row, p.Deps, scripts, s.bundle != "")
	if m.Verify != nil {
		row("test", "%s (at most %d s, before anything is saved)", form.Clean(m.Verify.Command), int(m.Verify.Timeout.Seconds()))
	} else {
		row("test", "none: this connector has no test; its server is started once instead")
	}
	if p.Enforced.Mode == sandbox.None {
		row("network", "%s", networkText(m))
	}
	if p.RunsHere() {
		row("sandbox", "%s", form.Clean(p.Enforced.Sentence))
		for _, n := range p.Enforced.NotHeld {
			row("not held", "%s", form.Clean(n))
		}
	}
	row("ask", "%s", fieldsText(p.Fields))
	if text := signInText(p); text != "" {
		row("sign in", "%s", text)
	}
	if p.NoClient != nil {
		row("client", "%s", form.Clean(clientText(p.NoClient)))
	}
	if text := a.storeText(p); text != "" {
		row("keep", "%s", text)
	}
	if p.Loud != "" {
		row("NOTE", "%s", form.Clean(p.Loud))
	}
	for _, w := range p.Warnings {
		row("note", "%s", form.Clean(w))
	}
	return b.String()
}

// planFiles says what comes onto this machine, and where from.
func planFiles(p *activate.Plan, bundled bool) (label, text string) {
	count := plural(p.Files, "file", "files") + ", " + size(p.Bytes)
	switch {
	case p.Files == 0:
		return "download", "its manifest, which nothing pins"
	case bundled:
		return "files", count + ", from the bundle, each checked against its pinned SHA-256"
	}
	return "download", count + ", each checked against its pinned SHA-256"
}

// signInText says how the connector is signed in; "" when a credential is typed.
func signInText(p *activate.Plan) string {
	switch {
	case p.Manifest.Auth.Type == "oauth2" && p.Pending:
		return "later, with " + program + " auth " + p.Name + ", " + oauthText(p.Manifest)
	case p.Manifest.Auth.Type == "oauth2":
		return oauthText(p.Manifest)
	case p.Manifest.Auth.Type != "qr":
		return ""
	case p.Pending:
		return "later, with " + program + " auth " + p.Name + ": your phone reads a QR code"
	}
	return "your phone reads a QR code that is shown here; the session is kept in a private folder"
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// networkText says where a connector says that it connects to, and what else
// it says that it needs.
func networkText(m *manifest.Manifest) string {
	p := m.Permissions
	switch {
	case p == nil || !p.HostsDeclared:
		return "it does not say where it connects to: any host"
	case len(p.Hosts) == 0 && p.Loopback:
		return "it says that it connects to this machine only"
	case len(p.Hosts) == 0:
		return "it says that it connects nowhere"
	}
	hosts := make([]string, len(p.Hosts))
	for i, h := range p.Hosts {
		hosts[i] = form.Clean(labelled(h, m.Fields()))
	}
	return "it says that it connects only to " + strings.Join(hosts, ", ")
}

// labelled shows each token of a text as the label of its field.
func labelled(text string, fields []manifest.Field) string {
	tokens := manifest.Tokens(text)
	for _, t := range slices.Backward(tokens) {
		for _, f := range fields {
			if f.Name == t.Name && !t.Deprecated {
				text = text[:t.Start] + "<" + f.Label + ">" + text[t.End:]
			}
		}
	}
	return text
}

// fieldsText lists what is asked for: the required fields, then the others.
func fieldsText(fields []manifest.Field) string {
	var required, optional []string
	for _, f := range fields {
		text := form.Clean(f.Label)
		if f.Secret {
			text += " (secret)"
		}
		if f.Required {
			required = append(required, text)
		} else {
			optional = append(optional, text)
		}
	}
	switch {
	case len(fields) == 0:
		return "nothing"
	case len(optional) == 0:
		return strings.Join(required, ", ")
	case len(required) == 0:
		return "only if you like: " + strings.Join(optional, ", ")
	}
	return strings.Join(required, ", ") + "; if you like: " + strings.Join(optional, ", ")
}

// storeText says where secrets will be kept; "" when there are none.
func (a *app) storeText(p *activate.Plan) string {
	if !slices.ContainsFunc(p.Fields, func(f manifest.Field) bool { return f.Secret }) {
		return ""
	}
	backend := p.Store.Backend
	if home, err := a.home(); err == nil && backend == "" {
		backend, _ = a.wantedKeystore(home)
	}
	return "secrets are encrypted on disk; their key is kept " + keyPlan(backend, p.Store.Backend != "")
}

// keyPlace says in words where a back end keeps the key of the vaults.
func keyPlace(b keystore.Backend) string {
	switch b {
	case keystore.BackendPassphrase:
		return "behind your passphrase"
	case keystore.BackendKeyfile:
		return "in a file that only you can read"
	}
	return "in your system's keychain"
}

// keyPlan says where the key will be kept, before it is.
func keyPlan(b keystore.Backend, recorded bool) string {
	if b == "" && !recorded {
		return "in your system's keychain, or where you say if there is none"
	}
	return keyPlace(b)
}

// language is the language tag of the user's locale, "en" where there is none.
func (a *app) language() string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if v := a.getenv(name); v != "" && v != "C" && v != "POSIX" && !strings.HasPrefix(v, "C.") {
			lang, _, _ := strings.Cut(v, ".")
			return strings.ReplaceAll(lang, "_", "-")
		}
	}
	return "en"
}

package login

import (
	"errors"
	"fmt"

	"skald-connectors/internal/exactjson"
	"skald-connectors/keystore"
)

// ClientFileLimit bounds a downloaded client file, in bytes; real ones have under 1 KiB.
const ClientFileLimit = 64 << 10

// ParseClientFile reads the file that Google's console offers for download (client_secret_*.json) into p: client id and
// secret, and the endpoints that it names where p has none.
func ParseClientFile(data []byte, p Provider) (Provider, error) {
	doc, repeats, err := exactjson.Parse(data, providerDepth)
	switch {
	case err != nil:
		return p, fmt.Errorf("reading the client file: %w", err)
	case len(repeats) > 0:
		return p, fmt.Errorf("reading the client file: %s stands twice", repeats[0].Path)
	}
	in, ok := doc.Get("installed")
	if !ok {
		if _, web := doc.Get("web"); web {
			return p, errors.New(`reading the client file: it is of a "Web application"; a "Desktop app" is needed, since only that may answer to this machine`)
		}
		if kind := text(doc, "type"); kind == "service_account" || kind == "authorized_user" {
			return p, fmt.Errorf("reading the client file: it is a credential (%s), no client; the file of a \"Desktop app\" is needed", kind)
		}
		in = doc // the same members without the frame
	}
	p.ClientID, p.ClientSecret = text(in, "client_id"), keystore.NewSecret(text(in, "client_secret"))
	if p.ClientID == "" {
		return p, errors.New("reading the client file: it has no client_id")
	}
	if p.AuthURL == "" {
		p.AuthURL = text(in, "auth_uri")
	}
	if p.TokenURL == "" {
		p.TokenURL = text(in, "token_uri")
	}
	return p, nil
}

// text is a member that is a string, else "".
func text(v exactjson.Value, key string) string {
	m, ok := v.Get(key)
	if !ok || m.Kind != exactjson.String {
		return ""
	}
	return m.Str
}

// texts are the strings of a member that is an array.
func texts(v exactjson.Value, key string) []string {
	m, ok := v.Get(key)
	if !ok || m.Kind != exactjson.Array {
		return nil
	}
	var out []string
	for _, item := range m.Items {
		if item.Kind == exactjson.String {
			out = append(out, item.Str)
		}
	}
	return out
}

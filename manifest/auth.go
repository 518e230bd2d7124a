package manifest

import (
	"fmt"
	"slices"

	"skald-connectors/internal/exactjson"
)

const (
	authKey      = "api_key"
	authPassword = "password"
	authOAuth    = "oauth2"
	authQR       = "qr"
)

// auth reads the auth member; ok tells whether the document has one.
func (r *reader) auth(obj exactjson.Value) (a Auth, ok bool) {
	v, ok := get(obj, "auth")
	if !ok {
		return Auth{}, false
	}
	if v.Kind == exactjson.String {
		r.say(v, Warning, "auth-not-an-object", "found a string, expected an object with type")
		return Auth{Type: authType(v.Str)}, true
	}
	if v.Kind != exactjson.Object {
		r.refuse(v, "auth-not-an-object", "found %s, expected an object with type", v.Kind)
		return Auth{}, true
	}
	a = Auth{Delivery: r.text(v, "delivery"), Param: r.text(v, "param"), Provider: r.text(v, "provider"), Scopes: r.texts(v, "scopes")}
	if t, given := get(v, "type"); !given {
		r.sayMissing(v, "type", Error, "auth-type-missing", "no type, expected none, api_key, password, oauth2 or qr")
		r.breaks("auth", "it has no type")
	} else if text := r.text(v, "type"); text == "" {
		r.breaks("auth", "its type is not a name")
	} else if a.Type = authType(text); !knownAuth(a.Type) {
		r.say(t, Error, "auth-type-unknown", "found %q, expected none, api_key, password, oauth2 or qr", a.Type)
	}
	if d, ok := r.object(v, "deliver"); ok {
		a.Deliver = r.deliver(d)
	}
	r.checkAuth(v, a)
	return a, true
}

// authType gives "" for "none", the zero value of Auth.
func authType(s string) string {
	if s == "none" {
		return ""
	}
	return s
}

func knownAuth(t string) bool {
	return slices.Contains([]string{"", authKey, authPassword, authOAuth, authQR}, t)
}

// deliver reads how a credential arrives; env is meant when a variable is named.
func (r *reader) deliver(obj exactjson.Value) *Deliver {
	d := &Deliver{As: r.text(obj, "as"), Format: r.text(obj, "format"), Env: r.text(obj, "env"), Path: r.text(obj, "path")}
	if d.As == "" && d.Env != "" {
		d.As = "env"
		r.sayMissing(obj, "as", Warning, "deliver-as-missing", "no as, expected env or file; taken as env")
	} else if d.As == "" && d.Path != "" {
		d.As = "file"
		r.sayMissing(obj, "as", Warning, "deliver-as-missing", "no as, expected env or file; taken as file")
	}
	switch {
	case d.As == "env" && d.Env == "":
		r.sayMissing(obj, "env", Error, "deliver-env-missing", "no env, expected the name of a variable")
	case d.As == "file" && d.Path == "":
		r.sayMissing(obj, "path", Error, "deliver-path-missing", "no path, expected a file below {secrets}")
	}
	if d.Env != "" {
		if err := ValidEnvName(d.Env); err != nil {
			v, _ := obj.Get("env")
			r.refuse(v, "env-name", "%v", err)
		}
	}
	return d
}

func (r *reader) checkAuth(v exactjson.Value, a Auth) {
	if why := a.Unsupported(); why != "" && knownAuth(a.Type) {
		r.say(v, Error, "auth-unsupported", "%s", why)
	}
	if a.Type == authOAuth && a.Provider == "" {
		r.sayMissing(v, "provider", Warning, "auth-provider-missing", "no provider, expected its short name")
	}
	if a.Type == authKey && a.Delivery == "env" && a.Param != "" {
		if err := ValidEnvName(a.Param); err != nil {
			p, _ := v.Get("param")
			r.refuse(p, "env-name", "%v", err)
		}
	}
	if a.Type == authKey && (a.Delivery == "query" || a.Delivery == "header") && a.Param == "" {
		r.sayMissing(v, "param", Error, "auth-param-missing", "no param, expected the name of the %s", a.Delivery)
	}
}

// Unsupported names the part of a sign-in that this program cannot do, so that
// an installation can be refused with it. "" means that all is known.
func (a Auth) Unsupported() string {
	if !knownAuth(a.Type) {
		return fmt.Sprintf("auth type %q", a.Type)
	}
	if a.Type == authKey && !slices.Contains([]string{"", "query", "header", "env"}, a.Delivery) {
		return fmt.Sprintf("auth delivery %q", a.Delivery)
	}
	if a.Deliver == nil {
		return ""
	}
	if !slices.Contains([]string{"env", "file"}, a.Deliver.As) {
		return fmt.Sprintf("auth deliver as %q", a.Deliver.As)
	}
	if !slices.Contains([]string{"google_authorized_user", "refresh_token", "access_token"}, a.Deliver.Format) {
		return fmt.Sprintf("auth deliver format %q", a.Deliver.Format)
	}
	return ""
}

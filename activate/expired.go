package activate

import (
	"slices"
	"time"

	"skald-connectors/activate/record"
	"skald-connectors/login"
	"skald-connectors/manifest"
)

// earliest is when the first of the secrets that a connector cannot do without stops
// working, as far as somebody said so (secrets put --expires-at); zero = not known. Tokens
// of a sign-in are not meant: they are renewed.
func earliest(m *manifest.Manifest, rec *record.Record) (until time.Time) {
	for _, s := range rec.Secrets {
		needed := slices.ContainsFunc(m.Fields(), func(f manifest.Field) bool { return f.Name == s.Name && f.Required })
		if needed && !s.ExpiresAt.IsZero() && (until.IsZero() || s.ExpiresAt.Before(until)) {
			until = s.ExpiresAt
		}
	}
	return until
}

func over(until, now time.Time) bool { return !until.IsZero() && !now.Before(until) }

// StateNow is the state of an activation as it is at this moment: a credential may have
// stopped working since its record was written.
func (a *Activator) StateNow(rec *record.Record) record.State {
	passed := func(s record.SecretRef) bool { return !login.IsHandle(s.Name) && over(s.ExpiresAt, a.Now()) }
	if rec.AuthState != record.Ready || !slices.ContainsFunc(rec.Secrets, passed) {
		return rec.AuthState
	}
	if m, err := a.Manifest(rec); err == nil && over(earliest(m, rec), a.Now()) {
		return record.Expired
	}
	return rec.AuthState
}

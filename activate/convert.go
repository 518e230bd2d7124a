package activate

import (
	"skald-connectors/activate/record"
	"skald-connectors/manifest"
)

// The record has shapes of its own, so that a change of the manifest's types
// never changes what is on disk.

func pinsOf(files []manifest.File) []record.FilePin {
	out := make([]record.FilePin, len(files))
	for i, f := range files {
		out[i] = record.FilePin(f)
	}
	return out
}

func serverRef(s manifest.Server) record.ServerRef {
	return record.ServerRef{Command: s.Command, Args: s.Args, Env: pairs(s.Env), URL: s.URL, Transport: s.Transport, Headers: pairs(s.Headers)}
}

func pairs(vars []manifest.EnvVar) [][2]string {
	var out [][2]string
	for _, v := range vars {
		out = append(out, [2]string{v.Name, v.Value})
	}
	return out
}

func authRef(a manifest.Auth) record.AuthRef {
	ref := record.AuthRef{Type: a.Type, Provider: a.Provider, Delivery: a.Delivery, Param: a.Param, Scopes: a.Scopes}
	if ref.Type == "" {
		ref.Type = "none"
	}
	if a.Deliver != nil {
		d := record.DeliverRef(*a.Deliver)
		ref.Deliver = &d
	}
	return ref
}

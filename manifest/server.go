package manifest

import (
	"slices"
	"strings"

	"skald-connectors/internal/exactjson"
)

const (
	transportStdio = "stdio"
	transportHTTP  = "streamable-http"
	transportSSE   = "sse"
)

// server reads mcp_config and the legacy forms beside it.
func (r *reader) server(obj exactjson.Value, m *Manifest) Server {
	config, ok := r.object(obj, "mcp_config")
	if !ok {
		r.sayMissing(obj, "mcp_config", Warning, "mcp-config-missing", "no mcp_config, expected an object")
	}
	s := Server{
		Command: r.text(config, "command"), Args: r.args(config), URL: r.text(config, "url"),
		Env: r.pairs(config, "env", validServerEnvName), Headers: r.pairs(config, "headers", validHeaderName),
	}
	if m.Type == typeRemote {
		r.remote(obj, config, s)
	} else {
		r.local(obj, &s, m.LaunchCommand)
	}
	s.Transport = r.transport(obj, config, m.Type)
	return s
}

func (r *reader) remote(obj, config exactjson.Value, s Server) {
	v, ok := config.Get("url")
	if !ok || s.URL == "" {
		r.sayMissing(obj, "mcp_config.url", Error, "url-missing", "no mcp_config.url, expected an https URL")
		r.breaks("mcp_config", "a remote connector without a url")
		return
	}
	if err := ValidURL(s.URL); err != nil {
		r.refuse(v, "url-invalid", "%v", err)
	}
}

// local takes the command from launch_command when mcp_config has none.
func (r *reader) local(obj exactjson.Value, s *Server, launch string) {
	if s.Command == "" && strings.TrimSpace(launch) != "" {
		words, err := SplitCommand(launch)
		v, _ := obj.Get("launch_command")
		if err != nil {
			r.refuse(v, "launch-command", "%v", err)
			return
		}
		r.say(v, Info, "launch-command-used", "mcp_config has no command; launch_command is split into words")
		s.Command, s.Args = words[0], append(words[1:], s.Args...)
	}
	if s.Command == "" {
		r.sayMissing(obj, "mcp_config.command", Error, "command-missing", "no mcp_config.command, expected a program")
		r.breaks("mcp_config", "a local connector without a command")
	}
	if strings.ContainsRune(s.Command, 0) || slices.ContainsFunc(s.Args, func(a string) bool { return strings.ContainsRune(a, 0) }) {
		r.breaks("mcp_config", "a command that holds a NUL character")
	}
}

// args reads the arguments; a lost one would change what the others mean.
func (r *reader) args(config exactjson.Value) []string {
	v, ok := get(config, "args")
	if !ok {
		return nil
	}
	if v.Kind != exactjson.Array {
		r.refuse(v, "args-not-an-array", "found %s, expected an array of strings", v.Kind)
		return nil
	}
	var args []string
	for _, item := range v.Items {
		s, ok := r.textOf(item)
		if !ok {
			r.breaks(pathTo(r.root, item.Start), "an argument that is not a text")
		}
		args = append(args, s)
	}
	return args
}

// pairs reads an object of texts in document order.
func (r *reader) pairs(config exactjson.Value, key string, valid func(string) error) []EnvVar {
	v, ok := get(config, key)
	if !ok {
		return nil
	}
	if v.Kind != exactjson.Object {
		r.refuse(v, key+"-not-an-object", "found %s, expected an object of texts", v.Kind)
		return nil
	}
	var list []EnvVar
	for _, member := range v.Members {
		if member.Value.Kind == exactjson.Null {
			continue
		}
		s, ok := r.textOf(member.Value)
		switch err := valid(member.Key); {
		case !ok:
			r.breaks(pathTo(r.root, member.Value.Start), "a value that is not a text")
		case err != nil:
			r.refuse(member.Value, key+"-name", "%v", err)
		case strings.ContainsRune(s, 0) || key == "headers" && strings.ContainsAny(s, "\r\n"):
			r.refuse(member.Value, key+"-value", "a value that holds a NUL character or a line end")
		}
		list = append(list, EnvVar{Name: member.Key, Value: s})
	}
	return list
}

// transport normalises the transport, which may stand at the top as well.
func (r *reader) transport(obj, config exactjson.Value, typ string) string {
	v, ok := get(config, "transport")
	if !ok {
		if v, ok = get(obj, "transport"); ok && typ == typeRemote {
			r.say(v, Info, "transport-at-top", "transport stands at the top, expected it in mcp_config")
		}
	}
	fallback := transportStdio
	if typ == typeRemote {
		fallback = transportHTTP
	}
	if !ok {
		return fallback
	}
	s, _ := r.textOf(v)
	switch {
	case typ != typeRemote && s == transportStdio, typ == typeRemote && (s == transportHTTP || s == transportSSE):
		return s
	case typ == typeRemote && s == "http":
		return transportHTTP
	case typ == typeRemote:
		r.refuse(v, "transport-unknown", "found %q, expected streamable-http, http or sse", s)
		return s
	}
	r.refuse(v, "transport-unknown", "found %q, expected stdio for a local connector", s)
	return s
}

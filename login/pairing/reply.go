package pairing

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"skald-connectors/form"
	"skald-connectors/internal/exactjson"
)

const (
	// imageLimit bounds a code as it is sent: a data URL of the largest image that is read, and then some.
	imageLimit = 2 << 20
	// textLimit is what fits into a code (ISO/IEC 18004, version 40, level L).
	textLimit = 2953
	// messageLimit bounds what is shown of the connector's message.
	messageLimit = 300
	// depth bounds the nesting of an answer.
	depth = 32
)

// readResult reads the result of login_status: an object in structuredContent, or as the text of its content. What cannot
// be read is odd.
func readResult(result []byte) event {
	doc, _, err := exactjson.Parse(result, depth)
	if err != nil || doc.Kind != exactjson.Object {
		return odd("its answer is no object")
	}
	if isError(doc) {
		return odd("the tool %s says: %s", StatusTool, cutText(resultText(doc)))
	}
	if inner, ok := doc.Get("structuredContent"); ok && inner.Kind == exactjson.Object {
		return readStatus(inner)
	}
	content, _ := doc.Get("content")
	for _, item := range content.Items {
		text, _ := item.Get("text")
		if inner, _, err := exactjson.Parse([]byte(text.Str), depth); err == nil && inner.Kind == exactjson.Object {
			return readStatus(inner)
		}
	}
	return odd("its answer names no state")
}

func odd(format string, args ...any) event {
	return event{kind: evOdd, detail: fmt.Sprintf(format, args...)}
}

// resultText joins the text of a result.
func resultText(doc exactjson.Value) string {
	var out []string
	content, _ := doc.Get("content")
	for _, item := range content.Items {
		if text, ok := item.Get("text"); ok && text.Kind == exactjson.String {
			out = append(out, text.Str)
		}
	}
	return strings.Join(out, " ")
}

// readStatus reads {state, qr, message}. Members of the wrong kind are as absent.
func readStatus(v exactjson.Value) event {
	text := func(key string) string {
		m, _ := v.Get(key)
		if m.Kind != exactjson.String {
			return ""
		}
		return m.Str
	}
	r := reply{state: text("state"), message: cutText(text("message"))}
	switch r.state {
	case "connecting", "ready", "logged_out":
	case "need_scan":
		if problem := r.takeCode(text("qr")); problem != "" {
			return odd("%s", problem)
		}
	default:
		return odd("the state %q is not known", cutText(r.state))
	}
	return event{kind: evAnswer, reply: r}
}

// takeCode takes the code: a data URL with an image or a text, or the text itself.
func (r *reply) takeCode(qr string) (problem string) {
	switch {
	case len(qr) > imageLimit:
		return fmt.Sprintf("its code has %d bytes", len(qr))
	case !strings.HasPrefix(qr, "data:"):
		if len(qr) > textLimit {
			return fmt.Sprintf("its code would say %d bytes", len(qr))
		}
		r.text = qr
		return ""
	}
	head, body, ok := strings.Cut(strings.TrimPrefix(qr, "data:"), ",")
	if !ok {
		return "its code is a data URL without data"
	}
	data, err := dataOf(head, body)
	switch {
	case err != nil || len(data) == 0:
		return "its code is a data URL that cannot be read"
	case strings.HasPrefix(head, "text/plain"):
		return r.takeCode(strings.TrimPrefix(string(data), "data:"))
	}
	r.image = data
	return ""
}

func dataOf(head, body string) ([]byte, error) {
	if !strings.HasSuffix(strings.TrimRight(head, " "), ";base64") {
		text, err := url.PathUnescape(body)
		return []byte(text), err
	}
	body = strings.Map(func(c rune) rune {
		if c == ' ' || c == '\n' || c == '\r' || c == '=' {
			return -1
		}
		return c
	}, body)
	return base64.RawStdEncoding.DecodeString(body)
}

// cutText bounds foreign text.
func cutText(s string) string {
	if utf8.RuneCountInString(s) <= messageLimit {
		return s
	}
	return string([]rune(s)[:messageLimit]) + "…"
}

// ToolProblem is what a result says that is an error of the tool; "" = it is none.
func ToolProblem(result []byte) string {
	doc, _, err := exactjson.Parse(result, depth)
	if err != nil {
		return "something that cannot be read"
	}
	if !isError(doc) {
		return ""
	}
	return form.Clean(cutText(resultText(doc)))
}

func isError(doc exactjson.Value) bool {
	flag, ok := doc.Get("isError")
	return ok && flag.Kind == exactjson.Bool && flag.Str == "true"
}

package login

import (
	"crypto/subtle"
	"net/url"
	"strings"
	"unicode"
)

// pasted reads what a person brought from the browser: the whole address that it was sent to, percent-encoded or not, the
// part after the "?", or the code alone. With an address the state decides as it does on loopback; a code alone is
// held by PKCE only.
func pasted(text, state string, judge func(url.Values) answer) (answer, string) {
	text = strings.TrimFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("<>\"'", r) || r == '\u200b' || r == '\ufeff'
	})
	if text == "" {
		return answer{}, "that was empty"
	}
	if len(text) > callbackHead {
		return answer{}, "that is too long to be an address or a code"
	}
	if lower := strings.ToLower(text); strings.HasPrefix(lower, "http%3a") || strings.HasPrefix(lower, "https%3a") {
		if plain, err := url.QueryUnescape(text); err == nil {
			text = plain
		}
	}
	if query, ok := queryOf(text); ok {
		q, err := url.ParseQuery(query)
		switch {
		case err != nil:
			return answer{}, "that address cannot be read"
		case !q.Has("code") && !q.Has("error"):
			return answer{}, "that address has no code in it; it is the one that the browser shows after you agreed"
		case !once(q, "state") || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1:
			return answer{}, "that address belongs to another sign-in; use the link above"
		}
		return judge(q), ""
	}
	code, mark, marked := strings.Cut(text, "#") // some pages show code#state
	if marked && mark != "" && mark != state {
		return answer{}, "that code belongs to another sign-in; use the link above"
	}
	if strings.Contains(code, "%") { // copied out of an address
		if plain, err := url.PathUnescape(code); err == nil {
			code = plain
		}
	}
	if !printable(code) || code == "" || len(code) > codeLimit {
		return answer{}, "that is neither an address nor a code"
	}
	return answer{code: code}, ""
}

// queryOf gives the query of an address, or the text itself when it is a bare query.
func queryOf(text string) (string, bool) {
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil {
			return "%", true // cannot be read
		}
		if u.RawQuery == "" && u.Fragment != "" {
			return u.Fragment, true
		}
		return u.RawQuery, true
	}
	if _, after, ok := strings.Cut(text, "?"); ok && strings.Contains(after, "=") {
		query, _, _ := strings.Cut(after, "#")
		return query, true
	}
	for _, name := range []string{"code=", "state=", "error=", "iss="} {
		if strings.HasPrefix(text, name) {
			return text, true
		}
	}
	return "", false
}

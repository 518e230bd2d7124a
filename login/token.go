package login

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"skald-connectors/internal/exactjson"
	"skald-connectors/keystore"
)

const (
	// requestLimit bounds one request to a provider, its answer included: a person waits for it.
	requestLimit = 20 * time.Second
	// replyLimit bounds a provider's reply; the largest honest ones (ID tokens with groups) have about 32 KiB.
	replyLimit = 1 << 20
	replyDepth = 32
	// tokenLimit is the most that the key store and an environment variable can hold with room for more.
	tokenLimit = 48 << 10
	// longestLife is the longest life of an access token that is believed.
	longestLife = 10 * 365 * 24 * time.Hour
)

// Client asks providers.
type Client struct {
	// HTTP has the policy for proxies and certificates; its redirects are not followed.
	HTTP *http.Client
	Now  func() time.Time
	// Rand gives random bytes; nil = the system's.
	Rand io.Reader
}

// asker is who asks a token endpoint, and how it names itself.
type asker struct {
	id     string
	secret keystore.Secret
	auth   string
}

// post sends a form to an endpoint of a provider, with the client's name in it, and gives the reply's object.
func (c *Client) post(ctx context.Context, endpoint, what string, who asker, form url.Values) (exactjson.Value, *ReplyError) {
	fail := &ReplyError{Host: hostOf(endpoint), What: what}
	if err := checkEndpoint(endpoint); err != nil {
		fail.Err = err
		return exactjson.Value{}, fail
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	basic := who.auth == "basic" && !who.secret.IsZero()
	if !basic {
		form.Set("client_id", who.id)
		if who.auth != "none" && !who.secret.IsZero() {
			form.Set("client_secret", who.secret.Reveal())
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		fail.Err = errors.New("the address cannot be used")
		return exactjson.Value{}, fail
	}
	if basic { // RFC 6749 section 2.3.1: both are form-encoded first
		pair := url.QueryEscape(who.id) + ":" + url.QueryEscape(who.secret.Reveal())
		req.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return c.reply(req, fail, form)
}

// reply sends a request and reads the object that comes back. sent are values that no message may repeat.
func (c *Client) reply(req *http.Request, fail *ReplyError, sent url.Values) (exactjson.Value, *ReplyError) {
	req.Header.Set("Accept", "application/json")
	resp, err := c.still().Do(req)
	if err != nil {
		fail.Err = withoutURL(err)
		return exactjson.Value{}, fail
	}
	defer resp.Body.Close()
	fail.Status = resp.StatusCode
	body, err := io.ReadAll(io.LimitReader(resp.Body, replyLimit+1))
	switch {
	case err != nil:
		fail.Err = withoutURL(err)
		return exactjson.Value{}, fail
	case len(body) > replyLimit:
		fail.Problem = fmt.Sprintf("the answer is longer than %d KiB", replyLimit>>10)
		return exactjson.Value{}, fail
	case resp.StatusCode/100 == 3:
		fail.Problem = fmt.Sprintf("it answered %d, a redirect, which is not followed", resp.StatusCode)
		if to, err := resp.Location(); err == nil {
			fail.location = to.String()
		}
		return exactjson.Value{}, fail
	}
	obj, problem := readObject(resp.Header.Get("Content-Type"), body)
	code := text(obj, "error")
	if code == "" && obj.Kind == exactjson.Object && text(obj, "access_token") == "" {
		if e, ok := obj.Get("error"); ok && e.Kind == exactjson.Object { // {"error":{"code":400,"message":"…"}}
			code = orElse(text(e, "status"), "error")
		}
	}
	switch {
	case code != "" && (resp.StatusCode/100 != 2 || text(obj, "access_token") == ""):
		fail.Code, fail.Problem = code, hide(text(obj, "error_description"), sent)
	case resp.StatusCode/100 != 2:
		fail.Problem = fmt.Sprintf("it answered %d", resp.StatusCode)
		if problem != "" {
			fail.Problem += ", " + problem
		}
	case problem != "":
		fail.Problem = fmt.Sprintf("it answered %d, %s", resp.StatusCode, problem)
	default:
		return obj, nil
	}
	return exactjson.Value{}, fail
}

// still is HTTP without redirects: they would carry the form elsewhere.
func (c *Client) still() *http.Client {
	client := *c.HTTP
	client.Timeout = 0 // the request has its own
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// readObject reads a reply that is JSON, or a form as older providers send. problem says what it is instead.
func readObject(kind string, body []byte) (obj exactjson.Value, problem string) {
	media, _, _ := mime.ParseMediaType(kind)
	trimmed := strings.TrimSpace(strings.TrimPrefix(string(body), "\ufeff"))
	switch {
	case trimmed == "":
		return obj, "and nothing in it"
	case strings.HasPrefix(trimmed, "<") || media == "text/html" && !strings.HasPrefix(trimmed, "{"):
		return obj, "a web page"
	case media == "application/x-www-form-urlencoded" && !strings.HasPrefix(trimmed, "{"):
		return formObject(trimmed)
	}
	obj, repeats, err := exactjson.Parse(body, replyDepth)
	switch {
	case err != nil:
		return exactjson.Value{}, "something that is not JSON"
	case obj.Kind != exactjson.Object:
		return exactjson.Value{}, "JSON that is no object"
	case len(repeats) > 0:
		return exactjson.Value{}, fmt.Sprintf("JSON in which %s stands twice", foreign(repeats[0].Key))
	}
	return obj, ""
}

func formObject(body string) (exactjson.Value, string) {
	q, err := url.ParseQuery(body)
	if err != nil {
		return exactjson.Value{}, "a form that cannot be read"
	}
	obj := exactjson.Value{Kind: exactjson.Object}
	for name, values := range q {
		if len(values) != 1 {
			return exactjson.Value{}, fmt.Sprintf("a form in which %s stands twice", foreign(name))
		}
		obj.Members = append(obj.Members, exactjson.Member{Key: name, Value: exactjson.Value{Kind: exactjson.String, Str: values[0]}})
	}
	return obj, ""
}

// hide drops a text in which a provider repeats what it was sent.
func hide(s string, sent url.Values) string {
	for name, values := range sent {
		for _, v := range values {
			if name != "client_id" && name != "grant_type" && name != "scope" && len(v) > 3 && strings.Contains(s, v) {
				return ""
			}
		}
	}
	return s
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// take puts the tokens of a reply into a credential (RFC 6749 section 5.1). What the reply leaves out stays as it was: the
// refresh token, and the scopes. The life of the old access token never becomes that of the new one.
func (c *Client) take(cred Credential, obj exactjson.Value, p Provider) (Credential, *ReplyError) {
	fail := &ReplyError{Host: hostOf(cred.TokenURL), What: codeTraded, Status: http.StatusOK}
	access, refresh := text(obj, "access_token"), text(obj, "refresh_token")
	if user, ok := obj.Get("authed_user"); ok && access == "" { // Slack, for scopes of a user
		access, refresh = text(user, "access_token"), text(user, "refresh_token")
	}
	kind := text(obj, "token_type")
	switch {
	case access == "":
		fail.Problem = "the answer has no access token"
	case !printable(access) || !printable(refresh):
		fail.Problem = "the token in the answer has characters that no header can carry"
	case len(access) > tokenLimit || len(refresh) > tokenLimit:
		fail.Problem = fmt.Sprintf("the token in the answer is longer than %d KiB", tokenLimit>>10)
	case kind != "" && !strings.EqualFold(kind, "bearer") && !strings.EqualFold(kind, "user") && !strings.EqualFold(kind, "bot"):
		fail.Problem = fmt.Sprintf("the token in the answer is of the type %s, expected bearer", foreign(kind))
	}
	if fail.Problem != "" {
		return cred, fail
	}
	cred.Access = keystore.NewSecret(access)
	if refresh != "" && refresh != cred.Refresh.Reveal() {
		cred.Rotates = cred.Rotates || !cred.Refresh.IsZero()
		cred.Refresh = keystore.NewSecret(refresh)
	}
	if scopes := splitScopes(text(obj, "scope"), p.Separator); len(scopes) > 0 {
		cred.Granted = scopes
	}
	cred.Obtained, cred.Expires, cred.Renewing = c.Now().UTC(), time.Time{}, time.Time{}
	if life := lifeOf(obj); life > 0 {
		cred.Expires = cred.Obtained.Add(life)
	}
	return cred, nil
}

// lifeOf reads expires_in: seconds, as a number or a string. What is missing or makes no sense is 0: not known.
func lifeOf(obj exactjson.Value) time.Duration {
	v, ok := obj.Get("expires_in")
	if !ok || v.Kind != exactjson.Number && v.Kind != exactjson.String {
		return 0
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(v.Str), 64)
	if err != nil || math.IsNaN(seconds) || seconds <= 0 || seconds > longestLife.Seconds() {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

func splitScopes(s, separator string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' || separator == "," && r == ',' })
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

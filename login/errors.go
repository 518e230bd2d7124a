package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// foreignLimit bounds text of others in our messages, in bytes.
const foreignLimit = 300

// foreign quotes a text of a provider for a message.
func foreign(s string) string {
	if len(s) > foreignLimit {
		s = strings.ToValidUTF8(s[:foreignLimit], "") + "…"
	}
	return strconv.QuoteToGraphic(s)
}

// NoClientError says that a provider is known and nobody has given a client of it yet.
type NoClientError struct {
	Slug, Title string
	Console     string // the page where a client is made; "" = unknown
	Known       bool   // its endpoints are known; else the whole provider has to be given
}

func (e *NoClientError) Error() string {
	if !e.Known {
		return fmt.Sprintf("signing in: the provider %q is not known here", e.Slug)
	}
	return fmt.Sprintf("signing in with %s: no client of it is set up here", e.Title)
}

// DeniedError says that the person, or the provider for them, said no.
type DeniedError struct {
	Code   string // of RFC 6749 section 4.1.2.1, e.g. access_denied
	Detail string // the provider's own words; "" = none
}

func (e *DeniedError) Error() string {
	text := "signing in: the provider refused"
	if e.Code == "access_denied" {
		text = "signing in: access was denied in the browser"
	} else if e.Code != "" {
		text += " (" + foreign(e.Code) + ")"
	}
	if e.Detail != "" {
		text += ": " + foreign(e.Detail)
	}
	return text
}

// AnswerError says that the answer that the browser brought cannot be used.
type AnswerError struct{ Problem string }

func (e *AnswerError) Error() string { return "signing in: " + e.Problem }

// TimeoutError says that nobody finished the sign-in in time.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("signing in: nothing came back from the browser within %s", e.After)
}

// ExpiredError says that a credential is no longer taken, and only a new sign-in helps.
type ExpiredError struct {
	Provider string // slug or host
	Detail   string // the provider's own words; "" = none
}

func (e *ExpiredError) Error() string {
	text := fmt.Sprintf("refreshing the sign-in with %s: it has expired or was revoked", e.Provider)
	if e.Detail != "" {
		text += " (" + foreign(e.Detail) + ")"
	}
	return text
}

// codeTraded is what a provider is asked for with the code of a sign-in.
const codeTraded = "a token"

// ReplyError says what was wrong with a provider's reply. Code is the error of RFC 6749 section 5.2, "" = the reply has
// none; Status is 0 where the network failed.
type ReplyError struct {
	Host, What string
	Status     int
	Code       string
	Problem    string
	Err        error

	location string // where a redirect leads
	hops     int
}

func (e *ReplyError) Error() string {
	text := fmt.Sprintf("asking %s for %s: ", e.Host, e.What)
	switch {
	case e.Err != nil:
		return text + e.Err.Error()
	case e.Code != "":
		text += fmt.Sprintf("it refused with %s", foreign(e.Code))
		switch {
		case e.Problem != "":
			text += ": " + foreign(e.Problem)
		case e.Code == "invalid_grant" && e.What == codeTraded:
			text += ", so the code is wrong, too old, or was used before"
		}
		return text
	}
	return text + e.Problem
}

// Unwrap gives the cause.
func (e *ReplyError) Unwrap() error { return e.Err }

// withoutURL takes the address, which may hold a code, out of an error of net/http.
func withoutURL(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err, u = u.Err, nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("it did not answer in time")
	}
	return err
}

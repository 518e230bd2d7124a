package fetch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// A webSource is a marketplace over HTTP.
type webSource struct {
	base *url.URL // no credentials, no final slash
	c    *client
}

func newWebSource(o Options, note func(Event)) (*webSource, error) {
	u, err := url.Parse(o.Location)
	if err != nil { // the error's text quotes the location, which may hold a password
		return nil, errors.New("the location is not a URL")
	}
	if why := refuseURL(u, o.AllowHTTP); why != "" {
		return nil, fmt.Errorf("%s: %s", plain(u), why)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return nil, fmt.Errorf("%s: a marketplace's address has no query and no fragment", plain(u))
	}
	base, why := onePlace(u)
	if why != "" {
		return nil, fmt.Errorf("%s: %s", plain(u), why)
	}
	asked := *base
	asked.User = u.User
	return &webSource{base: base, c: newClient(o, &asked, note)}, nil
}

// unsafeInName replaces what may not stand in a file name.
func unsafeInName(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
		return r
	}
	return '_'
}

func (s *webSource) id() (location, name string) {
	location = plain(s.base)
	name = strings.Map(unsafeInName, s.base.Hostname())
	if location != "https://"+name {
		name += "-" + shortHash(location)
	}
	return location, name
}

func (s *webSource) local() bool { return false }

// at is the address of a path below the base, each segment percent-encoded.
func (s *webSource) at(name string) *url.URL {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	u := *s.base
	u.RawPath = s.base.EscapedPath() + "/" + strings.Join(parts, "/")
	u.Path = s.base.Path + "/" + name
	return &u
}

func (s *webSource) index(ctx context.Context, known validators, take func(io.Reader, int64) error) (now validators, unchanged bool, err error) {
	q := question{url: s.at(indexName), header: http.Header{}, what: "the index", tries: retries}
	if known != (validators{}) {
		q.tries = retriesCached
	}
	switch {
	case known.ETag != "":
		q.header.Set("If-None-Match", known.ETag)
	case known.LastModified != "":
		q.header.Set("If-Modified-Since", known.LastModified)
	default:
		q.header.Set("Cache-Control", "no-cache")
	}
	err = s.c.get(ctx, q, func(resp *http.Response) error {
		now = validators{resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")}
		if unchanged = resp.StatusCode == http.StatusNotModified; unchanged {
			now = known
			return nil
		}
		body := bufio.NewReaderSize(resp.Body, copyBuffer)
		if head, _ := body.Peek(pageHead); startsMarkup(head) {
			return final{&WebPageError{Host: resp.Request.URL.Host, What: q.what}}
		}
		return take(body, resp.ContentLength)
	})
	return now, unchanged, err
}

// startsMarkup tells whether something begins like a web page; JSON never does.
func startsMarkup(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	return len(head) > 0 && head[0] == '<'
}

func (s *webSource) file(ctx context.Context, name string, about Event, take func(io.Reader, int64, string) error) error {
	q := question{url: s.at(name), what: fmt.Sprintf("%q", about.File), about: about, tries: retries}
	return s.c.get(ctx, q, func(resp *http.Response) error {
		page := &pageGuard{r: resp.Body}
		err := take(page, resp.ContentLength, resp.Request.URL.Host)
		var pin *PinError
		if errors.As(err, &pin) && page.isPage() && !strings.HasSuffix(name, ".html") {
			return final{&WebPageError{Host: resp.Request.URL.Host, What: q.what}}
		}
		return err
	})
}

// pageHead is how much of an answer is looked at; pages say what they are at once.
const pageHead = 512

// A pageGuard remembers how an answer began, to tell a web page from data that is merely wrong.
type pageGuard struct {
	r    io.Reader
	head []byte
}

func (p *pageGuard) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if room := pageHead - len(p.head); room > 0 {
		p.head = append(p.head, b[:min(n, room)]...)
	}
	return n, err
}

var pageStart = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--.{0,300}?-->\s*)*<(!doctype html|html|head|body|script|meta|title)\b`)
})

func (p *pageGuard) isPage() bool { return pageStart().Match(p.head) }

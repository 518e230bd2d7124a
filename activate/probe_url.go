package activate

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// HTTPClient makes the client of the remote probe: no redirects, since the
// credentials of a request go to the host that the manifest names and to no
// other, proxies and certificates as transport has them.
func HTTPClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport: transport,
		Timeout:   probeLimit,
		CheckRedirect: func(req *http.Request, _ []*http.Request) error {
			return fmt.Errorf("it redirects to %s, which is not followed", req.URL.Host)
		},
	}
}

// withoutURL drops the address from an error of net/http: it may carry a key.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// addQuery adds one encoded parameter to a URL.
func addQuery(address, name, value string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("the URL cannot be read")
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

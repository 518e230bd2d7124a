package main

import (
	"net/http"

	"skald-connectors/fetch"
)

// transport is what requests to remote connectors travel by: the proxies and
// certificate authorities of this run's environment.
func (a *app) transport() (http.RoundTripper, error) { return fetch.Transport(a.getenv) }

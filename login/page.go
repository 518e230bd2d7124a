package login

import (
	"html"
	"io"
	"log"
	"net/http"
	"strings"
)

// page is what the browser shows at the end: plain text, escaped when it is written.
type page struct{ Title, Text string }

func donePage(name string) page {
	return page{"Signed in", "You have signed in with " + name + ". You can close this window and go back to the terminal."}
}

func failedPage(err error) page {
	return page{"Not signed in", err.Error() + ". Nothing was stored. Go back to the terminal to see what you can do."}
}

func strayPage() page {
	return page{"Nothing to do here", "This address does not belong to the sign-in that is under way. Use the link in the terminal."}
}

// pageText has no script, no picture and no address: nothing of the request leaves this page. TITLE and TEXT stand where
// only text can be.
const pageText = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>TITLE</title>
<style>:root{color-scheme:light dark}body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1.5rem}</style>
</head><body><h1>TITLE</h1><p>TEXT</p></body></html>
`

func (p page) write(w http.ResponseWriter, status int) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	text := strings.NewReplacer("TITLE", html.EscapeString(p.Title), "TEXT", html.EscapeString(p.Text))
	_, _ = text.WriteString(w, pageText) // a browser that is gone has seen enough
}

// silent keeps the HTTP server's own remarks, which quote what anybody sends, off the terminal.
func silent() *log.Logger { return log.New(io.Discard, "", 0) }

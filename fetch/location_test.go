package fetch

import (
	"testing"
	"time"
)

// A marketplace has one address, however it is spelled: its keys are found by it.
func TestOneLocation(t *testing.T) {
	for given, want := range map[string]string{
		"https://Acme.example/m/":       "https://acme.example/m",
		"https://acme.example:443/m":    "https://acme.example/m",
		"https://acme.example:/m":       "https://acme.example/m",
		"https://acme.example./m":       "https://acme.example/m",
		"https://acme.example.:443/m":   "https://acme.example/m",
		"https://acme.example:4443/m":   "https://acme.example:4443/m",
		"https://acme.example:80/m":     "https://acme.example:80/m",
		"http://127.0.0.1:80/m":         "http://127.0.0.1/m",
		"http://[::1]:8080/m":           "http://[::1]:8080/m",
		"http://[::1]:80/m":             "http://[::1]/m",
		"https://user:pw@acme.example":  "https://acme.example",
		"https://acme.example:10443/m/": "https://acme.example:10443/m",

		"https://acme.example:0443/m":     "https://acme.example/m",
		"https://acme.example:08443/m":    "https://acme.example:8443/m",
		"https://acme.example/m/.":        "https://acme.example/m",
		"https://acme.example/x/../m":     "https://acme.example/m",
		"https://acme.example/x/%2e%2E/m": "https://acme.example/m",
		"https://acme.example/%6d":        "https://acme.example/m",
		"https://acme.example//m":         "https://acme.example/m",
		"https://acme.example/../../m":    "https://acme.example/m",
		"https://acme.example/%c3%A9":     "https://acme.example/%C3%A9",
		"https://acme.example/\u00e9":     "https://acme.example/%C3%A9",
		"https://acme.example/a b":        "https://acme.example/a%20b",
		"https://b\u00fccher.example":     "https://xn--bcher-kva.example",
		"https://BU\u0308CHER.example.":   "https://xn--bcher-kva.example",
		"https://XN--BCHER-KVA.example":   "https://xn--bcher-kva.example",
		"https://\uff41cme.example":       "https://acme.example",
		"https://acme\u3002example":       "https://acme.example",
		"http://[::ffff:127.0.0.1]:81":    "http://127.0.0.1:81",
		"http://[0:0:0:0:0:0:0:1]/":       "http://[::1]",
		"https://a_b.example":             "https://a_b.example",
	} {
		m, err := Open(Options{Location: given, CacheDir: t.TempDir(), Now: time.Now})
		if err != nil {
			t.Errorf("%s: %v", given, err)
		} else if m.Location() != want {
			t.Errorf("%s is %s, want %s", given, m.Location(), want)
		}
	}
}

// What has no one spelling is refused.
func TestNoLocation(t *testing.T) {
	for _, given := range []string{
		"https://acme.example:0", "https://acme.example:65536", "https://acme.example:99999999999", "https://acme.example/a%2Fb", "https://acme.example/a%2fb",
		"https://acme.example/a%5Cb", "https://acme.example/%00", "https://\u202e.example", "https://ac%6de.example",
	} {
		if m, err := Open(Options{Location: given, CacheDir: t.TempDir(), Now: time.Now}); err == nil {
			t.Errorf("%s is %s", given, m.Location())
		}
	}
}

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
	} {
		m, err := Open(Options{Location: given, CacheDir: t.TempDir(), Now: time.Now})
		if err != nil {
			t.Errorf("%s: %v", given, err)
		} else if m.Location() != want {
			t.Errorf("%s is %s, want %s", given, m.Location(), want)
		}
	}
}

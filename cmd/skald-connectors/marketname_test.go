package main

import "testing"

func TestNameFor(t *testing.T) {
	for location, want := range map[string]string{
		"https://connectors.acme.example": "acme",
		"https://acme.example/x":          "acme",
		"http://localhost:8080":           "localhost",
		"http://127.0.0.1:8080":           "127-0-0-1",
		"https://10.20.30.40/mirror":      "10-20-30-40",
		"https://[fd00::1]:8443":          "fd00--1",
		"/mnt/Mirror":                     "mirror",
	} {
		if got := nameFor(location); got != want {
			t.Errorf("nameFor(%q) = %q, expected %q", location, got, want)
		}
	}
}

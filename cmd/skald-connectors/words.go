package main

import (
	"slices"
	"strings"

	"skald-connectors/form"
)

// words is an error for people, on one line: where several stand in one, a line end is between them, which would be shown as \n.
func words(err error) string { return form.Clean(oneLine(err)) }

func oneLine(err error) string {
	text := err.Error()
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return strings.Replace(text, inner.Error(), oneLine(inner), 1)
		}
	case interface{ Unwrap() []error }:
		parts := e.Unwrap()
		joined, lines := make([]string, 0, len(parts)), make([]string, len(parts))
		for i, part := range parts {
			lines[i] = part.Error()
			if one := oneLine(part); !slices.Contains(joined, one) {
				joined = append(joined, one)
			}
		}
		return strings.Replace(text, strings.Join(lines, "\n"), strings.Join(joined, "; "), 1)
	}
	return text
}

// Package lazyre is a regular expression that is compiled when it is first asked. Its one job is to keep the start of the
// program free of patterns that most commands never use: compiling one costs some ten microseconds and as many pages of
// memory, and a program has dozens.
//
// It never hides a pattern that does not compile: the first use panics, and every pattern is used by a test.
package lazyre

import (
	"regexp"
	"sync"
)

// A Regexp is a pattern on its way to a *regexp.Regexp. It is safe for concurrent use.
type Regexp struct{ get func() *regexp.Regexp }

// New notes a pattern.
func New(pattern string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })}
}

// Get compiles the pattern, once.
func (r *Regexp) Get() *regexp.Regexp { return r.get() }

// MatchString is that of regexp.Regexp.
func (r *Regexp) MatchString(s string) bool { return r.get().MatchString(s) }

// FindStringSubmatch is that of regexp.Regexp.
func (r *Regexp) FindStringSubmatch(s string) []string { return r.get().FindStringSubmatch(s) }

// FindStringSubmatchIndex is that of regexp.Regexp.
func (r *Regexp) FindStringSubmatchIndex(s string) []int { return r.get().FindStringSubmatchIndex(s) }

// FindString is that of regexp.Regexp.
func (r *Regexp) FindString(s string) string { return r.get().FindString(s) }

// FindStringIndex is that of regexp.Regexp.
func (r *Regexp) FindStringIndex(s string) []int { return r.get().FindStringIndex(s) }

// ReplaceAllString is that of regexp.Regexp.
func (r *Regexp) ReplaceAllString(s, with string) string { return r.get().ReplaceAllString(s, with) }

// ReplaceAllStringFunc is that of regexp.Regexp.
func (r *Regexp) ReplaceAllStringFunc(s string, f func(string) string) string {
	return r.get().ReplaceAllStringFunc(s, f)
}

//go:build race

package catalog

// raced: the race detector makes the derivation of a key take a minute.
const raced = true

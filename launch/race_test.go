//go:build race

package launch

// raced: the race detector makes messages of 64 MiB take a minute.
const raced = true

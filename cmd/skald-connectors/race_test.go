//go:build race

package main

// raced: under the race detector a process takes several times its memory.
const raced = true

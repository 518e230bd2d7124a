// Command skald-connectors takes a connector from a marketplace to a working,
// verified, least-privilege tool inside whatever agent a person uses.
//
// This package is the only one that knows the arguments, the environment, the
// home folder, the clock, the terminal and the exit codes.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

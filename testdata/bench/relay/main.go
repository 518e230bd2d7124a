// Command relay starts the program that its arguments name and copies bytes between
// its own streams and that program's, by io.Copy and nothing else: the anchor of the
// launcher's benchmarks.
package main

import (
	"io"
	"log"
	"os"
	"os/exec"
)

func main() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	theirIn, in, err := os.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		log.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, os.Stderr
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	go func() { // the plain interfaces keep io.Copy from splicing
		io.Copy(struct{ io.Writer }{in}, struct{ io.Reader }{os.Stdin})
		in.Close()
	}()
	io.Copy(struct{ io.Writer }{os.Stdout}, struct{ io.Reader }{out})
}

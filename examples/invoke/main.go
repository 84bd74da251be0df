// Invoke shows how a batch and a stream of one agent come from the same events. Its fold command is a filter for shells
// and other languages.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 || os.Args[1] != "fold" {
		fmt.Fprintln(os.Stderr, "usage: invoke fold [-strict] < turns > batches")
		os.Exit(2)
	}
	os.Exit(runFold(os.Stdin, os.Stdout, os.Args[2:]))
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "tests" {
		return tests(args[1], os.Stdout)
	}
	if len(args) > 0 && args[0] == "allocs" {
		flags := flag.NewFlagSet("allocs", flag.ExitOnError)
		file := flags.String("baseline", "", "file of lines \"package benchmark allocations\"")
		write := flags.Bool("write", false, "update the numbers of the benchmarks in the file")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return allocs(*file, *write, os.Stdin, os.Stdout)
	}
	return errors.New("usage: report tests DIRECTORY, or report allocs -baseline FILE [-write]")
}

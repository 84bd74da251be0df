// Command kafka starts and stops a real Apache Kafka on this machine, without Docker, for use by hand: make kafka and
// make kafka-stop. It needs Java 17 or newer and, the first time, Maven.
//
//	kafka start [-port N] [-nodes 1|3]   start it unless it is running, and print its bootstrap addresses
//	kafka stop                           stop it and delete its data
//	kafka fetch                          only fetch the jars, for later use without a network
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := kafkatest.Command(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

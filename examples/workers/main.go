// Command workers runs an agent whose model and tools are programs in other languages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/embedded"
)

func main() {
	name := flag.String("agent", "support", "the agent, whose name its topics begin with")
	listen := flag.String("listen", "127.0.0.1:8080", "the address of the doors")
	partitions := flag.Int("partitions", 4, "the partitions of the topics that are created")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *name, *listen, int32(*partitions)); err != nil {
		log.Fatal(err)
	}
}

// run runs the agent until ctx ends. Without KAFKA_BOOTSTRAP_SERVERS it starts a broker, whose address it prints for the workers.
func run(ctx context.Context, name, listen string, partitions int32) (err error) {
	config := agent.Config{
		Parts: agent.Groups | agent.Doors, Listen: listen, Kafka: []processors.Option{processors.WithPartitions(partitions)},
	}
	if os.Getenv("KAFKA_BOOTSTRAP_SERVERS") == "" {
		broker, failed := embedded.Start(embedded.Config{})
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, broker.Close()) }()
		config.Brokers = broker.Addrs()
		fmt.Println("export KAFKA_BOOTSTRAP_SERVERS=" + strings.Join(config.Brokers, ","))
	}
	a, err := agent.New(name, config)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

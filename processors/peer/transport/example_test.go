package transport_test

import (
	"context"
	"log"
	"os"
	"os/signal"

	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/transport"
)

// A process sends the tasks of the agent support to peers. Any number of such processes share the work.
func Example() {
	brokers := []string{"localhost:9092"}
	file, err := peer.OpenSettings("config.json", peer.SettingsConfig{})
	if err != nil {
		log.Fatal(err)
	}
	publisher, err := processors.NewPublisher(brokers)
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()
	peers := transport.New(file.Settings, transport.Config{})
	defer peers.Close()
	s, err := sink.New("support", publisher, sink.Config{Peers: true, Transports: map[string]sink.Transport{transport.Kind: peers}})
	if err != nil {
		log.Print(err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Run(ctx, brokers) })
	group.Go(func() error { return peers.Run(ctx, "support", brokers) })
	if err := group.Wait(); err != nil {
		log.Print(err)
	}
}

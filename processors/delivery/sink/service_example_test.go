package sink_test

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// A process makes the attempts of the agent support: HTTP callbacks to one service. Any number of such
// processes share the work.
func Example() {
	brokers := []string{"localhost:9092"}
	services, err := sink.ParseServices("harbor:http://harbor:8000")
	if err != nil {
		log.Fatal(err)
	}
	publisher, err := processors.NewPublisher(brokers)
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()
	callbacks := sink.NewHTTP(services)
	defer callbacks.Close()
	s, err := sink.New("support", publisher, sink.Config{Transports: map[string]sink.Transport{topics.KindHTTP: callbacks}})
	if err != nil {
		log.Print(err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := s.Run(ctx, brokers); err != nil {
		log.Print(err)
	}
}

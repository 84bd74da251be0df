package capabilities

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// The roles that the kill test kills. The processor and the sink run in child processes, so that they can be killed.
const (
	roleProcessor = "processor"
	roleSink      = "sink"
	roleReceiver  = "receiver"
)

var roles = []string{roleProcessor, roleSink, roleReceiver}

// deliveryChild is the configuration of a role in a process.
type deliveryChild struct {
	Agent     string
	Brokers   []string
	Guarantee processors.Guarantee
	Mapping   string // of the sink
}

// killOptions are the options of the delivery group in the kill test.
func killOptions() delivery.Config {
	return delivery.Config{
		Lease: lease,
		DefaultService: delivery.Service{
			Budget: time.Hour, Initial: 20 * time.Millisecond, Longest: 300 * time.Millisecond, Attempts: 1000,
		},
		Breaker: delivery.Breaker{Failures: 5, Open: 50 * time.Millisecond, Longest: 100 * time.Millisecond},
	}
}

func runDeliveries(ctx context.Context, c deliveryChild) error {
	catalog, err := topics.For(c.Agent, topics.WithDeliveries())
	if err != nil {
		return err
	}
	graph, err := delivery.Graph(c.Agent, killOptions())
	if err != nil {
		return err
	}
	p, err := processors.New(c.Brokers, graph, append(options(catalog, c.Guarantee, deliveryPartitions, "deliveries"),
		processors.WithLogger(kill.Logger(zap.WarnLevel)))...)
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

func runSink(ctx context.Context, c deliveryChild) error {
	services, err := sink.ParseServices(c.Mapping)
	if err != nil {
		return err
	}
	to, err := processors.NewPublisher(c.Brokers)
	if err != nil {
		return err
	}
	s, err := sink.New(c.Agent, to,
		sink.Config{
			Transports: map[string]sink.Transport{topics.KindHTTP: sink.NewHTTP(services, sink.WithTimeout(attemptTimeout))}, Config: worker.Config{Grace: time.Second},
		})
	if err != nil {
		return err
	}
	// The brokers wait for a dead member until its group session expires. If another member joins before that, kfake waits
	// for max.poll.interval.ms.
	return s.Run(ctx, c.Brokers, processors.WithProperties(map[string]string{
		"session.timeout.ms": "1000", "heartbeat.interval.ms": "100", "max.poll.interval.ms": "8000",
	}))
}

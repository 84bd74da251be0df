package integration

import (
	"context"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// What a child is told: what it is, of which pipeline, and where the receivers are.
const (
	childPart      = "TURNTABLE_DELIVERY_CHILD"
	childBrokers   = "TURNTABLE_DELIVERY_BROKERS"
	childAgent     = "TURNTABLE_DELIVERY_AGENT"
	childGuarantee = "TURNTABLE_DELIVERY_GUARANTEE"
	childMapping   = "TURNTABLE_DELIVERY_MAPPING"
)

// The parts that are killed. Two are processes of their own, to be killed as processes are.
const (
	partProcessor = "processor"
	partSink      = "sink"
	partReceiver  = "receiver"
)

// underKills are the rules of deliveries while everything is killed.
func underKills() []delivery.Option {
	return []delivery.Option{
		delivery.WithLease(lease),
		delivery.WithDefaultService(delivery.Service{
			Budget: time.Hour, Initial: 20 * time.Millisecond, Longest: 300 * time.Millisecond, Attempts: 1000,
		}),
		delivery.WithBreaker(delivery.Breaker{Failures: 5, Open: 50 * time.Millisecond, Longest: 100 * time.Millisecond}),
	}
}

// beChild makes the test binary be a part, until it is killed or its parent has gone.
func beChild(part string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	brokers, agent := strings.Split(os.Getenv(childBrokers), ","), os.Getenv(childAgent)
	var err error
	switch part {
	case partProcessor:
		err = beProcessor(brokers, agent, processors.Guarantee(os.Getenv(childGuarantee)))
	default:
		err = beSink(brokers, agent, os.Getenv(childMapping))
	}
	log.Fatal(part, " ends: ", err)
}

func beProcessor(brokers []string, agent string, guarantee processors.Guarantee) error {
	catalog, err := topics.For(agent, topics.WithDeliveries())
	if err != nil {
		return err
	}
	graph, err := delivery.Graph(agent, underKills()...)
	if err != nil {
		return err
	}
	p, err := processors.New(brokers, graph, options(catalog, "deliveries", guarantee)...)
	if err != nil {
		return err
	}
	return p.Run(context.Background())
}

func beSink(brokers []string, agent, mapping string) error {
	services, err := sink.ParseServices(mapping)
	if err != nil {
		return err
	}
	to, err := processors.NewPublisher(brokers)
	if err != nil {
		return err
	}
	s, err := sink.New(agent, to,
		sink.WithTransport(topics.KindHTTP, sink.NewHTTP(services, sink.WithTimeout(timeout))),
		sink.WithDrain(time.Second))
	if err != nil {
		return err
	}
	// The brokers wait for a dead member for as long as its session; kfake, where another one joins before that has
	// ended, for as long as a rebalance may take.
	return s.Run(context.Background(), brokers, processors.WithProperties(map[string]string{
		"session.timeout.ms": "1000", "heartbeat.interval.ms": "100", "max.poll.interval.ms": "8000",
	}))
}

// child is a part that runs as a process. kill sends SIGKILL.
type child struct{ kill func() }

func (r *rig) child(part, mapping string) *child {
	r.t.Helper()
	self, err := os.Executable()
	require.NoError(r.t, err)
	cmd := exec.CommandContext(r.t.Context(), self)
	cmd.Env = append(os.Environ(), childPart+"="+part, childBrokers+"="+strings.Join(r.brokers, ","),
		childAgent+"="+r.agent, childGuarantee+"="+string(r.guarantee), childMapping+"="+mapping)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // its end tells the child that its parent has gone
	require.NoError(r.t, err)
	require.NoError(r.t, cmd.Start())
	dead := false
	c := &child{}
	c.kill = func() {
		if !dead {
			dead = true
			require.NoError(r.t, cmd.Process.Kill())
			require.Error(r.t, cmd.Wait())
			_ = stdin.Close()
		}
	}
	r.t.Cleanup(c.kill)
	return c
}

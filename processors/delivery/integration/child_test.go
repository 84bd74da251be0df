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

// The environment variables of a child process.
const (
	childRole      = "TURNTABLE_DELIVERY_CHILD"
	childBrokers   = "TURNTABLE_DELIVERY_BROKERS"
	childAgent     = "TURNTABLE_DELIVERY_AGENT"
	childGuarantee = "TURNTABLE_DELIVERY_GUARANTEE"
	childMapping   = "TURNTABLE_DELIVERY_MAPPING"
)

// The roles that the kill test kills. The processor and the sink run in child processes, so that they can be killed.
const (
	roleProcessor = "processor"
	roleSink      = "sink"
	roleReceiver  = "receiver"
)

// killOptions are the options of the delivery group in the kill test.
func killOptions() []delivery.Option {
	return []delivery.Option{
		delivery.WithLease(lease),
		delivery.WithDefaultService(delivery.Service{
			Budget: time.Hour, Initial: 20 * time.Millisecond, Longest: 300 * time.Millisecond, Attempts: 1000,
		}),
		delivery.WithBreaker(delivery.Breaker{Failures: 5, Open: 50 * time.Millisecond, Longest: 100 * time.Millisecond}),
	}
}

// runChild runs a role in this process until it is killed or its parent has ended.
func runChild(role string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	brokers, agent := strings.Split(os.Getenv(childBrokers), ","), os.Getenv(childAgent)
	var err error
	switch role {
	case roleProcessor:
		err = runProcessor(brokers, agent, processors.Guarantee(os.Getenv(childGuarantee)))
	default:
		err = runSink(brokers, agent, os.Getenv(childMapping))
	}
	log.Fatal(role, " ended: ", err)
}

func runProcessor(brokers []string, agent string, guarantee processors.Guarantee) error {
	catalog, err := topics.For(agent, topics.WithDeliveries())
	if err != nil {
		return err
	}
	graph, err := delivery.Graph(agent, killOptions()...)
	if err != nil {
		return err
	}
	p, err := processors.New(brokers, graph, options(catalog, "deliveries", guarantee)...)
	if err != nil {
		return err
	}
	return p.Run(context.Background())
}

func runSink(brokers []string, agent, mapping string) error {
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
	// The brokers wait for a dead member until its group session expires. If another member joins before that, kfake waits
	// for max.poll.interval.ms.
	return s.Run(context.Background(), brokers, processors.WithProperties(map[string]string{
		"session.timeout.ms": "1000", "heartbeat.interval.ms": "100", "max.poll.interval.ms": "8000",
	}))
}

// child is a role that runs in a process. kill sends SIGKILL.
type child struct{ kill func() }

func (r *fixture) child(role, mapping string) *child {
	r.t.Helper()
	self, err := os.Executable()
	require.NoError(r.t, err)
	cmd := exec.CommandContext(r.t.Context(), self)
	cmd.Env = append(os.Environ(), childRole+"="+role, childBrokers+"="+strings.Join(r.brokers, ","),
		childAgent+"="+r.agent, childGuarantee+"="+string(r.guarantee), childMapping+"="+mapping)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // its end of file tells the child that the parent has ended
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

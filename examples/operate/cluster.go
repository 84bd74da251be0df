package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// cluster is the brokers, and what they have of the agent.
type cluster struct {
	client  sarama.Client
	admin   sarama.ClusterAdmin
	names   map[string]bool // of all topics
	on      []capability
	catalog topics.Catalog // of the capabilities that are on
	to      *processors.KafkaPublisher
}

// capability is a set of topics that an agent has or has not.
type capability struct {
	name   string
	option topics.CatalogOption
}

var capabilities = []capability{
	{"compaction", topics.WithCompaction()},
	{"deliveries", topics.WithDeliveries()},
	{"events", topics.WithEvents()},
	{"gates", topics.WithGates()},
	{"peers", topics.WithPeers()},
	{"channels", topics.WithChannels()},
	{"memoir", topics.WithMemoir()},
	{"costs", topics.WithCosts()},
	{"latencies", topics.WithLatencies()},
	{"crews", topics.WithCrews()},
}

// connect connects and reads which topics exist. It fails with a line that names cause and remedy.
func (o *operator) connect(ctx context.Context) (*cluster, error) {
	stop := o.slow("the brokers %s", strings.Join(o.brokers, ","))
	defer stop()
	client, err := processors.Connect(ctx, o.brokers, o.options...)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: check --brokers (KAFKA_BOOTSTRAP_SERVERS), the network, and whether Kafka runs", err)
		}
		return nil, err
	}
	c := &cluster{client: client, names: map[string]bool{}}
	o.cluster = c
	if c.admin, err = within(ctx, "the controller", func() (sarama.ClusterAdmin, error) {
		return sarama.NewClusterAdminFromClient(client)
	}); err != nil {
		return nil, err
	}
	names, err := within(ctx, "the list of topics", client.Topics)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		c.names[name] = true
	}
	if c.to, err = processors.NewPublisher(o.brokers, o.options...); err != nil {
		return nil, err
	}
	return c, c.detect(o.agent)
}

// detect finds out which capabilities the agent has: those of which a topic exists.
func (c *cluster) detect(agent string) error {
	base, err := topics.For(agent)
	if err != nil {
		return err
	}
	options, err := processors.CatalogOptionsFromEnv(os.LookupEnv)
	if err != nil {
		return err
	}
	for _, capability := range capabilities {
		with, err := topics.For(agent, capability.option)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(added(base, with), func(s topics.Spec) bool { return c.names[s.Name] }) {
			c.on, options = append(c.on, capability), append(options, capability.option)
		}
	}
	c.catalog, err = topics.For(agent, options...)
	return err
}

// has reports whether the agent has a capability.
func (c *cluster) has(name string) bool {
	return slices.ContainsFunc(c.on, func(on capability) bool { return on.name == name })
}

// added returns the topics that with creates and base does not.
func added(base, with topics.Catalog) (specs []topics.Spec) {
	before := base.Specs()
	for i, s := range with.Specs() {
		if s.Created && !before[i].Created {
			specs = append(specs, s)
		}
	}
	return specs
}

// exists reports whether the brokers have a topic.
func (c *cluster) exists(topic string) bool { return c.names[topic] }

// need fails if a topic does not exist.
func (c *cluster) need(topic string) error {
	if c.names[topic] {
		return nil
	}
	hint := "check --agent, and that a process with the agent's groups has run, which creates it"
	if !strings.HasPrefix(topic, string(c.catalog.Group())) {
		hint = "check --agent, and that the agent has this capability"
	}
	return fmt.Errorf("the topic %s does not exist: %s", topic, hint)
}

func (c *cluster) close() {
	briefly(func() {
		if c.to != nil {
			_ = c.to.Close()
		}
		_ = c.client.Close()
	})
}

// briefly waits until end has returned, for a moment only: the program exits, and brokers may hang.
func briefly(end func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end()
	}()
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// within returns what ask returns, or fails when ctx ends first: requests of Sarama cannot be canceled.
func within[T any](ctx context.Context, what string, ask func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := ask()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return a.value, fmt.Errorf("%s: %w", what, a.err)
		}
		return a.value, nil
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("no answer about %s: %w; the broker hangs or is overloaded: try again, or set a longer --timeout",
			what, context.Cause(ctx))
	}
}

package delivery

import (
	"fmt"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-delivery-streams" for processors.New: the deliveries of an agent's outputs, in one row
// per session. It looks up routes in the table of RoutesGraph, which must run too, in this process or in another. It
// returns an error if the agent's name is invalid, or one that wraps ErrConfig.
func Graph(agent string, cfg Config) (*goka.GroupGraph, error) {
	catalog, err := configure(agent, &cfg)
	if err != nil {
		return nil, err
	}
	m := &machine.Machine[*deliveryrow.State, event]{
		Table: deliveryrow.Table, Broken: reasonBroken, Due: func(read time.Time) event { return deadlineCame{read} },
		Apply: func(c *processors.Context, row *deliveryrow.State, e event) (machine.Outcome[*deliveryrow.State], error) {
			config := cfg
			config.RecordLimit = min(config.RecordLimit, c.MaxRecordBytes())
			return apply(row, c.Key(), e, circuits(c, catalog), c.Now(), catalog, config), nil
		},
	}
	output := func(r *machine.Record, v topics.Output) event { return outputArrived{r, v} }
	secret := processors.Confidential[topics.Output]() // it may contain a bearer token
	inputs := []processors.Source{
		machine.Input(m, catalog.MessageOutput, output, secret),
		machine.Input(m, catalog.ReplyTo, func(r *machine.Record, v topics.Route) event { return routeGiven{r, v} },
			processors.Confidential[topics.Route]()),
		machine.Input(m, catalog.DeliveryReceipts, func(r *machine.Record, v topics.Receipt) event { return receiptArrived{r, v} }),
		machine.Input(m, catalog.DeliveryControl, func(r *machine.Record, v topics.DeliveryControl) event { return controlled{r, v} }),
	}
	if cfg.PeerCallbacks {
		inputs = append(inputs, machine.Input(m, catalog.PeerCallbacks, output, secret))
	}
	if cfg.Channels {
		inputs = append(inputs, machine.Input(m, catalog.ChannelMessages,
			func(r *machine.Record, v topics.Output) event { return messageGiven{r, v} }))
	}
	return m.Graph(catalog.DeliveryGroup(), inputs,
		goka.Lookup(catalog.DeliveryRoutes(), deliveryrow.CircuitTable.Codec()),
		machine.Output(catalog.Deliveries), machine.Output(catalog.DeliveryReceipts), machine.Output(catalog.DeliveryDLQ),
		machine.Output(catalog.ReplyTo)), nil
}

// configure completes c and returns the catalog of an agent.
func configure(agent string, c *Config) (topics.Catalog, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return catalog, fmt.Errorf("delivery: %w", err)
	}
	return catalog, c.complete()
}

// circuits looks up routes in the table of RoutesGraph. That table is stale by some milliseconds, or for as long as that
// group does not run. This is harmless: an attempt that a current table would have prevented is deferred by the sink, or
// fails and is retried.
func circuits(c *processors.Context, catalog topics.Catalog) routes {
	return func(key string) gate {
		circuit, err := deliveryrow.CircuitTable.Of(c.Lookup(catalog.DeliveryRoutes(), key))
		if err != nil {
			return gate{}
		}
		return circuitGate(circuit, c.Now())
	}
}

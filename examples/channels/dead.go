package main

import (
	"context"
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// deadDelivery returns the first dead delivery of the concierge, and waits for it.
func (p *play) deadDelivery(ctx context.Context) (topics.DeadDelivery, error) {
	catalog, err := topics.For(concierge)
	if err != nil {
		return topics.DeadDelivery{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan topics.DeadDelivery, 1)
	follower, err := processors.NewTableFollower(p.brokers, []string{catalog.DeliveryDLQ.Name()}, func(in processors.Inbound) {
		if d := catalog.DeliveryDLQ.Codec().Unmarshal(in.Value); d.Err == nil {
			select {
			case found <- d.Value:
			default: // one is enough
			}
		}
	})
	if err != nil {
		return topics.DeadDelivery{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- follower.Run(ctx) }()
	select {
	case d := <-found:
		cancel()
		return d, <-ended
	case err := <-ended:
		return topics.DeadDelivery{}, fmt.Errorf("%w: no dead delivery: %w", errUnexpected, err)
	}
}

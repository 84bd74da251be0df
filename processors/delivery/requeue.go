package delivery

import (
	"context"
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Publisher writes records and returns nil when the brokers have acknowledged all of them. *processors.Publisher is
// one.
type Publisher interface {
	Publish(ctx context.Context, records ...processors.Outbound) error
}

// Requeue has a dead delivery of a session tried again, under its id and with a new budget: it writes a record to
// {agent}-delivery-control. A delivery that is not dead, or no longer kept (WithKeepDead), stays as it is; the record
// then goes to the group's dead letters.
func Requeue(ctx context.Context, to Publisher, agent, session, deliveryID string) error {
	catalog, err := topics.For(agent)
	if err != nil {
		return fmt.Errorf("delivery: %w", err)
	}
	out, err := processors.OutboundOf(catalog.DeliveryControl, session,
		topics.DeliveryControl{Action: topics.ActionRequeue, DeliveryID: deliveryID}, "")
	if err != nil {
		return err
	}
	return to.Publish(ctx, out)
}

package delivery

import (
	"context"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Requeue asks the delivery group to retry a dead delivery of a session, under the same ID and with a new budget: it
// writes a record to {agent}-delivery-control and returns when the record is acknowledged. If the delivery is not dead or
// no longer kept (Config.KeepDead), nothing is delivered and the record goes to the group's dead-letter topic.
func Requeue(ctx context.Context, to processors.Publisher, agent, session, deliveryID string) error {
	return requeue(ctx, to, agent, session, deliveryID, "", "")
}

// requeue writes the record with an ID, empty for none. The group applies an ID once.
func requeue(ctx context.Context, to processors.Publisher, agent, session, deliveryID, id, by string) error {
	catalog, err := topics.For(agent)
	if err != nil {
		return fmt.Errorf("delivery: %w", err)
	}
	out, err := processors.OutboundOf(catalog.DeliveryControl, session,
		topics.DeliveryControl{Action: topics.ActionRequeue, DeliveryID: deliveryID}, id)
	if err != nil {
		return err
	}
	if by != "" {
		out.Headers = out.Headers.Merged(goka.Headers{topics.HeaderBy: []byte(by)})
	}
	return to.Publish(ctx, out)
}

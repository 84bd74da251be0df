package email

import (
	"context"
	"hash/fnv"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// order passes the events of a conversation on one after the other. Conversations share its lanes.
type order struct {
	receiver adapter.Receiver
	lanes    [64]chan struct{}
}

func newOrder(r adapter.Receiver) *order {
	o := &order{receiver: r}
	for i := range o.lanes {
		o.lanes[i] = make(chan struct{}, 1)
	}
	return o
}

// receive returns what the receiver does, or the error of ctx.
func (o *order) receive(ctx context.Context, in adapter.Inbound) error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(in.Origin.Recipient + "\x00" + in.Origin.Thread))
	lane := o.lanes[h.Sum32()%uint32(len(o.lanes))]
	select {
	case lane <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-lane }()
	return o.receiver.Receive(ctx, in)
}

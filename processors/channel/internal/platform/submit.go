package platform

import (
	"context"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/inorder"
)

// ErrBusy is returned by Submit when too many events are in progress: the platform sends the event again.
var ErrBusy = inorder.ErrBusy

// Submit passes an event to the receiver after the earlier ones of its conversation, which is its channel, account, recipient and
// thread. It returns the receiver's error, ErrBusy, or the error of ctx, also if that ends while the event waits. The error is logged.
func (d *Door) Submit(ctx context.Context, to adapter.Receiver, in adapter.Inbound) error {
	err := d.turns.Do(ctx, in.Origin.Session(""), func() error { return to.Receive(ctx, in) })
	if err != nil {
		d.log.Warn("an event was not handled; the platform sends it again", zap.String("channel", in.Origin.Channel),
			zap.String("event", adapter.Code(in.Event)))
	}
	return err
}

// Receiver returns a receiver that submits events to another one.
func (d *Door) Receiver(to adapter.Receiver) adapter.Receiver {
	return adapter.ReceiverFunc(func(ctx context.Context, in adapter.Inbound) error { return d.Submit(ctx, to, in) })
}

// Pass submits the event of a request. It returns taken, or Later if the receiver has not taken the event within a time (0: the
// request's).
func (d *Door) Pass(r *http.Request, within time.Duration, to adapter.Receiver, in adapter.Inbound, taken Reply) Reply {
	ctx := r.Context()
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	if d.Submit(ctx, to, in) != nil {
		return Later
	}
	return taken
}

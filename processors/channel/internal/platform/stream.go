package platform

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/clock"
)

// waitingEvents is how many events of a connection wait to be handled. It is not read while there are more.
const waitingEvents = 64

// Stream reads messages from a connection, passes those that take returns true for to handle, in order, and runs alive meanwhile,
// until one of them fails or ctx ends. Messages that were read are handled also when the connection is lost, because the platform may
// not send them again. The error is that of the connection, of take or of alive.
func Stream[M any](
	ctx context.Context, conn *Conn, alive func(context.Context) error, take func(context.Context, M) (bool, error), handle func(M) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return alive(ctx) })
	events := make(chan M, waitingEvents)
	group.Go(func() error {
		defer close(events)
		for {
			var m M
			if err := conn.Read(ctx, &m); err != nil {
				return err
			}
			event, err := take(ctx, m)
			if err != nil {
				return err
			}
			if !event {
				continue
			}
			select {
			case events <- m:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	for m := range events {
		if handle(m) != nil {
			cancel()
			break
		}
	}
	return group.Wait()
}

// Persist calls handle until it returns nil, with the waits of Reconnect. It returns the error of ctx if that ends before.
func Persist(ctx context.Context, c clock.Clock, handle func() error) error {
	for failed := 0; handle() != nil; failed++ {
		if !clock.Sleep(ctx, c, ReconnectWait(failed)) {
			return ctx.Err()
		}
	}
	return nil
}

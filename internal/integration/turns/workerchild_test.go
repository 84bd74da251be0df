package turns

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker"
)

// workerChild is the configuration of a process that is a worker.
type workerChild struct {
	Group, Name string
	Brokers     []string
	Mode        worker.Mode
}

// The settings of workers in these tests. The lock is short, so that a call can last for many of them.
const (
	workerLock = 2 * time.Second
	slowCall   = 6 * workerLock
)

// runWorker is a worker. It writes a record for the begin and the end of each call.
func runWorker(ctx context.Context, c workerChild) error {
	to, err := processors.NewPublisher(c.Brokers)
	if err != nil {
		return err
	}
	defer to.Close()
	say := func(ctx context.Context, r worker.Record, what string) error {
		return to.Publish(ctx, processors.Outbound{
			Topic: c.Group + "-calls", Key: string(r.Key), Value: fmt.Appendf(nil, "%s %s %s %d", what, r.Value, c.Name, r.Deliveries),
		})
	}
	handle := func(ctx context.Context, r worker.Record) error {
		if err := say(ctx, r, "began"); err != nil {
			return err
		}
		if strings.HasPrefix(string(r.Value), "slow") {
			select {
			case <-time.After(slowCall):
			case <-ctx.Done():
				what := "interrupted"
				if errors.Is(context.Cause(ctx), worker.ErrLost) {
					what = "lost"
				}
				_ = say(context.Background(), r, what)
				return ctx.Err()
			}
		}
		return say(ctx, r, "ended")
	}
	w, err := worker.New([]string{c.Group + "-in"}, handle, worker.Config{
		Group: c.Group, Concurrency: 4, Lock: workerLock, Drop: true, Mode: c.Mode, Logger: kill.Logger(zap.WarnLevel),
	})
	if err != nil {
		return err
	}
	return w.Run(ctx, c.Brokers)
}

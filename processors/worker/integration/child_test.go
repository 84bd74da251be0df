package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker"
)

// The environment variables of a child process.
const (
	childBrokers = "WORKER_CHILD_BROKERS"
	childGroup   = "WORKER_CHILD_GROUP"
	childMode    = "WORKER_CHILD_MODE"
	childName    = "WORKER_CHILD_NAME"
	childLog     = "WORKER_CHILD_LOG"
)

// The settings of workers in these tests. The lock is short, so that a call can last for many of them.
const (
	lock     = 2 * time.Second
	slowCall = 6 * lock
)

// child is the main function of a worker process. It writes a record for the begin and the end of each call.
func child() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	brokers, group, name := strings.Split(os.Getenv(childBrokers), ","), os.Getenv(childGroup), os.Getenv(childName)
	to, err := processors.NewPublisher(brokers)
	if err != nil {
		return err
	}
	defer to.Close()
	say := func(ctx context.Context, r worker.Record, what string) error {
		return to.Publish(ctx, processors.Outbound{
			Topic: group + "-calls", Key: string(r.Key), Value: fmt.Appendf(nil, "%s %s %s %d", what, r.Value, name, r.Deliveries),
		})
	}
	mode := worker.ShareGroup
	if os.Getenv(childMode) == worker.ConsumerGroup.String() {
		mode = worker.ConsumerGroup
	}
	logger := zap.NewNop()
	if os.Getenv(childLog) != "" {
		logger = zap.Must(zap.NewDevelopment())
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
	w, err := worker.New(group, []string{group + "-in"}, handle, worker.WithConcurrency(4), worker.WithLock(lock), worker.WithDrop(),
		worker.WithMode(mode), worker.WithLogger(logger))
	if err != nil {
		return err
	}
	return w.Run(ctx, brokers)
}

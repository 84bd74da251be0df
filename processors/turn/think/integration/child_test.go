package integration

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
)

// The environment variables of a child process.
const (
	childAgent   = "THINK_CHILD_AGENT"
	childBrokers = "THINK_CHILD_BROKERS"
	childMode    = "THINK_CHILD_MODE"
	childName    = "THINK_CHILD_NAME"
	childModel   = "THINK_CHILD_MODEL" // the provider's address
	childLog     = "THINK_CHILD_LOG"
)

// The settings of workers in these tests: the lock of share groups and the session timeout of consumer groups. They are short,
// as the calls are. Without kills to count they are twice as long, because other tests then use the CPU too.
var lock, sessionTimeout = atLeast(2 * time.Second), atLeast(3 * time.Second)

func atLeast(d time.Duration) time.Duration {
	if os.Getenv(killsVariable) == "" {
		return 2 * d
	}
	return d
}

// child is the main function of a model worker.
func child() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	brokers, name, at := strings.Split(os.Getenv(childBrokers), ","), os.Getenv(childName), os.Getenv(childModel)
	to, err := processors.NewPublisher(brokers)
	if err != nil {
		return err
	}
	defer to.Close()
	model := think.Func(func(ctx context.Context, s think.Step) (think.Reply, error) {
		if err := callModel(ctx, at, s.SessionID, s.Key, name); err != nil {
			return think.Reply{}, err
		}
		return think.Say("Berth N4 is free."), nil
	})
	w, err := think.New(os.Getenv(childAgent), to, model, think.WithLogger(childLogger()),
		think.WithWorker(worker.WithMode(modeOfChild()), worker.WithLock(lock)))
	if err != nil {
		return err
	}
	return w.Run(ctx, brokers, processors.WithProperties(map[string]string{
		"session.timeout.ms":    fmt.Sprint(sessionTimeout.Milliseconds()),
		"heartbeat.interval.ms": fmt.Sprint(sessionTimeout.Milliseconds() / 10),
	}))
}

func childLogger() *zap.Logger {
	if os.Getenv(childLog) == "" {
		return zap.NewNop()
	}
	return zap.Must(zap.NewDevelopment())
}

func modeOfChild() worker.Mode {
	if os.Getenv(childMode) == worker.ConsumerGroup.String() {
		return worker.ConsumerGroup
	}
	return worker.ShareGroup
}

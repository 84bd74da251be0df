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

// childModel is the environment variable with the provider's address of a model worker. The child's group is its agent.
const childModel = "WORKER_CHILD_MODEL"

// sessionTimeout is the session timeout of model workers in consumer groups: short, as the lengths of calls are.
const sessionTimeout = 3 * time.Second

// modelChild is the main function of a model worker.
func modelChild() error {
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
	w, err := think.New(os.Getenv(childGroup), to, model, think.WithLogger(childLogger()),
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

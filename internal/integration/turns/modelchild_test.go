package turns

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
)

// modelChild is the configuration of a process that is a model worker.
type modelChild struct {
	Agent, Name string
	Brokers     []string
	Mode        worker.Mode
	Model       string // the provider's address
}

// The settings of workers in these tests: the lock of share groups and the session timeout of consumer groups. They are short,
// as the calls are. Without kills to count they are twice as long, because other tests then use the CPU too.
var modelLock, modelSession = atLeast(2 * time.Second), atLeast(3 * time.Second)

func atLeast(d time.Duration) time.Duration {
	if !measured() {
		return 2 * d
	}
	return d
}

// runModel is a model worker.
func runModel(ctx context.Context, c modelChild) error {
	to, err := processors.NewPublisher(c.Brokers)
	if err != nil {
		return err
	}
	defer to.Close()
	model := think.Func(func(ctx context.Context, s think.Step) (think.Reply, error) {
		if err := callModel(ctx, c.Model, s.SessionID, s.Key, c.Name); err != nil {
			return think.Reply{}, err
		}
		return think.Say("Berth N4 is free."), nil
	})
	w, err := think.New(c.Agent, to, model, think.Config{
		Config: worker.Config{Logger: kill.Logger(zap.WarnLevel), Mode: c.Mode, Lock: modelLock},
	})
	if err != nil {
		return err
	}
	return w.Run(ctx, c.Brokers, processors.WithProperties(map[string]string{
		"session.timeout.ms":    fmt.Sprint(modelSession.Milliseconds()),
		"heartbeat.interval.ms": fmt.Sprint(modelSession.Milliseconds() / 10),
	}))
}

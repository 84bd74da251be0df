package turns

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
)

// child is the configuration of a process that runs turns.
type child struct {
	Agent, Instance, Dir string
	Brokers              []string
	Guarantee            processors.Guarantee
	Settings             settings
}

// settings are what a child process does differently from the defaults.
type settings struct {
	// SessionMS, if not 0, is the session timeout.
	SessionMS int64
	// FileLimit, if not 0, is the maximum size of a file. Writes beyond it fail, as on a full disk.
	FileLimit uint64
	// GiveUp ends the process at its second consecutive failure.
	GiveUp bool
	// MetadataMS, if not 0, is how often the process asks for the partitions of its topics.
	MetadataMS int64
	// Approval makes every tool call wait for approval.
	Approval bool
	// Ordered acknowledges the outputs of a step one topic after the other.
	Ordered bool
}

// runTurns is the process that is killed. The line "clock D" moves its clock by D.
func runTurns(ctx context.Context, is child) error {
	if err := is.Settings.limitFiles(); err != nil {
		return err
	}
	now := &jumping{Clock: clock.System()}
	kill.Listen(func(line string) {
		text, _ := strings.CutPrefix(line, "clock ")
		if d, err := time.ParseDuration(text); err == nil {
			now.by.Add(int64(d))
		}
	})
	c := config{
		agent: is.Agent, instance: is.Instance, dir: is.Dir, brokers: is.Brokers, guarantee: is.Guarantee, child: is.Settings,
		more: append(is.Settings.options(), processors.WithClock(now),
			processors.WithMetrics(processors.Metrics{State: func(s processors.State) { kill.Say(string(s)) }})),
	}
	p, err := c.processor(kill.Logger(zap.WarnLevel))
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

func (s settings) options() []processors.Option {
	var o []processors.Option
	if s.SessionMS > 0 {
		o = append(o, processors.WithProperties(map[string]string{
			"session.timeout.ms":    fmt.Sprint(s.SessionMS),
			"heartbeat.interval.ms": fmt.Sprint(s.SessionMS / 10),
		}))
	}
	if s.MetadataMS > 0 {
		o = append(o, processors.WithProperties(map[string]string{"metadata.max.age.ms": fmt.Sprint(s.MetadataMS)}))
	}
	if s.GiveUp {
		o = append(o, processors.WithRestartLimit(1))
	}
	return o
}

// limitFiles makes a write beyond the limit fail with an error. By default the system would end the process.
func (s settings) limitFiles() error {
	if s.FileLimit == 0 {
		return nil
	}
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: s.FileLimit, Max: s.FileLimit})
}

// jumping is a clock that can be moved. Like the system's, its tickers are not affected.
type jumping struct {
	clock.Clock
	by atomic.Int64
}

func (j *jumping) Now() time.Time { return j.Clock.Now().Round(0).Add(time.Duration(j.by.Load())) }

package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
)

// The environment variables of a child process.
const (
	childAgent     = "TURNTABLE_CHILD_AGENT"
	childBrokers   = "TURNTABLE_CHILD_BROKERS"
	childDir       = "TURNTABLE_CHILD_DIR"
	childInstance  = "TURNTABLE_CHILD_INSTANCE"
	childGuarantee = "TURNTABLE_CHILD_GUARANTEE"
	childSettings  = "TURNTABLE_CHILD_SETTINGS"
)

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
	// Verbose logs warnings too.
	Verbose bool
	// Approval makes every tool call wait for approval.
	Approval bool
	// Ordered acknowledges the outputs of a step one topic after the other.
	Ordered bool
}

// child is the main function of the process that is killed. It runs the pipeline until its standard input ends. It prints
// a line for each state. The input line "clock D" moves its clock by D.
func child() int {
	c := config{
		agent: os.Getenv(childAgent), instance: os.Getenv(childInstance), dir: os.Getenv(childDir),
		brokers: strings.Split(os.Getenv(childBrokers), ","), guarantee: processors.Guarantee(os.Getenv(childGuarantee)),
	}
	if text := os.Getenv(childSettings); text != "" {
		if err := json.Unmarshal([]byte(text), &c.child); err != nil {
			return fail(err)
		}
	}
	if err := c.child.limitFiles(); err != nil {
		return fail(err)
	}
	level := zap.ErrorLevel
	if c.child.Verbose {
		level = zap.WarnLevel
	}
	log, err := zap.NewProduction(zap.IncreaseLevel(level), zap.AddStacktrace(zapcore.FatalLevel))
	if err != nil {
		return fail(err)
	}
	now := &jumping{Clock: clock.System()}
	c.more = append(
		c.child.options(), processors.WithClock(now),
		processors.WithMetrics(processors.Metrics{State: func(s processors.State) { fmt.Println("state", s) }}),
	)
	p, err := c.processor(log)
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel() // standard input ends when the parent does, in any way
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			text, _ := strings.CutPrefix(lines.Text(), "clock ")
			if d, err := time.ParseDuration(text); err == nil {
				now.by.Add(int64(d))
			}
		}
	}()
	if err := p.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return fail(err)
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
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

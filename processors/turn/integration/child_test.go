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

// The environment of a child process.
const (
	childAgent     = "TURNTABLE_CHILD_AGENT"
	childBrokers   = "TURNTABLE_CHILD_BROKERS"
	childDir       = "TURNTABLE_CHILD_DIR"
	childInstance  = "TURNTABLE_CHILD_INSTANCE"
	childGuarantee = "TURNTABLE_CHILD_GUARANTEE"
	childSettings  = "TURNTABLE_CHILD_SETTINGS"
)

// settings are what a child process does otherwise than the defaults.
type settings struct {
	// SessionMS, if not 0, is the session timeout.
	SessionMS int64
	// FileLimit, if not 0, is the size beyond which no file grows, as on a disk that is full.
	FileLimit uint64
	// GiveUp has the process end at its second failure in a row.
	GiveUp bool
	// Verbose logs warnings too.
	Verbose bool
}

// child is the process that is killed: it runs the pipeline until its standard input ends. It prints a line for each
// state, and takes "clock D" as a jump of its clock by D.
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
		defer cancel() // standard input ends with the parent, however that ends
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
	if s.GiveUp {
		o = append(o, processors.WithRestartLimit(1))
	}
	return o
}

// limitFiles has a write beyond the limit fail, where the system's own answer to it ends the process.
func (s settings) limitFiles() error {
	if s.FileLimit == 0 {
		return nil
	}
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: s.FileLimit, Max: s.FileLimit})
}

// jumping is a clock that somebody sets. Its tickers go on as they are, as the system's do.
type jumping struct {
	clock.Clock
	by atomic.Int64
}

func (j *jumping) Now() time.Time { return j.Clock.Now().Round(0).Add(time.Duration(j.by.Load())) }

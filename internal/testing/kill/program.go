package kill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// variable is the environment variable that makes a process a child: a task as JSON.
const variable = "TURNTABLE_CHILD"

type task struct {
	Program string
	Config  jsontext.Value
}

// stopLimit is how long a program may take to end when it should. One that takes longer says what its goroutines do.
const stopLimit = 2 * time.Minute

// Program is what a child process does, until its context ends.
type Program func(ctx context.Context, config []byte) error

// Programs are those of a test binary by name.
type Programs map[string]Program

// Of makes a program of a function that takes a configuration, which the test gives to [Start]. Its exported fields are
// passed as JSON, durations as text.
func Of[C any](run func(ctx context.Context, config C) error) Program {
	return func(ctx context.Context, raw []byte) error {
		var config C
		if err := json.Unmarshal(raw, &config, durations); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
		return run(ctx, config)
	}
}

var durations = json.JoinOptions(
	json.WithMarshalers(json.MarshalFunc(func(d time.Duration) ([]byte, error) { return json.Marshal(d.String()) })),
	json.WithUnmarshalers(json.UnmarshalFunc(func(raw []byte, d *time.Duration) (err error) {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		*d, err = time.ParseDuration(text)
		return err
	})),
)

// known are the programs of this binary.
var known Programs

// Main runs a program and ends the process if it is a child. TestMain calls it first. A child's context ends when the test
// stops it, or when the process of the test has ended in any way.
func Main(programs Programs) {
	known = programs
	text, is := os.LookupEnv(variable)
	if !is {
		return
	}
	_ = os.Unsetenv(variable) // what the child starts is no child of this kind
	if err := runTask(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runTask(text string) error {
	sarama.Logger = log.New(os.Stderr, "sarama: ", log.Ltime|log.Lmicroseconds)
	sarama.DebugLogger = log.New(io.Discard, "", 0) // it tells of every transaction, and goes to Logger otherwise
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if hear := listener.Load(); hear != nil {
				(*hear)(lines.Text())
			}
		}
		stop()
		time.AfterFunc(stopLimit, func() {
			fmt.Fprintf(os.Stderr, "%s does not end within %s\n", t.Program, stopLimit)
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
			os.Exit(1)
		})
	}()
	err := known[t.Program](ctx, t.Config)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Running is what a program says, see [Say], when it is ready for its work.
const Running = "running"

// Say tells the test the state of this child process. [Process.Running] waits for [Running].
func Say(state string) { fmt.Println(state) }

var listener atomic.Pointer[func(string)]

// Listen sets what this child process does with the lines of [Process.Tell].
func Listen(hear func(line string)) { listener.Store(&hear) }

// Logger is the logger of a child process. The test prints what it logs if it fails.
func Logger(level zapcore.Level) *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), level))
}

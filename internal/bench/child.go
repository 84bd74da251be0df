package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// The measured processor runs in a separate process: this program again, with its configuration in this variable. It
// writes answers to standard output, "ready" first, reads commands from standard input, and ends when that is closed.
const childVariable = "TURNTABLE_BENCH_CHILD"

// childSpec is the configuration of a child.
type childSpec struct {
	Kind       string   `json:"kind"`
	Brokers    []string `json:"brokers,omitempty"`
	Agent      string   `json:"agent,omitempty"`
	Guarantee  string   `json:"guarantee,omitempty"`
	Instance   string   `json:"instance,omitempty"`
	Directory  string   `json:"directory,omitempty"` // of LevelDB; none: memory
	Partitions int32    `json:"partitions,omitempty"`
}

// The kinds of children.
const (
	kindProcessor = "processor"
	kindFloor     = "floor"
	kindBareFloor = "bare floor"
	kindGoka      = "goka"
	kindBroker    = "broker"
)

// child runs this program as a child.
func child(orders string, in io.Reader, out io.Writer) error {
	var c childSpec
	if err := json.Unmarshal([]byte(orders), &c); err != nil {
		return fmt.Errorf("bench: configuration of a child: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Ignore(os.Interrupt) // on Ctrl-C, the parent stops its children in order
	ctx, end := context.WithCancel(ctx)
	defer end()
	answers := &answerWriter{to: out}
	go func() {
		defer end() // the parent has ended
		executeCommands(in, answers)
	}()
	ready := func(words ...string) { answers.println("ready " + strings.Join(words, " ")) }
	switch c.Kind {
	case kindProcessor:
		return runProcessor(ctx, c, ready)
	case kindFloor, kindBareFloor:
		return runFloor(ctx, c, sync.OnceFunc(func() { ready() }))
	case kindGoka:
		return runGoka(ctx, c, func() { ready() })
	case kindBroker:
		b, err := embedded.Start(embedded.Config{})
		if err != nil {
			return err
		}
		ready(b.Addrs()...)
		<-ctx.Done()
		return b.Close()
	default:
		return fmt.Errorf("bench: unknown kind of child: %q", c.Kind)
	}
}

type answerWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (a *answerWriter) println(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintln(a.to, strings.TrimSpace(line))
}

// obey executes the commands "profile DIR" and "profiled" until the parent ends.
func executeCommands(in io.Reader, a *answerWriter) {
	var p *profile
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var err error
		switch order, dir, _ := strings.Cut(lines.Text(), " "); order {
		case "profile":
			p, err = startProfile(dir)
		case "profiled":
			err = p.stop()
			p = nil
		default:
			err = errors.New("unknown command: " + order)
		}
		if err != nil {
			a.println("error " + err.Error())
		} else {
			a.println("done")
		}
	}
	_ = p.stop()
}

// runProcessor runs the turn processor as a user's program does.
func runProcessor(ctx context.Context, c childSpec, ready func(...string)) error {
	catalog, err := topics.For(c.Agent)
	if err != nil {
		return err
	}
	graph, err := turn.Graph(c.Agent, turn.Config{})
	if err != nil {
		return err
	}
	quiet := zap.NewProductionConfig()
	quiet.Level, quiet.DisableStacktrace = zap.NewAtomicLevelAt(zap.WarnLevel), true
	logger, err := quiet.Build()
	if err != nil {
		return err
	}
	storage := processors.Memory()
	if c.Directory != "" {
		storage = processors.LevelDB(c.Directory)
	}
	options := []processors.Option{
		processors.WithTopics(catalog), processors.WithPartitions(c.Partitions), processors.WithStorage(storage),
		processors.WithGuarantee(processors.Guarantee(c.Guarantee)), processors.WithLogger(logger),
	}
	if c.Instance != "" {
		options = append(options, processors.WithInstance(c.Instance))
	}
	p, err := processors.New(c.Brokers, graph, options...)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for p.Health().State != processors.Running {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
		}
	}
	ready()
	return <-ended
}

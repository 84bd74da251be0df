package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/httpserver"
)

// run runs the program with the settings. It returns nil when ctx ends.
func run(ctx context.Context, s settings, in io.Reader, out, errs io.Writer) error {
	logger := newLogger(errs, s.verbose)
	broker, err := connect(&s, logger)
	if err != nil {
		return err
	}
	defer broker.Close()
	if s.inspect != "" {
		return inspect(ctx, s.brokers, s.inspect, out, logger)
	}
	publisher, err := processors.NewPublisher(s.brokers, processors.WithLogger(logger))
	if err != nil {
		return err
	}
	defer publisher.Close()
	door, err := httpserver.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer door.Close()
	front, back, err := newAgents(s, publisher, door.Addr(), logger)
	if err != nil {
		return err
	}
	if err := createTopics(ctx, s.brokers, front, back); err != nil {
		return err
	}
	screen := newScreen(out)
	if screen.quiet = !s.plain; !s.plain {
		screen.print("http://"+door.Addr().String()+"/console/", "\n")
	}
	journal, err := newJournal(s.brokers, flow(front.Topics(), back.Topics()), newSeen(front.Topics()), screen, processors.WithLogger(logger))
	if err != nil {
		return err
	}
	u := &user{
		journal: journal, publisher: publisher, topics: front.Topics(), screen: screen, session: s.session, decided: map[string]bool{},
	}
	if !s.once || s.approve {
		u.lines = readLines(ctx, in)
	}
	screen.note(grey, "broker", "%s", strings.Join(s.brokers, ","))
	p := parts{journal: journal, agents: []*agent.Agent{front, back}, serve: func(ctx context.Context) error {
		return httpserver.Serve(ctx, httpserver.New(front.Handler()), door, 5*time.Second)
	}}
	if err := p.run(ctx, func(ctx context.Context) error { return u.use(ctx, s, in) }); err != nil {
		return err
	}
	return u.failed
}

// parts are what runs at the same time.
type parts struct {
	journal *journal
	agents  []*agent.Agent
	serve   func(context.Context) error // the doors
}

// run runs all parts until use returns or one of them fails, and then stops them.
func (p parts) run(ctx context.Context, use func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.journal.follower.Run(ctx) })
	group.Go(func() error { return p.journal.run(ctx) })
	group.Go(func() error {
		defer stop()
		if p.journal.begin(ctx) != nil {
			return nil // stopped
		}
		group.Go(func() error { return p.serve(ctx) })
		for _, a := range p.agents { // after the journal, which sees everything that they do
			group.Go(func() error { return a.Run(ctx) })
		}
		for _, a := range p.agents {
			select {
			case <-a.Ready():
			case <-ctx.Done():
				return nil
			}
		}
		if err := use(ctx); ctx.Err() == nil {
			return err
		}
		return nil // stopped, or another part failed: that is the error
	})
	return group.Wait()
}

// use is what the user does.
func (u *user) use(ctx context.Context, s settings, in io.Reader) error {
	before, err := u.resume(ctx)
	if err == nil && !before {
		err = u.ask(ctx, firstQuestion)
	}
	if err == nil && !before && s.memory {
		err = u.rememberAcrossSessions(ctx, s.brokers)
	}
	if err == nil && !before && !s.plain {
		err = u.waitForApproval(ctx)
	}
	if err == nil && !s.once {
		err = u.readOn(ctx, in)
	}
	if err == nil && !s.plain {
		<-ctx.Done() // people look at the console
	}
	return err
}

// connect starts the embedded broker if no addresses are set, and sets its addresses. The result must be closed after all
// its clients.
func connect(s *settings, logger *zap.Logger) (io.Closer, error) {
	if s.brokers != nil {
		return io.NopCloser(nil), nil
	}
	c := embedded.Config{Logger: logger}
	if s.data != "" {
		c.Directory = filepath.Join(s.data, "broker")
		if s.inspect != "" {
			if _, err := os.Stat(c.Directory); err != nil {
				return nil, fmt.Errorf("inspect: %w", err) // inspecting must not create the directory
			}
		}
	}
	broker, err := embedded.Start(c)
	if err != nil {
		return nil, err
	}
	s.brokers = broker.Addrs()
	return broker, nil
}

func newLogger(w io.Writer, verbose bool) *zap.Logger {
	level := zap.WarnLevel
	if verbose {
		level = zap.InfoLevel
	}
	encoder := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level))
}

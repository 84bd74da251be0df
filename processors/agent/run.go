package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/httpserver"
)

// run runs the parts until ctx ends or one fails. The parts start in stages: the groups first, because they create the topics, then
// what works, then what the doors read. They stop in the opposite order. The server of Listen serves h from the beginning, so that
// the health of a start can be seen, and stops first.
func (a *assembly) run(ctx context.Context, h http.Handler, ready func()) error {
	s := &stages{}
	s.ctx, s.fail = context.WithCancel(ctx)
	defer s.fail()
	if a.config.Listen != "" {
		if err := a.listen(s, h); err != nil {
			return err
		}
	}
	if a.accounts != nil {
		s.begin(a.accounts.Run) // whether or not there are brokers
	}
	for _, g := range a.groups {
		s.begin(g.Run)
	}
	if !a.running(s.ctx) {
		return s.end()
	}
	s.next()
	for _, run := range a.workers {
		s.begin(run)
	}
	s.next()
	for _, run := range a.doors {
		s.begin(run)
	}
	for _, is := range a.ready {
		select {
		case <-is:
		case <-s.ctx.Done():
			return s.end()
		}
	}
	ready()
	<-s.ctx.Done()
	return s.end()
}

// running blocks until all groups run or ctx ends. What a start waits for is logged by the groups.
func (a *assembly) running(ctx context.Context) bool {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for _, g := range a.groups {
		for g.Health().State != processors.Running {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return false
			}
		}
	}
	return true
}

// listen opens the doors to the network.
func (a *assembly) listen(s *stages, h http.Handler) error {
	listener, err := httpserver.Listen(a.config.Listen)
	if err != nil {
		return fmt.Errorf("agent: Listen: %w", err)
	}
	a.config.Logger.Info("doors", zap.Stringer("addr", listener.Addr()))
	a.config.warnOpen(listener.Addr().String())
	server := httpserver.New(h)
	s.in(&s.front, func(ctx context.Context) error {
		if err := httpserver.Serve(ctx, server, listener, closing); err != nil {
			return fmt.Errorf("agent: Listen: %w", err)
		}
		return nil
	})
	return nil
}

// stages are functions that run concurrently and stop one stage after the other: front, then the last one first.
type stages struct {
	ctx   context.Context // ends when one of them fails
	fail  context.CancelFunc
	open  stage
	ended []stage // the earlier ones
	front stage   // stops before the others
	mu    sync.Mutex
	errs  []error
}

type stage struct {
	ctx     context.Context
	cancel  context.CancelFunc
	members *sync.WaitGroup
}

// begin runs a function in the current stage.
func (s *stages) begin(run func(context.Context) error) { s.in(&s.open, run) }

func (s *stages) in(st *stage, run func(context.Context) error) {
	if st.members == nil {
		st.members = new(sync.WaitGroup)
		st.ctx, st.cancel = context.WithCancel(context.WithoutCancel(s.ctx))
	}
	ctx := st.ctx
	st.members.Go(func() {
		if err := run(ctx); err != nil {
			s.failed(err)
		}
	})
}

func (s *stages) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
	s.fail()
}

// next begins another stage.
func (s *stages) next() {
	s.ended, s.open = append(s.ended, s.open), stage{}
}

// end stops the stages and returns the errors of their functions.
func (s *stages) end() error {
	s.next()
	s.ended = append(s.ended, s.front)
	for i := len(s.ended) - 1; i >= 0; i-- {
		if st := s.ended[i]; st.members != nil {
			st.cancel()
			st.members.Wait()
		}
	}
	return errors.Join(s.errs...)
}

package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

const simTopic = "in"

// simProcess is a worker's process with its connections. It is the coordinator of its source, and its consumer group, as a
// client sees them through wires that are cut, lose answers or deliver requests late. Fields below mu belong to the simulation's
// lock.
type simProcess struct {
	*simulation
	name   string
	source *Source
	ctx    context.Context
	stop   context.CancelFunc
	work   context.Context // ends when the grace period of a stop has passed, or with the process
	ended  chan struct{}

	id       string // of its membership
	requests int
	thawed   chan struct{} // not nil while the process is suspended
	cut      bool
	flaky    bool
	dead     bool
	faulty   bool      // one of the above
	healthy  time.Time // since when it is not faulty
	idle     bool      // it has no partition
	owns     time.Time // since when it was not idle
}

func (s *simulation) start() *simProcess {
	p := &simProcess{simulation: s, name: fmt.Sprintf("w%d", len(s.processes)), ended: make(chan struct{}), healthy: time.Now()}
	p.ctx, p.stop = context.WithCancel(context.Background())
	work, over := context.WithCancel(context.Background())
	p.work = work
	p.source = New(Config{
		Config: source.Config{
			Brokers: []string{"sim"}, Group: "g", Topics: []string{simTopic}, Concurrency: 4, Waiting: 2,
			Clock: simClock{clock.System(), p}, Logger: zap.NewNop(), Client: simClient,
		},
		Handover: simHandover, ReadAhead: 10, Ordered: s.ordered,
	})
	p.source.connect = func() (coordinator, sarama.ConsumerGroup, error) {
		return p, &simGroup{simProcess: p, errors: make(chan error)}, p.request(func() error { return nil })
	}
	s.processes = append(s.processes, p)
	s.running.Go(func() {
		defer close(p.ended)
		defer over()
		if err := p.source.Run(p.ctx, p.handle); err != nil {
			s.fail("%s: %v", p.name, err)
		}
	})
	s.running.Go(func() {
		<-p.ctx.Done()
		select {
		case <-time.After(2 * time.Second): // the grace period of a stop
		case <-p.ended:
		}
		over()
	})
	return p
}

var errWire = errors.New("the wire is cut")

// request performs a request at the broker, unless a fault is in its way.
func (p *simProcess) request(do func() error) error { return p.deliver(do, false) }

// deliver is request. A request of a kind that can be late may arrive although the client has given up.
func (p *simProcess) deliver(do func() error, canBeLate bool) error {
	p.mu.Lock()
	p.requests++
	r := p.random(p.name, p.requests)
	p.mu.Unlock()
	time.Sleep(time.Duration(r.IntN(5_000_000))) // each at a moment of its own
	p.unfrozen()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead || p.cut {
		return errWire
	}
	if p.flaky {
		switch n := r.IntN(6); {
		case n == 0:
			return errWire // the request is lost
		case n == 1:
			_ = do() // its answer is lost
			return errWire
		case n == 2 && canBeLate:
			p.running.Go(func() {
				time.Sleep(time.Duration(r.IntN(int(simSession))))
				p.locked(func() {
					_ = do()
					p.healthy = time.Now()
				})
			})
			return errWire
		}
	}
	err := do()
	p.mu.Unlock()
	time.Sleep(time.Duration(r.IntN(5_000_000)))
	p.unfrozen()
	p.mu.Lock()
	if p.dead || p.cut {
		return errWire
	}
	return err
}

// unfrozen waits while the process is suspended.
func (p *simProcess) unfrozen() {
	for {
		p.mu.Lock()
		thawed := p.thawed
		p.mu.Unlock()
		if thawed == nil {
			return
		}
		<-thawed
	}
}

func (p *simProcess) fetch(partitions map[string][]int32) (map[at]progress.Commit, error) {
	commits := map[at]progress.Commit{}
	return commits, p.request(func() error {
		for _, id := range partitions[simTopic] {
			c, ok := p.broker.commits[at{simTopic, id}]
			if !ok {
				c.Offset = -1
			}
			commits[at{simTopic, id}] = c
		}
		return nil
	})
}

func (p *simProcess) commit(as membership, points map[at]progress.Checkpoint) (map[at]progress.Checkpoint, error) {
	if err := p.deliver(func() error { return p.broker.commit(as, points) }, true); err != nil {
		return nil, err // the points may still arrive
	}
	return points, nil
}

func (p *simProcess) members() (members map[progress.Runner]bool, err error) {
	err = p.request(func() error { members = p.broker.describe(); return nil })
	return members, err
}

func (p *simProcess) notes() (notes []progress.Note, err error) {
	err = p.request(func() error { notes = p.broker.notes(); return nil })
	return notes, err
}

func (p *simProcess) end(where at) (end int64, err error) {
	err = p.request(func() error { end = p.broker.ends[where.id]; return nil })
	return end, err
}

func (p *simProcess) confirm(_ context.Context, lease *cut.Lease, as membership) error {
	sent := cut.Now()
	err := p.request(func() error { return p.broker.heartbeat(as) })
	if err == nil {
		lease.Renew(sent)
	}
	return err
}

func (p *simProcess) close(*zap.Logger) {}

// simClock is the clock of a process: its tickers stop with the process.
type simClock struct {
	clock.Clock
	p *simProcess
}

func (c simClock) NewTicker(period time.Duration) clock.Ticker {
	t := &simTicker{c: make(chan time.Time, 1), done: make(chan struct{})}
	c.p.running.Go(func() {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				c.p.unfrozen()
				select {
				case t.c <- now:
				default:
				}
			case <-t.done:
				return
			}
		}
	})
	return t
}

type simTicker struct {
	c    chan time.Time
	done chan struct{}
}

func (t *simTicker) C() <-chan time.Time { return t.c }
func (t *simTicker) Stop()               { close(t.done) }

var simSettings = func() *sarama.Config {
	c := sarama.NewConfig()
	c.Consumer.Group.Session.Timeout, c.Consumer.Group.Rebalance.Timeout = simSession, simRebalance
	c.Consumer.Group.Heartbeat.Interval = simHeartbeat
	return c
}()

func simClient() *sarama.Config {
	c := *simSettings
	return &c
}

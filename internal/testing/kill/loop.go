package kill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// Victim is what a [Loop] kills, such as a [Process].
type Victim interface{ Kill() error }

// Loop kills processes and starts them again, while clients work. It fails the test with the error of a client, and says where
// the work stopped.
type Loop struct {
	Seed    uint64
	Kills   int
	Victims int
	// Launch starts the nth victim, for the first time or after a kill.
	Launch func(n int) Victim
	// Clients does the work, and returns when it is done. If it is nil, the work goes on beside the loop, which ends after the
	// last kill.
	Clients func(ctx context.Context) error
	// Progress counts what is done of it. A loop in which the number stays the same for long has failed.
	Progress func() int
	// Work is the number at the end.
	Work int
	// When, if not nil, says when a kill comes: when so much is done, or after some time if that is not 0. Otherwise kills are
	// spread over the work at random; some meet a process that starts.
	When func(random *rand.Rand, kill, done int) (until int, within time.Duration)
	// Before, if not nil, is called before a kill.
	Before func(ctx context.Context, random *rand.Rand) error
	// Choose, if not nil, names the victim. Otherwise it is a random one.
	Choose func(random *rand.Rand) int
	// Judge, if not nil, checks the result when the work is done.
	Judge func()
	// Brokers and Agents say what is described of the brokers if the test fails: the groups and topics of the agents.
	Brokers []string
	Agents  []string
	// Where, if not nil, says more about the state of the work.
	Where func() string

	running []Victim
}

// stall is how long nothing may be done.
const stall = 3 * time.Minute

// Start starts the victims. A test that needs them before its clients calls it before Run.
func (l *Loop) Start() {
	for n := len(l.running); n < l.Victims; n++ {
		l.running = append(l.running, l.Launch(n))
	}
}

// Victim is the nth victim.
func (l *Loop) Victim(n int) Victim { return l.running[n] }

// Run starts the victims and the clients, kills, waits for the clients and judges.
func (l *Loop) Run(ctx context.Context, tb testing.TB) {
	tb.Helper()
	defer func() {
		if !tb.Failed() {
			return
		}
		tb.Log(Stuck(ctx, l.Brokers, l.Agents...))
		if l.Where != nil {
			tb.Log(l.Where())
		}
	}()
	if err := l.run(ctx); err != nil {
		tb.Fatal(err)
	}
	if l.Judge != nil {
		l.Judge()
	}
}

func (l *Loop) run(ctx context.Context) error {
	l.Start()
	ctx, cancel := context.WithCancel(ctx)
	work := &work{loop: l, ended: make(chan struct{})}
	go func() {
		defer close(work.ended)
		if l.Clients != nil {
			work.err = l.Clients(ctx)
		} else {
			<-ctx.Done()
		}
	}()
	defer func() { cancel(); <-work.ended }()

	random := rand.New(rand.NewPCG(l.Seed, uint64(l.Kills)))
	for kill := range l.Kills {
		if err := l.kill(ctx, random, kill, work); err != nil {
			cancel()
			<-work.ended // its error may be the reason, or the consequence
			if work.err != nil && !errors.Is(err, work.err) {
				err = fmt.Errorf("%w; clients: %w", err, work.err)
			}
			return fmt.Errorf("kill %d of %d: %w", kill+1, l.Kills, err)
		}
	}
	if l.Clients == nil {
		return nil
	}
	if err := work.wait(ctx, never, 0); err != nil {
		return fmt.Errorf("after %d kills: %w", l.Kills, err)
	}
	return nil
}

func (l *Loop) kill(ctx context.Context, random *rand.Rand, kill int, work *work) error {
	done := l.Progress()
	until, within := 0, time.Duration(0)
	if l.When != nil {
		until, within = l.When(random, kill, done)
	} else {
		until = done + 1 + random.IntN(1+l.Work/l.Kills)
	}
	if err := work.wait(ctx, until, within); err != nil {
		return err
	}
	if l.Before != nil {
		if err := l.Before(ctx, random); err != nil {
			return err
		}
	}
	victim := 0
	if l.Choose != nil {
		victim = l.Choose(random)
	} else {
		victim = random.IntN(l.Victims)
	}
	if err := l.running[victim].Kill(); err != nil {
		return err
	}
	l.running[victim] = l.Launch(victim)
	return nil
}

// work is that of the clients.
type work struct {
	loop  *Loop
	ended chan struct{} // closed when err is known
	err   error
}

// never is a number that work does not reach.
const never = int(^uint(0) >> 1)

// wait waits until so much is done, for the time if it is not 0, or until the clients end.
func (w *work) wait(ctx context.Context, until int, within time.Duration) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	last, changed := w.loop.Progress(), begun
	for {
		select {
		case <-w.ended:
			if w.err != nil {
				return fmt.Errorf("clients: %w", w.err)
			}
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%d done: %w", w.loop.Progress(), context.Cause(ctx))
		case now := <-tick.C:
			done := w.loop.Progress()
			if done >= until || within > 0 && now.Sub(begun) >= within {
				return nil
			}
			if done != last {
				last, changed = done, now
			}
			if now.Sub(changed) > stall {
				return fmt.Errorf("nothing more than %d done for %s", done, stall)
			}
		}
	}
}

// Each sets clients of which each does something once, limit of them at a time. They are the work.
func (l *Loop) Each(clients, limit int, do func(ctx context.Context, n int) error) {
	var done atomic.Int64
	l.Work, l.Progress = clients, func() int { return int(done.Load()) }
	l.Clients = func(ctx context.Context) error {
		all, ctx := errgroup.WithContext(ctx)
		all.SetLimit(limit)
		for n := range clients {
			all.Go(func() error {
				defer done.Add(1)
				return do(ctx, n)
			})
		}
		return all.Wait()
	}
}

// Until waits until something is so. It is an error if the context ends before.
func Until(ctx context.Context, is func() bool) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

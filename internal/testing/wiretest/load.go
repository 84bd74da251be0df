package wiretest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// LoadOptions configures a Load.
type LoadOptions struct {
	// Turns is the total number of messages; 0 means until Stop.
	Turns int
	// Steps is the number of responses with tool calls in a turn (default 1), Tools the number of calls in each (default
	// 0).
	Steps, Tools int
	// Deeds are assigned to the calls of a turn in order and start over at the end. Empty: DeedOK for every call.
	Deeds []Deed
	// Concurrency is the number of turns that are open at a time, each in its own session. Default 8.
	Concurrency int
	// PerSession is the number of turns in a session, which bounds its history; then a new session begins. Default 10.
	PerSession int
	// Prefix begins the session names. Loads that run on one agent need different ones. Default "load".
	Prefix string
	// Ledger, if not nil, receives the fate of every message.
	Ledger *Ledger
	// DropRepeats makes the workers answer each record once. See WithRepeatsDropped.
	DropRepeats bool
	// Limit, if not 0, is how long a user waits for an output. A question without one by then counts as lost, and the
	// user continues in another session.
	Limit time.Duration
}

// Load runs plain turns in a closed loop: each session asks its next question after the output of the one before. It
// plays user, model and tools. The pipeline may stop and restart meanwhile.
type Load struct {
	opts    LoadOptions
	driver  *Driver
	reader  *kgo.Client
	stop    context.CancelFunc
	stopped chan struct{} // closed by Stop: no more questions
	once    sync.Once
	users   *errgroup.Group
	readers *errgroup.Group

	next     atomic.Int64
	asked    atomic.Int64
	answered atomic.Int64
	failed   atomic.Int64
	repeated atomic.Int64
	lost     atomic.Int64
	latency  histogram

	mu      sync.Mutex
	waiting map[string]*openSession
}

// awaited is a session with an open question.
type openSession struct {
	outputs chan bool
	seen    map[string]bool // ids of outputs, of this session only
	since   time.Time       // when the question was asked; zero: none is open
}

// LoadProgress is a snapshot of the counts and latencies of a load.
type LoadProgress struct {
	// Asked is the number of questions. Answered and Failed had their output in time, Lost did not. Repeated is the
	// number of outputs that were read again.
	Asked, Answered, Failed, Lost, Repeated int
	// Dropped is the number of records that were dropped as repeats. See LoadOptions.DropRepeats.
	Dropped int
	// Oldest is the age of the oldest open question; 0 if none is open.
	Oldest time.Duration
	// P50, P99 and Max are times from a question to its output, exact to 4 %.
	P50, P99, Max time.Duration
}

// StartLoad starts a load. It returns an error if a topic of the agent does not exist. ctx bounds only the start: end the
// load with Stop or Close.
func StartLoad(ctx context.Context, bootstrap []string, agent string, opts LoadOptions) (*Load, error) {
	opts = opts.withDefaults()
	driverOptions := []DriverOption{WithLedger(opts.Ledger)}
	if opts.DropRepeats {
		driverOptions = append(driverOptions, WithRepeatsDropped())
	}
	driver, err := NewDriver(ctx, bootstrap, agent, driverOptions...)
	if err != nil {
		return nil, err
	}
	output := driver.names.MessageOutput
	counts, err := partitionCounts(ctx, driver.producer, []string{output})
	if err == nil && counts[output] == 0 {
		err = fmt.Errorf("wiretest: topic %s does not exist", output)
	}
	if err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	reader, err := kgo.NewClient(readerOptions(bootstrap, counts, kgo.ReadCommitted())...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wiretest: reader: %w", err), driver.Close())
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &Load{
		opts: opts, driver: driver, reader: reader, stop: stop, stopped: make(chan struct{}), users: &errgroup.Group{},
		readers: &errgroup.Group{}, waiting: map[string]*openSession{},
	}
	if err := driver.Start(running); err != nil {
		stop()
		reader.Close()
		return nil, errors.Join(err, driver.Close())
	}
	l.readers.Go(func() error { l.read(running); return nil })
	for range opts.Concurrency {
		l.users.Go(func() error { return l.user(running) })
	}
	return l, nil
}

func (o LoadOptions) withDefaults() LoadOptions {
	if o.Steps <= 0 {
		o.Steps = 1
	}
	if o.Tools <= 0 {
		o.Steps, o.Tools = 0, 0
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 8
	}
	if o.PerSession <= 0 {
		o.PerSession = 10
	}
	if o.Prefix == "" {
		o.Prefix = "load"
	}
	return o
}

// Wait blocks until every turn has its output or is lost, or until ctx ends. After Stop it waits for the open turns only.
func (l *Load) Wait(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- l.users.Wait() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		p := l.Progress()
		return fmt.Errorf("wiretest: load: %d of %d asked have no output: %w",
			p.Asked-p.Answered-p.Failed-p.Lost, p.Asked, context.Cause(ctx))
	}
}

// Stop makes the users ask no more questions; open turns continue. It does not block.
func (l *Load) Stop() { l.once.Do(func() { close(l.stopped) }) }

// Close stops users and workers, without waiting for open turns, and returns when they have stopped.
func (l *Load) Close() error {
	l.Stop()
	l.stop()
	_ = l.users.Wait()
	_ = l.readers.Wait()
	l.reader.Close()
	return l.driver.Close()
}

// Progress returns the current counts and latencies.
func (l *Load) Progress() LoadProgress {
	return LoadProgress{
		Oldest: l.oldest(),
		Asked:  int(l.asked.Load()), Answered: int(l.answered.Load()), Failed: int(l.failed.Load()),
		Lost: int(l.lost.Load()), Repeated: int(l.repeated.Load()), Dropped: l.driver.answered.count(),
		P50: l.latency.quantile(0.5), P99: l.latency.quantile(0.99), Max: l.latency.quantile(1),
	}
}

func (l *Load) oldest() (longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.waiting {
		if !a.since.IsZero() {
			longest = max(longest, time.Since(a.since))
		}
	}
	return longest
}

// ForgetLatency discards the latencies measured so far. Questions that are open now are counted when their output
// arrives.
func (l *Load) ForgetLatency() { l.latency.reset() }

// user asks one question after another.
func (l *Load) user(ctx context.Context) error {
	var session string
	var a *openSession
	defer func() { l.removeSession(session) }()
	for turn := 0; ; turn++ {
		select {
		case <-l.stopped:
			return nil
		default:
		}
		n := l.next.Add(1)
		if l.opts.Turns > 0 && n > int64(l.opts.Turns) {
			return nil
		}
		if turn%l.opts.PerSession == 0 {
			l.removeSession(session)
			session = fmt.Sprintf("%s-%d", l.opts.Prefix, n)
			a = l.addSession(session)
		}
		plan := Plan{Key: fmt.Sprintf("%s.%d", l.opts.Prefix, n), Steps: l.opts.Steps, Tools: l.opts.Tools, Deeds: l.opts.Deeds}
		began := time.Now()
		l.setOpenSince(a, began)
		if _, err := l.driver.Ask(ctx, session, plan); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // Close
			}
			return err
		}
		l.asked.Add(1)
		var timeout <-chan time.Time
		if l.opts.Limit > 0 {
			timeout = time.After(l.opts.Limit - time.Since(began))
		}
		select {
		case failed := <-a.outputs:
			l.setOpenSince(a, time.Time{})
			l.latency.add(time.Since(began))
			if failed {
				l.failed.Add(1)
			} else {
				l.answered.Add(1)
			}
		case <-timeout:
			l.setOpenSince(a, time.Time{})
			l.lost.Add(1)
			turn = -1 // the next one opens a session
		case <-ctx.Done():
			return nil
		}
	}
}

func (l *Load) addSession(session string) *openSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &openSession{outputs: make(chan bool, 64), seen: map[string]bool{}}
	l.waiting[session] = a
	return a
}

func (l *Load) setOpenSince(a *openSession, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.since = since
}

func (l *Load) removeSession(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, session)
}

// read passes outputs to the users that wait for them.
func (l *Load) read(ctx context.Context) {
	for {
		fetches := l.reader.PollRecords(ctx, 500)
		if ctx.Err() != nil {
			return
		}
		for it := fetches.RecordIter(); !it.Done(); {
			l.output(it.Next())
		}
	}
}

func (l *Load) output(r *kgo.Record) {
	id, _ := header(r, headerID)
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.waiting[string(r.Key)]
	if a == nil {
		return
	}
	if a.seen[id] {
		l.repeated.Add(1)
		return
	}
	a.seen[id] = true
	o, err := objectOf(r.Value)
	select {
	case a.outputs <- err != nil || o.raw("status") != nil:
	default: // more outputs than questions, which the oracle reports
	}
}

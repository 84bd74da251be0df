package processortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/tester"
)

// patience is how long one step may take before the test fails: a callback that blocks would hang it otherwise.
const patience = 30 * time.Second

var (
	errGraph   = errors.New("processortest: graph cannot run here")
	errStopped = errors.New("processor stopped")
	errNoCause = errors.New("without an error")
	errBlocked = errors.New("blocked for too long")
)

// TB is what the harness needs of a test: testing.TB, or another framework's test. Fatalf and Fatal must not return.
type TB interface {
	Helper()
	Cleanup(func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
	Failed() bool
}

// Driver runs graphs and holds everything they read and wrote. It is made by New and used by one goroutine, the test's.
// What goes wrong fails the test at once, by TB.Fatalf.
type Driver struct {
	tb       TB
	broker   *tester.Tester
	producer goka.Producer
	runners  []*runner
	patience time.Duration

	running sync.WaitGroup
	stop    context.CancelFunc
	dead    chan struct{} // closed with the first processor that stops
	died    sync.Once
	death   error

	mu      sync.Mutex // guards what callbacks touch as well
	now     time.Time
	seq     int64
	logs    map[string]*topicLog
	pending []delivery
}

// New starts the graphs at the given time and returns when all of them read their inputs. When the test ends they are
// stopped, and outputs that nobody read fail it. At least one graph is needed, of different groups.
func New(tb TB, start time.Time, graphs ...*goka.GroupGraph) *Driver {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d := &Driver{
		tb: tb, broker: tester.New(tb), patience: patience, now: start,
		stop: cancel, dead: make(chan struct{}), logs: make(map[string]*topicLog),
	}
	tb.Cleanup(d.close)
	if err := d.start(ctx, graphs); err != nil {
		d.fail(err)
	}
	return d
}

// Now is the time on the driver's clock.
func (d *Driver) Now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// Unread names the topics with outputs that were not read, sorted. Topics that a graph of this driver reads are left
// out: their records have a reader.
func (d *Driver) Unread() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var topics []string
	for name, log := range d.logs {
		if len(log.unread()) > 0 && len(d.readers(name)) == 0 {
			topics = append(topics, name)
		}
	}
	slices.Sort(topics)
	return topics
}

func (d *Driver) start(ctx context.Context, graphs []*goka.GroupGraph) error {
	if len(graphs) == 0 {
		return fmt.Errorf("%w: no graph given", errGraph)
	}
	var err error
	if d.producer, err = d.broker.ProducerBuilder()(nil, "processortest", nil); err != nil {
		return fmt.Errorf("processortest: tester's producer: %w", err)
	}
	for _, graph := range graphs {
		r, err := newRunner(d, graph)
		if err != nil {
			return err
		}
		if d.runner(r.graph.Group()) != nil {
			return fmt.Errorf("%w: group %q is given twice", errGraph, r.graph.Group())
		}
		d.runners = append(d.runners, r)
	}
	for _, r := range d.runners {
		d.running.Go(func() { r.run(ctx) })
	}
	for _, r := range d.runners {
		if err := d.wait(r.up.Done(), "start of group "+string(r.graph.Group())); err != nil {
			return err
		}
	}
	return nil
}

// close ends the test: processors first, so that nothing runs on after it.
func (d *Driver) close() {
	d.tb.Helper()
	d.stop()
	stopped := make(chan struct{})
	go func() { d.running.Wait(); close(stopped) }()
	limit := time.NewTimer(d.patience)
	defer limit.Stop()
	select {
	case <-stopped:
	case <-limit.C:
		d.tb.Errorf("processortest: stop: %v", errBlocked)
	}
	if d.tb.Failed() {
		return
	}
	for _, topic := range d.Unread() {
		d.tb.Errorf("processortest: topic %s has %d outputs that nobody read", topic, len(d.log(topic).unread()))
	}
}

// die remembers the first processor that stopped.
func (d *Driver) die(err error) {
	d.died.Do(func() {
		d.death = err
		close(d.dead)
	})
}

// wait blocks until done is closed. It ends early, with an error that says what was waited for, when a processor stops
// or nothing happens for too long.
func (d *Driver) wait(done <-chan struct{}, what string) error {
	limit := time.NewTimer(d.patience)
	defer limit.Stop()
	select {
	case <-done:
		return nil
	case <-d.dead:
		return fmt.Errorf("processortest: %s: %w", what, d.death)
	case <-limit.C:
		return fmt.Errorf("processortest: %s: %w", what, errBlocked)
	}
}

func (d *Driver) fail(err error) {
	d.tb.Helper()
	d.tb.Fatalf("%v", err)
}

func (d *Driver) runner(group goka.Group) *runner {
	for _, r := range d.runners {
		if r.graph.Group() == group {
			return r
		}
	}
	return nil
}

// readers are the graphs that have a topic as an input, in the order of New.
func (d *Driver) readers(topic string) []*runner {
	var readers []*runner
	for _, r := range d.runners {
		if _, ok := r.claims[topic]; ok {
			readers = append(readers, r)
		}
	}
	return readers
}

// log is the log of a topic, made where there is none.
func (d *Driver) log(topic string) *topicLog {
	l, ok := d.logs[topic]
	if !ok {
		l = &topicLog{}
		d.logs[topic] = l
	}
	return l
}

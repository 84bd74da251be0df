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

// stepTimeout is how long one step may take. A step that takes longer fails the test, so that a callback that blocks does
// not hang it.
const stepTimeout = 30 * time.Second

var (
	errGraph   = errors.New("processortest: graph cannot run here")
	errStopped = errors.New("processor stopped")
	errNoCause = errors.New("without an error")
	errBlocked = errors.New("blocked for too long")
)

// TB is the part of testing.TB that the harness uses. Other test frameworks can implement it. Fatalf and Fatal must not
// return.
type TB interface {
	Helper()
	Cleanup(func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
	Failed() bool
}

// Driver runs graphs and keeps all records that they read and wrote. New creates it. Only the test's goroutine may use it.
// Errors fail the test immediately with TB.Fatalf.
type Driver struct {
	tb          TB
	broker      *tester.Tester
	producer    goka.Producer
	runners     []*runner
	stepTimeout time.Duration

	running   sync.WaitGroup
	stop      context.CancelFunc
	stopped   chan struct{} // closed when the first processor stops by itself
	stopOnce  sync.Once
	stopCause error // set before stopped is closed

	mu      sync.Mutex // guards the fields that callbacks use too
	now     time.Time
	seq     int64
	queued  int64 // deliveries so far
	logs    map[string]*topicLog
	pending []delivery
	hold    bool
}

// New starts the graphs with the clock at start and returns when all of them read their inputs. When the test ends, New's
// cleanup stops them and fails the test if it has unread outputs. New needs at least one graph; the groups must differ.
func New(tb TB, start time.Time, graphs ...*goka.GroupGraph) *Driver {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d := &Driver{
		tb: tb, broker: tester.New(tb), stepTimeout: stepTimeout, now: start,
		stop: cancel, stopped: make(chan struct{}), logs: make(map[string]*topicLog),
	}
	tb.Cleanup(d.close)
	if err := d.start(ctx, graphs); err != nil {
		d.fail(err)
	}
	return d
}

// Now returns the time of the driver's clock.
func (d *Driver) Now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// Unread returns the names of the topics with outputs that the test did not read, sorted. It omits topics that a graph of
// this driver reads.
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

// HoldOutputs lets the test choose when, and in which order, graphs read what they and others of this driver write from now on: such a
// record is delivered when Input.PipeAt is called with its offset, and never by itself.
func (d *Driver) HoldOutputs() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hold = true
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
		if err := d.wait(r.started.Done(), "start of group "+string(r.graph.Group())); err != nil {
			return err
		}
	}
	return nil
}

// close stops the processors, so that none runs after the test, and reports unread outputs.
func (d *Driver) close() {
	d.tb.Helper()
	d.stop()
	ended := make(chan struct{})
	go func() { d.running.Wait(); close(ended) }()
	limit := time.NewTimer(d.stepTimeout)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
		d.tb.Errorf("processortest: stop: %v", errBlocked)
	}
	if d.tb.Failed() {
		return
	}
	for _, topic := range d.Unread() {
		d.tb.Errorf("processortest: topic %s has %d outputs that the test did not read", topic, len(d.log(topic).unread()))
	}
}

// processorStopped records the first processor that stops by itself, and why.
func (d *Driver) processorStopped(err error) {
	d.stopOnce.Do(func() {
		d.stopCause = err
		close(d.stopped)
	})
}

// wait blocks until done is closed. It returns an error that contains what if a processor stops first or the step times
// out.
func (d *Driver) wait(done <-chan struct{}, what string) error {
	limit := time.NewTimer(d.stepTimeout)
	defer limit.Stop()
	select {
	case <-done:
		return nil
	case <-d.stopped:
		return fmt.Errorf("processortest: %s: %w", what, d.stopCause)
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

// readers returns the graphs that have the topic as an input, in the order of New.
func (d *Driver) readers(topic string) []*runner {
	var readers []*runner
	for _, r := range d.runners {
		if _, ok := r.claims[topic]; ok {
			readers = append(readers, r)
		}
	}
	return readers
}

// log returns the log of a topic. It creates the log if there is none.
func (d *Driver) log(topic string) *topicLog {
	l, ok := d.logs[topic]
	if !ok {
		l = &topicLog{}
		d.logs[topic] = l
	}
	return l
}

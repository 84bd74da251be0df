package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// ErrReplaced is returned by Run if another host has the same name and started later, by the clocks of their machines.
var ErrReplaced = errors.New("host: another host with this name has started")

const (
	// knownActions is how many actions a host remembers, so that it does none twice.
	knownActions = 20_000
	// gitAtOnce is how many git actions run at the same time.
	gitAtOnce = 4
)

// times are the time limits of a host.
type times struct {
	initialize time.Duration // of a new process until it has answered
	session    time.Duration // of session/new
	load       time.Duration // of session/load
	stop       time.Duration // each step of a stop: closed input, SIGTERM, SIGKILL
	drain      time.Duration // for the rest of the output of an ended process
	beat       time.Duration // between two beats
	batch      time.Duration // that an update waits for further ones
	shutdown   time.Duration // of all processes
	flush      time.Duration // of the last records
}

func defaultTimes() times {
	return times{
		initialize: 30 * time.Second, session: 30 * time.Second, load: 120 * time.Second, stop: 5 * time.Second,
		drain: 2 * time.Second, beat: 10 * time.Second, batch: 50 * time.Millisecond, shutdown: 13 * time.Second,
		flush: 2 * time.Second,
	}
}

// Host runs agents. Its methods are safe for concurrent use. Use New.
type Host struct {
	config  Config
	catalog topics.Catalog
	times   times

	used    atomic.Bool
	ready   chan struct{} // closed when actions are done
	stopped context.CancelCauseFunc
	life    context.Context // ends when nothing waits for agents any more
	out     *outbox
	spawner *spawner
	git     chan struct{} // a token for each running git action
	working sync.WaitGroup
	rows    rows
	claims  *claims

	mu      sync.Mutex
	epoch   int64 // 0 until actions are done
	closing bool
	runs    map[string]*run // by agent
	known   *simplelru.LRU[string, struct{}]

	acting sync.Mutex // held while an action is begun
	begun  bool
	held   []topics.CrewAction // were read before the host began
}

// New returns a host. It opens no connection and starts no process. The error wraps ErrConfig and names all problems: besides
// invalid values, commands that are not on the PATH and directories that do not exist.
func New(c Config) (*Host, error) {
	catalog, err := c.complete()
	if err != nil {
		return nil, err
	}
	if _, _, err := processors.ClientConfig(c.Brokers, c.Options...); err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	known, _ := simplelru.NewLRU[string, struct{}](knownActions, nil) // its only error is a size of 0
	return &Host{
		config: c, catalog: catalog, times: c.times(), ready: make(chan struct{}), git: make(chan struct{}, gitAtOnce),
		runs: map[string]*run{}, known: known, rows: rows{from: mailbox.OfHost + c.Name, host: c.Name, waiting: map[string]struct{}{}},
		claims: newClaims(),
	}, nil
}

// Ready returns a channel that is closed once the host does actions.
func (h *Host) Ready() <-chan struct{} { return h.ready }

// Agents returns the number of processes of agents.
func (h *Host) Agents() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.runs)
}

// Run does actions until ctx ends. Then it ends all processes, within 15 seconds, writes that they have ended, and returns
// nil. It waits for brokers that are unavailable and for tables that do not exist yet. It returns ErrReplaced, after it has
// ended its processes, if another host with its name has started later. Call it once.
func (h *Host) Run(ctx context.Context) error {
	if !h.used.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: host: Run may be called only once", ErrConfig)
	}
	options := append([]processors.Option{processors.WithLogger(h.config.Logger)}, h.config.Options...)
	to, err := processors.NewPublisher(h.config.Brokers, options...)
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	defer func() { _ = to.Close() }()
	return h.run(ctx, to, options)
}

func (h *Host) run(ctx context.Context, to processors.Publisher, options []processors.Option) error {
	ctx, stopped := context.WithCancelCause(ctx)
	defer stopped(nil)
	h.stopped = stopped
	tables := []string{
		string(goka.GroupTable(h.catalog.CrewAgentsGroup())), string(goka.GroupTable(h.catalog.CrewRepositoriesGroup())),
	}
	actions, err := processors.NewFollower(h.config.Brokers, []string{h.catalog.CrewActions.Name()}, func(r processors.Inbound) {
		h.onAction(ctx, r)
	}, options...)
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	rows, err := processors.NewTableFollower(h.config.Brokers, tables, h.onRow, options...)
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	finish := h.open(to)
	var following sync.WaitGroup
	following.Go(func() { _ = actions.Run(ctx) }) // it returns an error only for a second call
	following.Go(func() { _ = rows.Run(ctx) })
	if h.wait(ctx, actions.Ready()) && h.wait(ctx, rows.Ready()) {
		// The number of the second in which a host begins is that of its run. No earlier run can have it, and the claim of one that
		// begins at the same time is read, because the actions are followed already.
		second := time.Now().Unix() + 1
		if clock.Sleep(ctx, clock.System(), time.Until(time.Unix(second, 0))) {
			if epoch, ok := h.claim(ctx, to, max(second, h.rows.epoch()+1)); ok {
				h.begin(ctx, epoch)
			}
		}
	}
	<-ctx.Done()
	following.Wait()
	finish()
	if errors.Is(context.Cause(ctx), ErrReplaced) {
		return ErrReplaced
	}
	return nil
}

func (h *Host) wait(ctx context.Context, what <-chan struct{}) bool {
	select {
	case <-what:
		return true
	case <-ctx.Done():
		return false
	}
}

// open makes what runs need. finish ends them.
func (h *Host) open(to processors.Publisher) (finish func()) {
	life, end := context.WithCancel(context.Background())
	writing, stopWriting := context.WithCancel(context.Background())
	h.life, h.spawner = life, newSpawner()
	h.out = &outbox{
		to: to, topics: h.catalog, from: mailbox.OfHost + h.config.Name, batchTime: h.times.batch,
		logger: h.config.Logger, ctx: writing, hurried: make(chan struct{}), boxes: map[string]*box{},
	}
	return func() {
		close(h.out.hurried)
		h.stopAll()
		end()
		h.working.Wait()
		h.spawner.close()
		limit, cancel := context.WithTimeout(context.Background(), h.times.flush)
		h.out.flush(limit)
		cancel()
		stopWriting()
		h.out.running.Wait()
	}
}

// begin begins to do actions. The rows that wait for an earlier run of the host are told that it is gone.
func (h *Host) begin(ctx context.Context, epoch int64) {
	h.mu.Lock()
	// The clock was set back, or there was a host with this name on a machine whose clock is ahead.
	epoch = max(epoch, h.rows.epoch()+1)
	h.epoch, h.out.number = epoch, epoch*mailbox.PerEpoch
	h.mu.Unlock()
	waiting := h.rows.begin(epoch)
	for _, subject := range waiting {
		h.tellStarted(subject)
	}
	h.config.Logger.Info("host started", zap.String("host", h.config.Name), zap.Int64("epoch", epoch),
		zap.Int("waiting rows", len(waiting)))
	h.acting.Lock()
	defer h.acting.Unlock()
	for _, a := range h.held {
		h.act(ctx, a)
	}
	h.begun, h.held = true, nil
	close(h.ready)
}

func (h *Host) tellStarted(subject string) {
	_ = h.out.put(h.life, subject, item{body: crewbody.HostStarted{Host: h.config.Name, Epoch: h.epoch}})
}

// stopAll ends all processes, and returns when they have ended or the time is over.
func (h *Host) stopAll() {
	h.mu.Lock()
	h.closing = true
	running := make([]*run, 0, len(h.runs))
	for _, r := range h.runs {
		r.stop(stopReason{host: true})
		running = append(running, r)
	}
	h.mu.Unlock()
	limit := time.NewTimer(h.times.shutdown)
	defer limit.Stop()
	for _, r := range running {
		select {
		case <-r.done:
		case <-limit.C:
			return
		}
	}
}

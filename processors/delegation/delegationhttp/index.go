package delegationhttp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// errNotReady: the index has not read the topic yet, or cannot read it now. It is temporary.
var errNotReady = errors.New("delegationhttp: the index of delegations is not ready")

const (
	// catchUpTimeout bounds how long a request waits for the brokers.
	catchUpTimeout = 5 * time.Second
	// maxReads is how many results are read from the brokers at the same time.
	maxReads = 8
)

// Index knows the delegations of an agent: it follows {agent}-delegation-status. Run fills it, and the doors of New read it. Its
// methods are safe for concurrent use.
type Index struct {
	agent   string
	topic   topics.Topic[topics.Delegation]
	config  Config
	reading *entrance.Slots
	started atomic.Bool
	ready   chan struct{}

	mu    sync.Mutex
	from  *processors.Follower // nil before Run
	table *table
}

// NewIndex returns the index of an agent's delegations. It opens no connection. The error wraps ErrConfig.
func NewIndex(agent string, c Config) (*Index, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	var check bounds.Check
	c.complete(&check)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	return &Index{
		agent: agent, topic: catalog.DelegationStatus, config: c, reading: entrance.NewSlots(maxReads), ready: make(chan struct{}),
		table: newTable(c.DelegationLimit, c.Lookback),
	}, nil
}

// Run reads the topic until ctx ends and then returns nil. It reads committed records only, from the beginning, and belongs to
// no consumer group. It waits for brokers that are unavailable and for a topic that does not exist. opts are the connection
// options of processors.New. Run may be called once. A second call, and invalid options, return errors that wrap ErrConfig.
func (x *Index) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	if !x.started.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: Run may be called only once", ErrConfig)
	}
	logged := append([]processors.Option{processors.WithLogger(x.config.Logger)}, opts...)
	from, err := processors.NewTableFollower(brokers, []string{x.topic.Name()}, x.onRecord, logged...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	x.mu.Lock()
	x.from = from
	x.mu.Unlock()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waiting.Go(func() {
		select {
		case <-from.Ready():
			close(x.ready)
		case <-ctx.Done():
		}
	})
	return from.Run(ctx)
}

// Ready returns a channel that is closed once the index has read all records that were committed when Run connected. Before, the
// door answers with 503.
func (x *Index) Ready() <-chan struct{} { return x.ready }

func (x *Index) isReady() bool {
	select {
	case <-x.ready:
		return true
	default:
		return false
	}
}

// Len returns how many delegations the index has.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.table.recent.Len()
}

// onRecord is called for each record of the topic.
func (x *Index) onRecord(r processors.Inbound) {
	if r.Value == nil {
		return
	}
	d := x.topic.Codec().Unmarshal(r.Value)
	if d.Err != nil || d.Value.SessionID != string(r.Key) {
		x.config.Logger.Error("delegation door cannot read a record; it is skipped", zap.String("topic", r.Topic),
			zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset), zap.Error(d.Err))
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.table.add(copied(d.Value), r.Partition, r.Offset, r.Timestamp, x.config.Clock.Now())
}

// named returns copies of the delegations with an ID: of a session, or of all sessions if it is empty.
func (x *Index) named(session, callbackID string) (found []entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.table.expire(x.config.Clock.Now())
	for _, e := range x.table.byID[callbackID] {
		if session == "" || e.SessionID == session {
			found = append(found, *e)
		}
	}
	return found
}

// of returns copies of the newest delegations of a session, newest first.
func (x *Index) of(session string, limit int) (found []entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.table.expire(x.config.Clock.Now())
	all := x.table.sessions[session]
	for i := len(all) - 1; i >= 0 && len(found) < limit; i-- {
		found = append(found, *all[i])
	}
	return found
}

// catchUp blocks until the index has every record that was committed when catchUp was called.
func (x *Index) catchUp(ctx context.Context) error {
	from := x.follower()
	if from == nil {
		return errNotReady
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	if err := from.CatchUpTopic(ctx, x.topic.Name()); err != nil {
		return fmt.Errorf("%w: %w", errNotReady, err)
	}
	return nil
}

// read reads the record of a delegation from the brokers; ok is false if they do not have it any more.
func (x *Index) read(ctx context.Context, caller string, e entry) (d topics.Delegation, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	if err := x.reading.Acquire(ctx, caller); err != nil {
		return d, false, fmt.Errorf("%w: %w", errNotReady, err)
	}
	defer x.reading.Release()
	_, err = x.follower().ReplayRange(ctx, x.topic.Name(), e.partition, e.offset, e.offset+1,
		func(_ context.Context, r processors.Inbound) bool {
			v := x.topic.Codec().Unmarshal(r.Value)
			if r.Offset == e.offset && v.Err == nil && v.Value.SessionID == e.SessionID && v.Value.CallbackID == e.CallbackID {
				d, ok = v.Value, true
			}
			return false
		})
	if err != nil {
		return d, false, fmt.Errorf("%w: %w", errNotReady, err)
	}
	return d, ok, nil
}

func (x *Index) follower() *processors.Follower {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.from
}

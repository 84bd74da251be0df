package delegationhttp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/tableindex"
	"github.com/turntable-streams/turntable/topics"
)

// errNotReady: the index has not read the topic yet, or cannot read it now. It is temporary.
var errNotReady = errors.New("delegationhttp: the index of delegations is not ready")

// Index knows the delegations of an agent: it follows {agent}-delegation-status. Run fills it, and the doors of New read it. Its
// methods are safe for concurrent use.
type Index struct {
	agent   string
	topic   topics.Topic[topics.Delegation]
	config  Config
	follows *tableindex.Index
	records *tableindex.Source

	mu    sync.Mutex
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
	x := &Index{agent: agent, topic: catalog.DelegationStatus, config: c, table: newTable(c.DelegationLimit, c.Lookback)}
	x.records = &tableindex.Source{Topics: []string{x.topic.Name()}, Handle: x.onRecord}
	x.follows = tableindex.New(ErrConfig, errNotReady, x.records)
	return x, nil
}

// Run reads the topic until ctx ends and then returns nil. It reads committed records only, from the beginning, and belongs to
// no consumer group. It waits for brokers that are unavailable and for a topic that does not exist. opts are the connection
// options of processors.New. Run may be called once. A second call, and invalid options, return errors that wrap ErrConfig.
func (x *Index) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	return x.follows.Run(ctx, brokers, x.config.Logger, opts)
}

// Ready returns a channel that is closed once the index has read all records that were committed when Run connected. Before, the
// door answers with 503.
func (x *Index) Ready() <-chan struct{} { return x.follows.Ready }

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

// read reads the record of a delegation from the brokers; ok is false if they do not have it any more.
func (x *Index) read(ctx context.Context, caller string, e entry) (d topics.Delegation, ok bool, err error) {
	r, ok, err := x.records.Read(ctx, caller, e.partition, e.offset)
	if !ok || err != nil {
		return d, false, err
	}
	v := x.topic.Codec().Unmarshal(r.Value)
	return v.Value, v.Err == nil && v.Value.SessionID == e.SessionID && v.Value.CallbackID == e.CallbackID, nil
}

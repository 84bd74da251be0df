package gatehttp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/seen"
	"github.com/turntable-streams/turntable/processors/internal/tableindex"
	"github.com/turntable-streams/turntable/topics"
)

// The errors of an Index. They are temporary.
var (
	// ErrNotReady: the index has not read the tables yet, or cannot read them now.
	ErrNotReady = errors.New("gatehttp: the index of gates is not ready")
	// errIncomplete: the gate may be one that the index left out.
	errIncomplete = errors.New("gatehttp: the index of gates is incomplete")
)

const (
	// rowTimeout bounds how long a request waits for a row.
	rowTimeout = 5 * time.Second
	// maxAgents bounds the rows of standing approvals. Usually there is one: that of the index's agent.
	maxAgents = 100
)

// Index knows the gates of an agent: it follows the table of the gate group, so that a gate is seen after its row is
// committed, in every process, and gate-requests, to know which rows will be written. Run fills it; the doors of New and the sockets of package delivery/websocket read it. Its
// methods are safe for concurrent use.
//
// The index keeps a small entry for each gate, and the rows that were written or read last (Config.RowMemory). Other rows are
// read from the brokers when they are needed.
type Index struct {
	agent  string
	config Config

	follows        *tableindex.Index
	rows, standing *tableindex.Source // standing: the table of grants may not exist
	shown          *seen.Log          // of whole requests
	waiting        *entrance.Slots    // of requests about gates without a row
	unknownWait    time.Duration      // see there
	rowTimeout     time.Duration      // see there

	mu        sync.Mutex
	table     *table
	requested *tableindex.Announced // gates by ID, of sessions
	watchers  map[string]map[*watcher]struct{}
	approved  map[string][]*gaterow.Grant // the standing approvals, by the agent that asks: the row's key
}

// NewIndex returns the index of an agent's gates. It opens no connection. The error wraps ErrConfig.
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
	x := &Index{
		agent: agent, config: c, shown: seen.NewLog(), table: newTable(c.GateLimit, c.RowMemory),
		watchers: map[string]map[*watcher]struct{}{}, approved: map[string][]*gaterow.Grant{},
		requested: tableindex.NewAnnounced(maxRequested, requestedFor), unknownWait: unknownWait, rowTimeout: rowTimeout,
		waiting: entrance.NewSlots(maxWaiting),
	}
	x.rows = &tableindex.Source{Topics: []string{string(goka.GroupTable(catalog.GateGroup()))}, Handle: x.onRow}
	x.standing = &tableindex.Source{Topics: []string{string(catalog.GateGrantTable())}, Handle: x.onGrants, Optional: true}
	requests := &tableindex.Source{Topics: []string{catalog.GateRequests.Name()}, Handle: x.onRequest, New: true}
	x.follows = tableindex.New(ErrConfig, ErrNotReady, requests, x.rows, x.standing)
	return x, nil
}

// Run reads the tables until ctx ends and then returns nil; requests that wait for an outcome are then answered. It reads committed records only, from the beginning, and
// belongs to no consumer group. It waits for brokers that are unavailable and for tables that do not exist. opts are the
// connection options of processors.New. Run may be called once. A second call, and invalid options, return errors that
// wrap ErrConfig.
func (x *Index) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	return x.follows.Run(ctx, brokers, x.config.Logger, opts, x.reread)
}

// Ready returns a channel that is closed once the index has read all gates whose rows were committed when Run connected.
// Before, the doors answer with 503.
func (x *Index) Ready() <-chan struct{} { return x.follows.Ready }

// Len returns how many gates are open.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.table.pending)
}

// onRow is called for each record of the table.
func (x *Index) onRow(r processors.Inbound) {
	u := updateOf(r)
	if u.broken {
		x.config.Logger.Error("gate door cannot read a row; its gates are not visible", zap.String("topic", r.Topic),
			zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset), zap.String("key", u.session), zap.Error(u.err))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	whole := len(x.table.left) == 0
	x.show(x.table.apply(u))
	x.endRequests(u)
	if whole && len(x.table.left) > 0 {
		x.config.Logger.Error("gate door has too many open gates: new ones are not visible until others end",
			zap.Int("limit", x.config.GateLimit))
	}
}

// show passes changes to the watchers, and to requests that wait for a gate. The caller holds the lock.
func (x *Index) show(changes []change) {
	for _, c := range changes {
		x.requested.Read(c.id)
		for w := range x.watchers[c.session] {
			w.changed(c)
		}
	}
}

// onGrants is called for each record of the table of standing approvals.
func (x *Index) onGrants(r processors.Inbound) {
	row, err := gaterow.GrantTable.Unmarshal(r.Value)
	x.mu.Lock()
	defer x.mu.Unlock()
	agent := string(r.Key)
	_, known := x.approved[agent]
	switch {
	case r.Value == nil:
		delete(x.approved, agent)
	case err != nil || !known && len(x.approved) == maxAgents:
		x.config.Logger.Error("gate door cannot show standing approvals", zap.String("topic", r.Topic),
			zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset), zap.String("key", agent), zap.Error(err))
	default:
		x.approved[agent] = row.GetGrants()
	}
}

// standingGrants returns the standing approvals of all agents that ask.
func (x *Index) standingGrants() (all []*gaterow.Grant) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, agent := range slices.Sorted(maps.Keys(x.approved)) {
		all = append(all, x.approved[agent]...)
	}
	return all
}

// sessionOf returns the session of a gate; ok is false if the index does not have it.
func (x *Index) sessionOf(id string) (session string, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	k := x.table.byID[id]
	if k == nil {
		return "", false
	}
	return k.session, true
}

// complete reports whether the index has all gates.
func (x *Index) complete() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.table.incomplete()
}

// row returns the newest row of a session for a caller; nil if the session has neither gates nor grants. It may read the
// row from the brokers.
func (x *Index) row(ctx context.Context, caller, session string) (*row, error) {
	ctx, cancel := context.WithTimeout(ctx, rowTimeout)
	defer cancel()
	for {
		x.mu.Lock()
		e := x.table.sessions[session]
		if e == nil {
			x.mu.Unlock()
			return nil, nil
		}
		r, _ := x.table.cached.Get(session)
		at, broken := e.place, e.broken
		x.mu.Unlock()
		switch {
		case r != nil:
			return r, nil
		case broken:
			return nil, errIncomplete
		}
		r, err := x.load(ctx, caller, session, at)
		if r != nil || err != nil {
			return r, err
		}
		// The broker no longer has the record, so it has a newer one of the session.
		if err := x.rows.CatchUp(ctx); err != nil {
			return nil, err
		}
	}
}

// load reads a row from the brokers, and keeps it in memory unless a newer one has been written. It returns nil if the
// brokers do not have the row.
func (x *Index) load(ctx context.Context, caller, session string, at place) (*row, error) {
	record, ok, err := x.rows.Read(ctx, caller, at.partition, at.offset)
	u := updateOf(record)
	if !ok || err != nil || u.state == nil || u.session != session {
		return nil, err
	}
	found := rowOf(u)
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.table.sessions[session]; e != nil && e.place == at {
		x.table.cache(session, found)
	}
	return found, nil
}

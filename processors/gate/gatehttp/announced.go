package gatehttp

import (
	"context"
	"math"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// An event can show a gate to a client before the group has written its row, and an agent's runner can even show it before the
// request is written. A client that decides at once is not told that the gate is unknown.
const (
	// unknownWait is how long a request about a gate waits that is in no row and in no request.
	unknownWait = 500 * time.Millisecond
	// requestedFor is how long the row of a requested gate is expected. Until then the gate is not unknown: it gets 503. A request that
	// is dead-lettered has no row.
	requestedFor = time.Minute
	// maxRequested bounds the gates that are requested and have no row. If there are more, the oldest are unknown.
	maxRequested = 10_000
	// maxWaiting is how many requests about gates without a row wait at the same time. The others take turns.
	maxWaiting = 1000
)

// onRequest is called for each record of gate-requests. A shadow request opens no gate.
func (x *Index) onRequest(r processors.Inbound) {
	if r.Value == nil {
		return
	}
	fields := topics.LookupAll(r.Value, "gate_id", "session_id", "withdrawn", "shadow")
	id, session := topics.TextOf(fields[0]), topics.TextOf(fields[1])
	withdrawn := topics.TextOf(fields[2])
	if id == nil || session == nil || *session != string(r.Key) || len(*id) > maxID || withdrawn != nil && *withdrawn != "" ||
		string(fields[3]) == "true" {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.table.byID[*id] == nil {
		x.requested.Add(*id, *session, x.config.Clock.Now())
	}
}

// endRequests forgets the requested gates of a row that have ended and that the row does not show, such as those of invalid requests.
// The caller holds the lock.
func (x *Index) endRequests(u update) {
	remembered := machine.Digests{Now: x.config.Clock.Now(), For: math.MaxInt64}
	for id := range x.requested.OnlyOf(u.session) {
		if remembered.Has(u.state.GetRemembered(), gaterow.EndedDigest(id)) {
			x.requested.Read(id)
		}
	}
}

// look returns the session of a gate that the caller may use, and otherwise that of a gate that the caller may not use. ok is false if
// there is no row of the gate. caller is who asks. Before that it catches up with the brokers, and waits for a row: for rowTimeout in all if the gate is
// requested, which may be true then, and for unknownWait otherwise.
func (x *Index) look(ctx context.Context, caller, id string, may func(session string) bool) (session string, ok, requested bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, x.rowTimeout)
	defer cancel()
	if err := x.waiting.Acquire(ctx, caller); err != nil {
		return "", false, false, err
	}
	defer x.waiting.Release()
	if err := x.follows.CatchUp(ctx); err != nil {
		return "", false, false, err
	}
	timer := time.NewTimer(x.unknownWait)
	defer timer.Stop()
	over := timer.C
	moved := make(chan struct{}, 1)
	x.mu.Lock()
	forget := x.requested.Await(moved, id)
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		forget()
	}()
	for {
		x.mu.Lock()
		of, requested := x.requested.Of(id, x.config.Clock.Now())
		session, ok = "", false
		if k := x.table.byID[id]; k != nil {
			session, ok = k.session, true
		}
		x.mu.Unlock()
		requested = requested && may(of)
		if ok && may(session) || over == nil && !requested {
			return session, ok, false, nil
		}
		select {
		case <-moved:
		case <-over:
			over = nil
		case <-ctx.Done():
			return session, ok, requested, nil
		case <-x.follows.Ended:
			return session, ok, requested, nil
		}
	}
}

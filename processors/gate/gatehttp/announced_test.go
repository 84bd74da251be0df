package gatehttp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/tableindex"
	"github.com/turntable-streams/turntable/topics"
)

// A client can see the request of a gate, or the event about it, before the gate group has written the row.
func TestDecisionThatFollowsItsRequestAtOnceFindsTheGate(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, g processors.Guarantee) {
		f := newField(t, g)
		f.gates()
		d := f.door(Config{})
		for n := range 10 {
			id := fmt.Sprint("g", n)
			f.ask("s", id)
			a := d.do("POST", "/api/gates/"+id+"/decision", approve)
			require.Equal(t, 200, a.status, "%s: %s", id, a.body)
		}
	})
}

// The event of a runner precedes the request, which another group writes.
func TestRequestAboutAGateWaitsForTheGate(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	d := f.door(Config{})
	d.index.unknownWait, d.index.rowTimeout = waitLimit, waitLimit
	answered := make(chan got, 1)
	go func() {
		for {
			a, err := d.try("GET", "/api/gates/g", "")
			if err == nil && a.status == 503 { // the brokers were slow
				continue
			}
			answered <- a
			return
		}
	}()
	require.Eventually(t, d.waits, waitLimit, time.Millisecond)
	f.ask("s", "g")
	require.Equal(t, topics.GateStatus("pending"), (<-answered).view(t).Status)
}

// While the group is down, a requested gate is not unknown: the client repeats its decision. Those who may not use the session are
// told nothing.
func TestRequestedGateWithoutARowIsNotUnknown(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	stop := f.gates()
	d := f.door(Config{Door: auth.Door{Authenticate: callers}})
	const mira, otto = as("mira read,answer {user}:*"), as("otto read,answer {user}:*")
	stop()
	f.ask("mira:1", "g")
	withdraw := func(r *topics.GateRequest) {
		*r = topics.GateRequest{GateID: "w", SessionID: r.SessionID, Withdrawn: topics.CausePurged}
	}
	f.ask("mira:1", "w", withdraw)
	d.index.rowTimeout = waitLimit
	require.Equal(t, 404, d.do("GET", "/api/gates/g", "", otto).status)
	require.Equal(t, 404, d.do("GET", "/api/gates/w", "", mira).status)
	d.index.rowTimeout = time.Second // which a decision about a requested gate waits
	a := d.do("POST", "/api/gates/g/decision", approve, mira)
	require.Equal(t, 503, a.status, a.body)
	require.NotEmpty(t, a.header.Get("Retry-After"))
	f.gates()
	require.Eventually(t, func() bool {
		return d.do("POST", "/api/gates/g/decision", approve, mira).status == 200
	}, waitLimit, time.Millisecond)
}

// waits reports whether a request waits for the row of a gate.
func (d *doorway) waits() bool {
	d.index.mu.Lock()
	defer d.index.mu.Unlock()
	return d.index.requested.Awaited()
}

// These requests have no row: a request about their gates is answered at once.
func TestRequestThatOpensNoGateIsNotAwaited(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	d := f.door(Config{})
	f.ask("s", "shadow", func(r *topics.GateRequest) { r.Shadow = true })
	f.ask("s", "invalid", func(r *topics.GateRequest) { r.Tool = strings.Repeat("x", 2000) })
	f.ask("s", "g")
	require.Eventually(t, func() bool {
		d.index.mu.Lock()
		defer d.index.mu.Unlock()
		_, requested := d.index.requested.Of("g", d.clock.Now())
		return requested
	}, waitLimit, time.Millisecond)
	f.gates()
	d.pending("s", "g")
	for _, id := range []string{"shadow", "invalid"} {
		require.Equal(t, 404, d.do("GET", "/api/gates/"+id, "").status, id)
	}
}

func TestNewestRequestsAreAwaitedIfThereAreTooMany(t *testing.T) {
	d := newField(t, processors.AtLeastOnce).closedDoor(Config{})
	ask := func(id string) {
		d.index.onRequest(processors.Inbound{Key: []byte("s"), Value: []byte(`{"gate_id":"` + id + `","session_id":"s"}`)})
	}
	known := func(id string) bool {
		_, ok := d.index.requested.Of(id, d.clock.Now())
		return ok
	}
	for n := range maxRequested + 10 {
		ask(fmt.Sprint(n))
	}
	require.False(t, known("9"))
	require.True(t, known("10"))
	require.True(t, known(fmt.Sprint(maxRequested+9)))
	d.clock.Advance(requestedFor)
	require.False(t, known("10"))
	ask("g")
	require.Equal(t, []string{"g"}, slices.Collect(d.index.requested.OnlyOf("s")))
}

// Rows of other gates, of which there may be many, wake no one.
func TestRequestIsWokenByTheRowOfItsGate(t *testing.T) {
	a, woken := tableindex.NewAnnounced(10, time.Minute), make(chan struct{}, 1)
	forget := a.Await(woken, "g", "h")
	a.Read("other")
	require.Empty(t, woken)
	a.Read("h")
	a.Read("g")
	require.Len(t, woken, 1)
	forget()
	require.False(t, a.Awaited())
}

func TestRequestsAboutUnknownGatesTakeTurns(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	d := f.door(Config{})
	d.index.waiting = entrance.NewSlots(1)
	require.NoError(t, d.index.waiting.Acquire(t.Context(), "another"))
	d.index.rowTimeout = 100 * time.Millisecond
	require.Equal(t, 503, d.do("GET", "/api/gates/g", "").status)
	d.index.waiting.Release()
	d.index.rowTimeout = waitLimit
	require.Equal(t, 404, d.do("GET", "/api/gates/g", "").status)
	require.NoError(t, d.index.waiting.Acquire(t.Context(), "another"), "the slot is free again")
}

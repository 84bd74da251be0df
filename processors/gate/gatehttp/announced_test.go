package gatehttp

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
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
	d.index.unknownWait = time.Minute
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
	began := time.Now()
	require.Equal(t, 404, d.do("GET", "/api/gates/g", "", otto).status)
	require.Equal(t, 404, d.do("GET", "/api/gates/w", "", mira).status)
	require.Less(t, time.Since(began), rowTimeout, "neither waits for a row")
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

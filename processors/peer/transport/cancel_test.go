package transport

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/peer"
)

func TestCancelEndsTheRunningAttemptAndTellsThePeer(t *testing.T) {
	for name, told := range map[string]int{"cancels": 1, "does not": 0} {
		t.Run(name, func(t *testing.T) {
			p := newInstance(t, func(c *peerwire.Card) { c.Cancel = told == 1 })
			begun, gone := make(chan struct{}), make(chan struct{})
			p.delegate = func(w http.ResponseWriter, r *http.Request) {
				close(begun)
				hang(w, r)
				close(gone)
			}
			p.tasks = func(w http.ResponseWriter, r *http.Request) {
				require.Equal(t, "DELETE /base/api/peer/tasks/t%2F9 Bearer "+token, r.Method+" "+r.RequestURI+" "+r.Header.Get("Authorization"))
				w.WriteHeader(http.StatusAccepted)
			}
			tr := p.sender()
			var running sync.WaitGroup
			var e exchanged
			running.Go(func() { e = exchange(t, tr, attempt()) })
			<-begun
			c := exchange(t, tr, attempt(cancelOf))
			require.False(t, c.failed)
			running.Wait()
			<-gone
			require.Equal(t, []any{peerwire.CodeCancelled, "cancelled", true, true}, []any{e.Code, e.Reason, e.Final, e.Reached})
			require.Equal(t, told, p.count("DELETE"))
		})
	}
}

func TestCancelEndsPolling(t *testing.T) {
	p, begun := newInstance(t, cancels), make(chan struct{})
	once := sync.OnceFunc(func() { close(begun) })
	p.delegate = accepted("tasks/t%2F9")
	p.tasks = func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			once()
			hang(w, r)
		}
	}
	tr := p.sender()
	var running sync.WaitGroup
	running.Go(func() { require.Equal(t, peerwire.CodeCancelled, exchange(t, tr, attempt()).Code) })
	<-begun
	require.False(t, exchange(t, tr, attempt(cancelOf)).failed)
	running.Wait()
	require.Equal(t, 1, p.count("DELETE"))
}

func TestAttemptOfACancelledTaskIsNotMade(t *testing.T) {
	p := newInstance(t)
	tr := p.sender()
	require.False(t, exchange(t, tr, attempt(number(2), cancelOf)).failed)
	for _, n := range []int64{1, 2} {
		e := exchange(t, tr, attempt(number(n)))
		require.Equal(t, []any{peerwire.CodeCancelled, true, false}, []any{e.Code, e.Final, e.Reached})
	}
	require.True(t, exchange(t, tr, attempt(repeated)).Reached)
	require.Zero(t, p.count("POST"))
	require.False(t, exchange(t, tr, attempt(number(3))).failed, "that of the cancel or a later one")
}

func TestPeerIsToldOfACancelThatRanElsewhere(t *testing.T) {
	for status, want := range map[int]peerwire.Code{
		200: peerwire.CodeCancelled, 202: peerwire.CodeCancelled, 404: peerwire.CodeCancelled, 410: peerwire.CodeCancelled,
		401: peerwire.CodePeerRefused, 500: peerwire.CodePeerRefused, 503: peerwire.CodePeerBusy,
	} {
		p := newInstance(t, cancels)
		p.tasks = answer(status, "")
		e := exchange(t, p.sender(), attempt(cancelOf))
		require.Equal(t, want, e.Code, status)
		require.Equal(t, want != peerwire.CodeCancelled, e.failed)
		require.Equal(t, 1, p.count("DELETE"))
	}
	p := newInstance(t, cancels)
	p.tasks = hangUp
	require.Equal(t, peerwire.CodeUnreachable, exchange(t, p.sender(), attempt(cancelOf)).Code)
	p.show(answer(500, ""))
	require.Equal(t, peerwire.CodePeerRefused, exchange(t, p.sender(), attempt(cancelOf)).Code)
	require.Equal(t, 1, p.count("DELETE"))
	none := sender(t, func() *peer.Settings { return &peer.Settings{Enabled: true} })
	require.Equal(t, peerwire.CodeUnknownPeer, exchange(t, none, attempt(cancelOf)).Code)
}

func TestMemoryIsBounded(t *testing.T) {
	var m memory
	now := time.Now()
	a := attempt().Delivery
	put := func(n int64, lease time.Time, o outcome) {
		d := a
		d.Attempt, d.LeaseUntilMS = n, lease.UnixMilli()
		e, mine := m.begin(d, now)
		require.True(t, mine)
		m.finish(e, o, true)
	}
	big := outcome{answer: peerwire.Answer{Reply: make([]byte, maxReplies/2)}}
	for n := range int64(3) {
		put(n, now.Add(time.Minute), big)
	}
	require.Equal(t, maxReplies, m.bytes)
	d := a
	d.Attempt = 2
	e, mine := m.begin(d, now)
	require.True(t, mine, "an answer that was not kept is not known")
	m.finish(e, outcome{}, false)
	now = now.Add(2 * time.Minute)
	put(4, now.Add(time.Hour), outcome{})
	require.Zero(t, m.bytes)
	require.Len(t, m.tasks[a.DeliveryID].attempts, 2, "that of which only the lease of ten minutes has not ended, and the new one")

	a.DeliveryID = "running"
	running, mine := m.begin(a, now)
	require.True(t, mine)
	for n := range 2*maxTasks + 10 {
		a.DeliveryID = "task " + strconv.Itoa(n)
		put(1, now.Add(time.Hour), outcome{})
		m.cancel(a, now)
	}
	require.LessOrEqual(t, len(m.tasks), 2*maxTasks)
	require.Greater(t, len(m.tasks), maxTasks)
	now = now.Add(2 * time.Hour)
	m.sweep(now)
	require.Len(t, m.tasks, 1, "the running attempt")
	m.finish(running, outcome{}, true)
	now = now.Add(time.Hour)
	m.sweep(now)
	require.Empty(t, m.tasks)
}

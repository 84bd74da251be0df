package gatehttp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// An index without memory for rows reads them from the brokers.
func TestIndexReadsRowsThatAreNotInMemory(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, g processors.Guarantee) {
		f := newField(t, g)
		f.gates()
		d := f.door(Config{RowMemory: 1})
		for n := range 6 {
			session := fmt.Sprint("s", n)
			f.ask(session, session+"-a")
			f.ask(session, session+"-b")
		}
		for n := range 6 {
			session := fmt.Sprint("s", n)
			d.pending(session, session+"-a", session+"-b")
		}
		require.Equal(t, 1, d.index.cachedRows())
		ids, next := d.do("GET", "/api/gates?status=pending&limit=7", "").listed(t)
		require.Len(t, ids, 7)
		more, next := d.do("GET", "/api/gates?status=pending&limit=7&after="+next, "").listed(t)
		require.Empty(t, next)
		require.Len(t, more, 5)
		for n := range 6 {
			session := fmt.Sprint("s", n)
			require.Equal(t, 200, d.do("POST", "/api/gates/"+session+"-a/decision", approve).status)
			pending, _ := d.do("GET", "/api/gates?status=pending&session_id="+session, "").listed(t)
			require.Equal(t, []string{session + "-b"}, pending)
			v := d.do("GET", "/api/gates/"+session+"-a", "").view(t)
			require.Equal(t, topics.GateApproved, v.Status)
		}
		require.Equal(t, 1, d.index.cachedRows())
	})
}

// A request for a gate that another process knows already finds it: the door catches up before it says that a gate is unknown.
func TestGateThatOneDoorKnowsIsKnownToTheOthers(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	first, second := f.door(Config{}), f.door(Config{})
	for n := range 20 {
		id := fmt.Sprint("g", n)
		f.ask("s", id)
		first.pending("s", id)
		require.Equal(t, 200, second.do("GET", "/api/gates/"+id, "").status, n)
	}
}

func (x *Index) cachedRows() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.table.cached.Len()
}

func TestIndexWithoutRoomSaysThatItIsIncomplete(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	d := f.door(Config{GateLimit: 2})
	f.ask("s", "a")
	d.pending("s", "a")
	require.Equal(t, 404, d.do("GET", "/api/gates/b", "").status)
	for _, id := range []string{"b", "c", "d"} {
		f.ask("s", id)
	}
	require.Eventually(t, func() bool { return !d.index.complete() }, waitLimit, time.Millisecond)
	require.Equal(t, 503, d.do("GET", "/api/gates/unknown", "").status, "it may be open")
	require.Contains(t, d.do("GET", "/api/gates?status=pending", "").body, `"incomplete":true`)
	require.Equal(t, 200, d.do("GET", "/api/gates/a", "").status)
}

// A burst over the limit does not need a restart: what was left out is visible when there is room again.
func TestIndexReadsAgainWhatItHasLeftOut(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	d := f.door(Config{GateLimit: 4})
	for n := range 6 {
		f.ask(fmt.Sprint("s", n), fmt.Sprint("a", n))
	}
	require.Eventually(t, func() bool { return !d.index.complete() }, waitLimit, time.Millisecond)
	approved := map[string]bool{}
	require.Eventually(t, func() bool {
		ids, _ := d.do("GET", "/api/gates?status=pending", "").listed(t)
		for _, id := range ids {
			approved[id] = d.do("POST", "/api/gates/"+id+"/decision", approve).status == 200 || approved[id]
		}
		d.clock.Advance(rereadAfter)
		return len(approved) == 6 && d.index.complete()
	}, waitLimit, 10*time.Millisecond)
	require.Equal(t, 404, d.do("GET", "/api/gates/unknown", "").status)
}

// watched is what a subscriber was shown.
type watched struct {
	opened bool
	id     string
	status topics.GateStatus
}

func watch(t *testing.T, x *Index, session string) (open []string, shown <-chan watched, stop func()) {
	t.Helper()
	changes := make(chan watched, 100)
	views, stop, err := x.Watch(t.Context(), "mira", session, func(opened bool, g []byte) {
		var v gate.View
		if err := json.Unmarshal(g, &v); err != nil {
			panic(err)
		}
		changes <- watched{opened, v.GateID, v.Status}
	})
	require.NoError(t, err)
	for raw := range views {
		var v gate.View
		require.NoError(t, json.Unmarshal(raw, &v))
		open = append(open, v.GateID)
	}
	return open, changes, stop
}

func TestWatcherIsShownTheOpenGatesAndEveryChange(t *testing.T) {
	t.Parallel()
	for _, memory := range []int{1, 1 << 20} {
		f := newField(t, processors.AtLeastOnce)
		f.gates()
		d := f.door(Config{RowMemory: memory})
		f.ask("s", "a")
		f.ask("other", "x")
		d.pending("s", "a")
		d.pending("other", "x")
		open, shown, stop := watch(t, d.index, "s")
		require.Equal(t, []string{"a"}, open)
		f.ask("other", "y")
		d.pending("other", "y")
		f.ask("s", "b")
		require.Equal(t, watched{true, "b", gate.StatusPending}, <-shown)
		require.Equal(t, 200, d.do("POST", "/api/gates/a/decision", deny).status)
		require.Equal(t, watched{false, "a", topics.GateDenied}, <-shown)
		purge := topics.Control{Action: topics.ActionPurge}
		publish(f, f.catalog.SessionControl, "s", purge)
		closed := <-shown
		require.Equal(t, "b", closed.id)
		require.False(t, closed.opened)
		require.Equal(t, 404, d.do("GET", "/api/gates/b", "").status)
		require.Equal(t, 404, d.do("GET", "/api/gates/a", "").status)
		stop()
		require.Empty(t, d.index.watchers)
		open, _, stop = watch(t, d.index, "none")
		require.Empty(t, open)
		stop()
	}
}

func TestWatchWaitsForTheIndex(t *testing.T) {
	x, err := NewIndex("pilot", Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = x.Watch(ctx, "mira", "s", func(bool, []byte) {})
	require.ErrorIs(t, err, context.Canceled)
}

func TestViewKeepsTheBytesOfTheRequest(t *testing.T) {
	args := `{"a":1.10,"a":"<\u00fc>","b":{}}`
	v := gate.View{GateID: "g", Args: topics.Raw(args), Options: topics.Raw(`[]`)}
	got := string(viewJSON(&v))
	require.Contains(t, got, `"args":`+args)
	require.Contains(t, got, `"options":[]`)
	require.NotContains(t, got, "response_schema")
	v.Args = topics.Raw(`{}`)
	require.Contains(t, string(viewJSON(&v)), `"args":{}`)
}

func TestInvalidConfigurationIsReported(t *testing.T) {
	x, err := NewIndex("pilot", Config{})
	require.NoError(t, err)
	to, err := processors.NewPublisher([]string{"localhost:1"})
	require.NoError(t, err)
	for name, c := range map[string]Config{
		"GateLimit": {GateLimit: -1}, "RowMemory": {RowMemory: -1}, "DecisionWait": {DecisionWait: time.Minute},
		"Concurrency": {Door: auth.Door{Concurrency: -1}}, "Origins": {Door: auth.Door{Origins: []string{"no origin"}}},
	} {
		_, err := New(x, to, c)
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, ": "+name+" ")
	}
	_, err = NewIndex("a/b", Config{})
	require.ErrorIs(t, err, ErrConfig)
	_, err = NewIndex("pilot", Config{GateLimit: -1})
	require.ErrorIs(t, err, ErrConfig)
	_, err = New(nil, nil, Config{})
	require.ErrorContains(t, err, "index is nil")
	require.ErrorContains(t, err, "publisher is nil")
	require.True(t, strings.HasPrefix(x.rows.Topics[0], "pilot-gate"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, x.Run(ctx, []string{"localhost:1"}))
	require.ErrorIs(t, x.Run(ctx, []string{"localhost:1"}), ErrConfig)
}

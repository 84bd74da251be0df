package websocket

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// fakeGates is a source of gates that the test changes.
type fakeGates struct {
	mu      sync.Mutex
	open    map[string][][]byte
	shows   map[*func(bool, []byte)]string
	ready   chan struct{} // nil, or Watch waits until it is closed
	watched int
	err     error
}

func newFakeGates() *fakeGates {
	return &fakeGates{open: map[string][][]byte{}, shows: map[*func(bool, []byte)]string{}}
}

func (g *fakeGates) Watch(ctx context.Context, _, session string, show func(bool, []byte)) (iter.Seq[[]byte], func(), error) {
	if g.ready != nil {
		select {
		case <-g.ready:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return nil, nil, g.err
	}
	g.watched++
	g.shows[&show] = session
	return slices.Values(slices.Clone(g.open[session])), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.shows, &show)
	}, nil
}

// change opens or closes a gate.
func (g *fakeGates) change(session string, opened bool, gate string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if opened {
		g.open[session] = append(g.open[session], []byte(gate))
	} else {
		g.open[session] = nil
	}
	for show, of := range g.shows {
		if of == session {
			(*show)(opened, []byte(gate))
		}
	}
}

func (g *fakeGates) watchers() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.shows)
}

func (g *fakeGates) watches(session string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, of := range g.shows {
		if of == session {
			return true
		}
	}
	return false
}

func TestClientSeesTheOpenGatesOfItsSessionAndTheirChanges(t *testing.T) {
	g := newFakeGates()
	g.change("s", true, `{"gate_id":"1","args":{"to":"mira","bearerToken":"t0ken"}}`)
	g.change("other", true, `{"gate_id":"9"}`)
	s := newFixture(t, func(c *Config) { c.Gates = g })
	b := s.open().subscribe("s")
	require.Equal(t, `{"type":"gate_opened","data":{"gate_id":"1","args":{"to":"mira"}},"session_id":"s"}`, b.next().text)
	require.Eventually(t, func() bool { return g.watchers() == 1 }, waitLimit, 1)
	g.change("other", false, `{"gate_id":"9"}`)
	g.change("s", true, `{"gate_id":"2"}`)
	require.Equal(t, `{"type":"gate_opened","data":{"gate_id":"2"},"session_id":"s"}`, b.next().text)
	g.change("s", false, `{"gate_id":"1","status":"approved"}`)
	require.Equal(t, `{"type":"gate_closed","data":{"gate_id":"1","status":"approved"},"session_id":"s"}`, b.next().text)
	b.none("s")

	// Another subscription ends that of the gates too.
	b.subscribe("other")
	b.none("other")
	require.Eventually(t, func() bool { return g.watches("other") && g.watchers() == 1 }, waitLimit, 1)
	g.change("s", true, `{"gate_id":"3"}`)
	b.none("other")
	require.NoError(t, b.CloseNow())
	require.Eventually(t, func() bool { return g.watchers() == 0 }, waitLimit, 1)
}

// Frames of gates have no event_id, so what a client resumes after is the same as without them.
func TestGatesDoNotChangeWhatAClientResumes(t *testing.T) {
	g := newFakeGates()
	s := newFixture(t, func(c *Config) { c.Gates = g })
	b := s.open().subscribe("s")
	s.take("message-input", "s", 1, `"one"`)
	last := b.next()
	g.change("s", true, `{"gate_id":"1"}`)
	require.Empty(t, b.next().id)
	require.NoError(t, b.CloseNow())
	s.take("message-input", "s", 2, `"two"`)
	back := s.open().resume("s", last.id)
	got := map[string]int{}
	for range 3 {
		got[back.next().kind]++
	}
	require.Equal(t, map[string]int{"pipeline_event": 1, "resumed": 1, "gate_opened": 1}, got)
	back.none("s")
}

// More gates than the queue of a client has room for, and larger ones, do not disconnect it, and take no room from others.
func TestManyOpenGatesTakeNoRoomFromOtherFrames(t *testing.T) {
	g := newFakeGates()
	for i := range 100 {
		g.change("s", true, fmt.Sprintf(`{"gate_id":"%d","args":"%s"}`, i, strings.Repeat("x", 10_000)))
	}
	s := newFixture(t, func(c *Config) { c.Gates, c.QueueFrames, c.QueueBytes = g, 8, 100_000 })
	b := s.open().subscribe("s")
	opened, events := 0, 0
	for i := range 100 {
		s.take("message-input", "s", int64(i), `"x"`)
		for seen := false; !seen; {
			switch b.next().kind {
			case "gate_opened":
				opened++
			case "pipeline_event":
				events++
				seen = true
			}
		}
	}
	for opened < 100 {
		require.Equal(t, "gate_opened", b.next().kind)
		opened++
	}
	require.Equal(t, 100, events)
	b.none("s")
}

func TestFramesDoNotWaitForGatesThatAreNotReady(t *testing.T) {
	g := newFakeGates()
	g.ready = make(chan struct{})
	g.change("s", true, `{"gate_id":"1"}`)
	s := newFixture(t, func(c *Config) { c.Gates = g })
	b := s.open().subscribe("s")
	b.none("s")
	close(g.ready)
	require.Equal(t, "gate_opened", b.next().kind)
}

func TestClientWhoseGatesCannotBeReadIsDisconnected(t *testing.T) {
	g := newFakeGates()
	g.err = errors.New("no row")
	s := newFixture(t, func(c *Config) { c.Gates = g })
	require.Equal(t, ws.StatusTryAgainLater, s.open().subscribe("s").ending().Code)
}

func TestClientForWhichTooManyChangesOfGatesWaitIsDisconnected(t *testing.T) {
	s := newFixture(t, func(c *Config) { c.QueueFrames, c.QueueBytes = 8, 1<<20 })
	c := newClient(s.config, auth.Caller{}) // nothing is written to it
	f := &gateFeed{client: c, session: "s", more: make(chan struct{}, 1)}
	for range 8 {
		f.show(true, []byte(`{}`))
	}
	select {
	case <-c.Ending:
		require.FailNow(t, "there was room")
	default:
	}
	f.show(true, []byte(`{}`))
	<-c.Ending
	require.Equal(t, socket.ReasonSlow, c.Reason)
}

package crewhttp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// unread makes the only client of a rig look like one that has not read the last frame of a replay. read ends that.
func (r *rig) unread() (read func()) {
	r.t.Helper()
	r.index.mu.Lock()
	defer r.index.mu.Unlock()
	require.Len(r.t, r.index.clients, 1)
	for c := range r.index.clients {
		c.replaying.Add(1)
		read = func() { c.replayed(true) }
	}
	return read
}

// The goroutine that reads frames also reads pongs: a slow client must not be disconnected because it asks for more.
func TestPongsAreReadWhileAResumeWaitsForAReplay(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.PingInterval, c.PongTimeout, c.WriteTimeout = time.Millisecond, 10*time.Second, waitLimit
	})
	pings := make(chan struct{}, 1)
	conn, _, err := ws.Dial(t.Context(), "ws"+strings.TrimPrefix(r.http.URL, "http")+"/ws", &ws.DialOptions{
		OnPingReceived: func(context.Context, []byte) bool {
			socket.Signal(pings)
			return true
		},
	})
	require.NoError(t, err)
	b := &browser{Conn: conn, t: t}
	defer func() { _ = b.CloseNow() }()
	b.next("init")
	read := r.unread()
	b.send(`{"type":"resume","from":{}}`)
	answered := make(chan error, 1)
	go func() { // reads, and so answers pings, until the resume is carried out
		f, err := b.read()
		if err == nil && f.Type != "resumed" {
			err = fmt.Errorf("unexpected frame %s", f.raw)
		}
		answered <- err
	}()
	for range 4 { // the door sends a ping when it has read the pong of the one before, which follows the resume
		select {
		case <-pings:
		case err := <-answered:
			require.FailNow(t, "the socket ended", "%v", err)
		}
	}
	read()
	require.NoError(t, <-answered)
}

func TestPermissionIsAnsweredWhileAResumeWaitsForAReplay(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "p", asks("g"))
	b, _ := r.open()
	read := r.unread()
	b.send(`{"type":"resume","from":{}}`)
	b.send(`{"type":"subscribe-project","projectId":"p"}`)
	b.send(`{"type":"permission_response","agentId":"a","approved":true,"requestId":"g"}`)
	require.Eventually(t, func() bool { return len(r.decisions()) == 1 }, 20*time.Second, time.Millisecond)
	read()
	b.next("resumed")
	b.next("init")
}

func TestFramesThatWaitForAReplayKeepTheirOrder(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"a", "b"} {
		r.agent(id, "c", "p"+id, func(row *agentRow) { row.seq = 2 })
		r.text(id, "text of "+id)
		r.status(id, view.Idle)
	}
	b, _ := r.open()
	read := r.unread()
	b.send(resumption("a", "b"))
	b.send(`{"type":"subscribe","agentId":"a"}`)
	b.send(`{"type":"subscribe-project","projectId":"pa"}`)
	b.send(resumption("a", "b"))
	b.send(`{"type":"unsubscribe","agentId":"a"}`)
	b.send(`{"type":"subscribe-project","projectId":null}`)
	b.send(resumption("b"))
	b.done()
	r.status("b", view.Running) // the filter does not apply yet
	require.Equal(t, int64(3), b.next("agent:status").Seq)
	read()

	require.Equal(t, "agent/a", b.next("agent:status").Subject) // without text
	require.Equal(t, "agent/b", b.next("agent:status").Subject)
	require.Equal(t, "agent/b", b.next("agent:status").Subject)
	b.next("resumed")
	require.Equal(t, "text of a", b.next("agent:buffer").Data)
	require.Len(t, b.next("init").Agents, 1)
	require.Equal(t, "text of a", b.next("agent:text").Text)
	require.Equal(t, "agent/a", b.next("agent:status").Subject)
	b.next("resumed")
	require.Equal(t, "agent/b", b.next("agent:status").Subject) // of each project
	require.Equal(t, "agent/b", b.next("agent:status").Subject)
	b.next("resumed")
	b.done()
}

func TestClientWithTooManyWaitingFramesIsToldWhy(t *testing.T) {
	r := newRig(t, func(c *Config) { c.FrameLimit = 100 })
	r.agent("a", "c", "")
	b, _ := r.open()
	r.unread()
	frame := resumption("a")
	for range maxBacklog * 100 / len(frame) {
		b.send(frame)
	}
	b.done()
	go func() {
		for range 2 { // the backlog does not include the frame that waits
			if b.Write(t.Context(), ws.MessageText, []byte(frame)) != nil {
				return
			}
		}
	}()
	code, reason := b.closed()
	require.Equal(t, ws.StatusTryAgainLater, code)
	require.Equal(t, reasonBacklog, reason)
}

// receiver returns a session whose frames a test passes to receive, and whose queue it reads.
func (r *rig) receiver() *session {
	return &session{
		handler: r.door, client: newClient(&r.door.config, auth.Caller{}, "id"),
		frames: rate.NewLimiter(framesPerSecond, frameBurst), heavy: rate.NewLimiter(heavyPerSecond, heavyBurst),
	}
}

// take removes the first frame as if it were written.
func (c *client) take() (text []byte, ok bool) {
	f, ok := c.Take()
	if text = f.Text; f.Encode != nil {
		text = f.Encode()
	}
	if f.Done != nil {
		f.Done(true)
	}
	return text, ok
}

func queueOf(frames, bytes int) *client {
	return newClient(&Config{QueueFrames: frames, QueueBytes: bytes}, auth.Caller{}, "id")
}

// A client that asks again and again without reading does not collect replays.
func TestOneReplayWaitsForAClientAtATime(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "")
	for range 9 {
		r.status("a", view.Idle)
	}
	s := r.receiver()
	q := s.client
	for range 3 {
		s.receive([]byte(resumption("a")))
	}
	for range 3 {
		took := func() bool { _, ok := q.take(); return ok }
		require.Eventually(t, took, waitLimit, time.Millisecond)
		for left := 9; left > 0; left-- {
			require.EqualValues(t, left, q.replaying.Load())
			require.True(t, took())
		}
	}
	s.client.End(0, "")
	s.release()
	require.Zero(t, q.replaying.Load())
	_, more := q.take()
	require.False(t, more)
}

func TestFramesThatWaitAreDroppedWhenTheirClientDisconnects(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "")
	r.status("a", view.Idle)
	s := r.receiver()
	for range 3 {
		s.receive([]byte(resumption("a")))
	}
	s.receive([]byte(`{"type":"subscribe"}`))
	s.client.End(0, "")
	s.release()
	require.EqualValues(t, 2, s.client.replaying.Load(), "one replay")
	require.False(t, s.client.all)
	require.Empty(t, s.backlog.frames)
}

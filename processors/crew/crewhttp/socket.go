package crewhttp

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	ws "github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

const (
	// busyWait is the Retry-After of a door with too many clients: they stay for long.
	busyWait = 5 * time.Second
	// framesPerSecond and frameBurst bound the frames that a client sends. One that sends more is disconnected.
	framesPerSecond = 50
	frameBurst      = 500
	// heavyPerSecond and heavyBurst bound how often a client changes its project or resumes. One that asks more often waits, at
	// most maxSlow each time.
	heavyPerSecond = 4
	heavyBurst     = 20
	maxSlow        = time.Second
)

// serveSocket serves a WebSocket until its client has disconnected. A client that is not authenticated is told by the status of
// the close frame, because scripts cannot read the status of a refused handshake.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request) {
	v, refusal := h.sockets.Open(w, r)
	defer v.Close()
	if refusal == nil {
		refusal = v.Authenticate(auth.Read)
	}
	unauthorized := refusal != nil && refusal.Status == http.StatusUnauthorized
	switch {
	case refusal != nil && !unauthorized:
		if refusal.Status == http.StatusServiceUnavailable {
			refusal.RetryAfter = busyWait
		}
		write(w, refusal.Answer())
		return
	case !unauthorized && !h.index.follows.IsReady():
		write(w, notReady())
		return
	}
	conn := socket.Accept(w, r, v, h.config.Origins)
	if conn == nil {
		return
	}
	if unauthorized {
		_ = conn.Close(StatusUnauthorized, reasonUnauthorized)
		return
	}
	c := newClient(&h.config, v.Caller, rand.Text())
	if !h.index.admit(c) {
		_ = conn.Close(ws.StatusGoingAway, socket.ReasonStopping)
		return
	}
	defer h.index.leave(c)
	s := &session{handler: h, client: c, visit: v, frames: rate.NewLimiter(framesPerSecond, frameBurst), heavy: rate.NewLimiter(heavyPerSecond, heavyBurst)}
	defer s.release()
	c.Serve(conn, s.receive)
}

// errUnknownAgent is the answer to a frame about an agent that does not exist or is not the caller's.
var errUnknownAgent = errors.New("unknown agent")

// session handles the frames that a client sends. The goroutine that reads them uses it, and those of hold and of backlog.
type session struct {
	handler *Handler
	client  *client
	visit   *entrance.Visit
	frames  *rate.Limiter
	heavy   *rate.Limiter
	backlog backlog
	hold    *hold // nil if the client has not opened the queue of decisions
}

// release ends what the client has begun. The client has ended.
func (s *session) release() {
	s.backlog.running.Wait()
	s.releaseHold()
}

func (s *session) releaseHold() {
	if s.hold != nil {
		s.hold.end()
		s.hold = nil
	}
}

// row returns the row of an agent that the caller may use.
func (s *session) row(id string) (*agentRow, error) {
	row, _, _ := s.handler.index.agentOf(context.Background(), s.client.Caller, id) // what is not seen then is unknown
	if row == nil {
		return nil, errUnknownAgent
	}
	return row, nil
}

// StatusUnauthorized is the status with which a WebSocket is closed if its caller is not authenticated, and when the
// credential of its caller expires or is revoked.
const StatusUnauthorized = socket.StatusExpired

const (
	reasonUnauthorized = "unauthorized"
	reasonTooMany      = "too many frames"
)

const (
	// maxSubscriptions is to how many agents a client can subscribe, without "*".
	maxSubscriptions = 1000
	// maxSeen is for how many crews a client remembers whether its caller may use them.
	maxSeen = 10_000
)

// client is one WebSocket.
type client struct {
	*socket.Client
	config *Config
	id     string // random

	replaying atomic.Int64  // frames of replays that wait
	caught    chan struct{} // capacity 1: the last of them was written

	// The following are guarded by the lock of the index.
	texts   map[string]struct{} // the agents whose text the client gets
	all     bool                // it gets the text of every agent
	project string              // empty for all projects
	crews   rights
}

func newClient(c *Config, caller auth.Caller, id string) *client {
	return &client{
		config: c, id: id, caught: make(chan struct{}, 1), texts: map[string]struct{}{}, crews: rights{caller, map[string]bool{}},
		Client: socket.New(socket.Config{
			Limits: socket.Limits{Frames: c.QueueFrames, Bytes: c.QueueBytes}, FrameLimit: c.FrameLimit, WriteTimeout: c.WriteTimeout,
			PingInterval: c.PingInterval, PongTimeout: c.PongTimeout, Clock: c.Clock,
		}, caller),
	}
}

// wants reports whether the client gets the events of a crew and a project.
func (c *client) wants(crew, project string) bool {
	return (c.project == "" || project == "" || project == c.project) && c.crews.use(crew)
}

// wantsText reports whether the client gets the text of an agent.
func (c *client) wantsText(agent string) bool {
	_, ok := c.texts[agent]
	return ok || c.all
}

// show queues a frame. A client without room is disconnected.
func (c *client) show(frame []byte) { c.Show(socket.Frame{Text: frame}) }

// replay queues the frames of a replay. They do not count against the limits.
func (c *client) replay(r *replay) {
	c.replaying.Add(int64(len(r.frames)))
	frames := make([]socket.Frame, len(r.frames))
	for i, m := range r.frames {
		frames[i] = socket.Frame{Encode: m.encoded, Done: c.replayed, Free: true}
	}
	c.Put(frames...)
}

func (c *client) replayed(bool) {
	if c.replaying.Add(-1) == 0 {
		socket.Signal(c.caught)
	}
}

// awaitReplay waits until no frame of a replay waits, or until the client ends.
func (c *client) awaitReplay() {
	for c.replaying.Load() > 0 {
		select {
		case <-c.caught:
		case <-c.Ending:
			return
		}
	}
}

package crewhttp

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
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

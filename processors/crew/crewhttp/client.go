package crewhttp

import (
	"sync/atomic"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

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
	seen    map[string]bool     // whether the caller may use a crew
}

func newClient(c *Config, caller auth.Caller, id string) *client {
	return &client{
		config: c, id: id, caught: make(chan struct{}, 1), texts: map[string]struct{}{}, seen: map[string]bool{},
		Client: socket.New(socket.Config{
			Limits: socket.Limits{Frames: c.QueueFrames, Bytes: c.QueueBytes}, FrameLimit: c.FrameLimit, WriteTimeout: c.WriteTimeout,
			PingInterval: c.PingInterval, PongTimeout: c.PongTimeout, Clock: c.Clock,
		}, caller),
	}
}

// wants reports whether the client gets the events of a crew and a project.
func (c *client) wants(crew, project string) bool {
	return (c.project == "" || project == "" || project == c.project) && c.maySee(crew)
}

// wantsText reports whether the client gets the text of an agent.
func (c *client) wantsText(agent string) bool {
	_, ok := c.texts[agent]
	return ok || c.all
}

// maySee reports whether the caller may use a crew.
func (c *client) maySee(crew string) bool {
	if c.Caller.MayUse == nil {
		return true
	}
	may, known := c.seen[crew]
	if !known {
		may = mayUse(c.Caller, crew)
		if len(c.seen) >= maxSeen {
			clear(c.seen)
		}
		c.seen[crew] = may
	}
	return may
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

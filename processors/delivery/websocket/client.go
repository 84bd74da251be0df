package websocket

import (
	"time"

	ws "github.com/coder/websocket"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// client is one connection.
type client struct {
	*socket.Client
	config *Config
	owner  string // name of the account that pays for its reads and its sessions' memory

	// The hub's, guarded by its lock.
	session   *session
	holding   bool     // new frames are appended to held, because a replay must be sent first
	held      []*frame // within the limits of the queue
	heldBytes int      // of held
	replayed  replayEnd
}

// replayEnd is the position up to which a replay from the topics went. If this process reads the topics with a lag, it
// receives the records before that position again.
type replayEnd struct {
	next [feedCount]int64
	at   time.Time // the time of the replay; later records were not part of it
}

// includes reports whether the replay already sent a frame.
func (e replayEnd) includes(f *frame) bool { return f.offset < e.next[f.feed] && !f.at.After(e.at) }

// StatusCredentialExpired is the status with which a connection is closed when the credential of its caller expires or is
// revoked. A client should connect again with a new credential.
const StatusCredentialExpired = socket.StatusExpired

func newClient(c *Config, caller auth.Caller) *client {
	return &client{config: c, Client: socket.New(socket.Config{
		Limits: c.queue(), FrameLimit: c.FrameLimit, Drain: true, WriteTimeout: c.WriteTimeout, PingInterval: c.PingInterval,
		PongTimeout: c.PongTimeout, Clock: c.Clock,
	}, caller)}
}

// receiveNew makes the client receive new frames at once. The caller holds the hub's lock.
func (c *client) receiveNew() {
	c.holding, c.held, c.heldBytes, c.replayed = false, nil, 0, replayEnd{}
}

// offer queues a frame of the client's session. The caller holds the hub's lock. A client without room is disconnected.
func (c *client) offer(f *frame) {
	switch {
	case c.replayed.includes(f):
	case !c.holding:
		c.Show(socket.Frame{Text: f.text})
	case c.config.queue().Allow(len(c.held)+1, c.heldBytes+len(f.text)):
		c.held, c.heldBytes = append(c.held, f), c.heldBytes+len(f.text)
	default:
		c.End(ws.StatusTryAgainLater, socket.ReasonSlow)
	}
}

package webchat

import (
	"sync/atomic"

	ws "github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// client is one connection.
type client struct {
	*socket.Client
	config *Config
	user   string

	frames, events *rate.Limiter
	heard          atomic.Bool // since the last tick of idle
}

func newClient(c *Config, caller auth.Caller) *client {
	minute := func(n int) *rate.Limiter { return rate.NewLimiter(rate.Limit(float64(n)/60), n) }
	return &client{
		config: c, user: caller.UserID, frames: minute(10 * c.PerMinute), events: minute(c.PerMinute),
		Client: socket.New(socket.Config{
			Limits: socket.Limits{Frames: c.QueueFrames, Bytes: c.QueueBytes}, FrameLimit: maxMessage, TextOnly: true,
			WriteTimeout: c.WriteTimeout, Clock: c.Clock,
		}, caller),
	}
}

// offer queues a frame. It returns false if the client has ended or is too slow, in which case it is disconnected.
func (c *client) offer(f socket.Frame) bool {
	if len(f.Text) <= c.config.QueueBytes && c.Put(f) {
		return true
	}
	c.End(ws.StatusTryAgainLater, socket.ReasonSlow)
	c.Abort()
	return false
}

func (c *client) reply(r response) { c.offer(socket.Frame{Text: r.encode()}) }

// hear reports whether a frame of the client is to be received. A client that sends too many is disconnected.
func (c *client) hear() bool {
	c.heard.Store(true)
	if !c.frames.AllowN(c.config.Clock.Now(), 1) {
		c.End(ws.StatusPolicyViolation, "too many frames")
		return false
	}
	return c.Context.Err() == nil
}

// idle disconnects a client that sends nothing.
func (c *client) idle() {
	every := c.config.Clock.NewTicker(c.config.Idle)
	defer every.Stop()
	for {
		select {
		case <-every.C():
			if !c.heard.Swap(false) {
				c.End(ws.StatusGoingAway, "idle")
			}
		case <-c.Ending:
			return
		}
	}
}

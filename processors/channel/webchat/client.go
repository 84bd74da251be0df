package webchat

import (
	"context"
	"sync"
	"sync/atomic"

	ws "github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/turntable-streams/turntable/processors/auth"
)

// StatusCredentialExpired is the status with which a connection is closed when the credential of its caller expires or is
// revoked. A client should connect again with a new credential.
const StatusCredentialExpired ws.StatusCode = 4401

// client is one connection. Its goroutines are the HTTP handler's, which reads, one that writes, one that looks whether it is idle,
// and one that waits for the end of the caller's credential, if it has one.
type client struct {
	config *Config
	caller auth.Caller
	user   string
	conn   *ws.Conn
	queue  *queue
	turn   chan struct{} // see user.turn

	writing context.Context // of writes; abort ends it
	abort   context.CancelFunc

	frames, events *rate.Limiter
	heard          atomic.Bool // since the last tick of idle

	once   sync.Once
	ending chan struct{} // closed by end
	code   ws.StatusCode // set before ending is closed; 0 closes the connection without a close frame
	reason string
}

func newClient(c *Config, caller auth.Caller) *client {
	minute := func(n int) *rate.Limiter { return rate.NewLimiter(rate.Limit(float64(n)/60), n) }
	writing, abort := context.WithCancel(context.Background())
	return &client{
		writing: writing, abort: abort, config: c, caller: caller, user: caller.UserID, queue: newQueue(c.QueueFrames, c.QueueBytes),
		frames: minute(10 * c.PerMinute), events: minute(c.PerMinute), ending: make(chan struct{}),
	}
}

// end makes the client close its connection with a status and a reason. Only the first call has an effect.
func (c *client) end(code ws.StatusCode, reason string) {
	c.once.Do(func() {
		c.code, c.reason = code, reason
		close(c.ending)
	})
}

// offer queues a frame. It returns false if the client has ended or is too slow, in which case it is disconnected.
func (c *client) offer(i item) bool {
	if c.queue.put(i) {
		return true
	}
	c.end(ws.StatusTryAgainLater, "too slow: more waits for you than is kept")
	c.abort() // a write that waits for the client ends, and with it the connection
	return false
}

func (c *client) reply(r response) { c.offer(item{frame: r.encode()}) }

// serve passes the client's frames to receive until the connection ends. Its goroutines have ended when it returns.
func (c *client) serve(receive func(ctx context.Context, frame []byte)) {
	c.conn.SetReadLimit(maxMessage)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		c.write()
		cancel() // what is being received
	})
	running.Go(c.idle)
	if !c.caller.Lasts() {
		running.Go(func() {
			if c.caller.Await(c.ending, c.config.Clock) {
				c.end(StatusCredentialExpired, "the credential has expired: connect again with a new one")
			}
		})
	}
	defer c.abort()
	defer running.Wait()
	defer c.end(0, "")
	for {
		kind, frame, err := c.conn.Read(context.Background())
		if err != nil {
			return
		}
		c.heard.Store(true)
		switch {
		case kind != ws.MessageText:
			c.end(ws.StatusUnsupportedData, "frames are text")
		case !c.frames.AllowN(c.config.Clock.Now(), 1):
			c.end(ws.StatusPolicyViolation, "too many frames")
		case ctx.Err() == nil:
			receive(ctx, frame)
		}
	}
}

// write sends the queued frames until the client ends, then closes the connection.
func (c *client) write() {
	defer c.queue.close()
	for {
		select {
		case <-c.ending:
			c.close()
			return
		default:
		}
		i, ok := c.queue.take()
		if !ok {
			select {
			case <-c.queue.more:
			case <-c.ending:
			}
			continue
		}
		ctx, cancel := context.WithTimeout(c.writing, c.config.WriteTimeout)
		err := c.conn.Write(ctx, ws.MessageText, i.frame)
		cancel()
		i.done(err == nil)
		if err != nil {
			c.end(0, "")
		}
	}
}

// close closes the connection. Errors are ignored: they mean that it is already closed.
func (c *client) close() {
	if c.code == 0 {
		_ = c.conn.CloseNow()
		return
	}
	_ = c.conn.Close(c.code, c.reason)
}

// idle disconnects a client that sends nothing.
func (c *client) idle() {
	every := c.config.Clock.NewTicker(c.config.Idle)
	defer every.Stop()
	for {
		select {
		case <-every.C():
			if !c.heard.Swap(false) {
				c.end(ws.StatusGoingAway, "idle")
			}
		case <-c.ending:
			return
		}
	}
}

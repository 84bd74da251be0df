package websocket

import (
	"context"
	"sync"
	"time"

	ws "github.com/coder/websocket"

	"github.com/turntable-streams/turntable/processors/auth"
)

// client is one connection. Its goroutines are the HTTP handler's, which reads, one that writes, one that pings, and
// one that waits for the end of the caller's credential, if it has one.
type client struct {
	config *Config
	caller auth.Caller
	owner  string // name of the account that pays for its reads and its sessions' memory
	conn   *ws.Conn
	queue  *queue

	once   sync.Once
	ending chan struct{} // closed by end
	code   ws.StatusCode // set before ending is closed; 0 closes the connection without a close frame
	reason string

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
const StatusCredentialExpired ws.StatusCode = 4401

const (
	reasonExpired  = "the credential has expired: connect again with a new one"
	reasonSlow     = "too slow: more waits for you than is kept"
	reasonStopping = "server is stopping"
)

func newClient(config *Config, caller auth.Caller) *client {
	return &client{config: config, caller: caller, queue: newQueue(config.queue()), ending: make(chan struct{})}
}

// end makes the client close its connection with a status and a reason. Only the first call has an effect.
func (c *client) end(code ws.StatusCode, reason string) {
	c.once.Do(func() {
		c.code, c.reason = code, reason
		close(c.ending)
	})
}

// receiveNew makes the client receive new frames at once. The caller holds the hub's lock.
func (c *client) receiveNew() {
	c.holding, c.held, c.heldBytes, c.replayed = false, nil, 0, replayEnd{}
}

// show queues a frame, also one of a session to which the client has not subscribed. A client without room is disconnected.
func (c *client) show(f *frame) {
	if !c.queue.put(item{text: f.text}) {
		c.end(ws.StatusTryAgainLater, reasonSlow)
	}
}

// offer queues a frame of the client's session. The caller holds the hub's lock. A client without room is disconnected.
func (c *client) offer(f *frame) {
	switch {
	case c.replayed.includes(f):
	case !c.holding:
		c.show(f)
	case c.config.queue().allow(len(c.held)+1, c.heldBytes+len(f.text)):
		c.held, c.heldBytes = append(c.held, f), c.heldBytes+len(f.text)
	default:
		c.end(ws.StatusTryAgainLater, reasonSlow)
	}
}

// serve passes the client's text frames to receive until the connection ends. Its goroutines have ended when it returns.
func (c *client) serve(receive func(frame []byte)) {
	c.conn.SetReadLimit(c.config.FrameLimit)
	var running sync.WaitGroup
	running.Go(c.write)
	running.Go(c.ping)
	if !c.caller.Lasts() {
		running.Go(c.expire)
	}
	for {
		kind, frame, err := c.conn.Read(context.Background())
		if err != nil {
			break
		}
		if kind == ws.MessageText {
			receive(frame)
		}
	}
	c.end(0, "")
	running.Wait()
}

// write sends the queued frames until the client ends, then closes the connection.
func (c *client) write() {
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
		if c.send(i) != nil {
			c.end(0, "")
		}
	}
}

func (c *client) send(i item) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.config.WriteTimeout)
	defer cancel()
	if err := c.conn.Write(ctx, ws.MessageText, i.text); err != nil {
		return err
	}
	if i.written != nil {
		signal(i.written)
	}
	return nil
}

// close closes the connection. If the server is stopping, it first sends the queued frames, within the write timeout. Errors
// are ignored: they mean that the connection is already closed.
func (c *client) close() {
	if c.code == 0 {
		_ = c.conn.CloseNow()
		return
	}
	until := time.Now().Add(c.config.WriteTimeout)
	for c.code == ws.StatusGoingAway && time.Now().Before(until) {
		i, ok := c.queue.take()
		if !ok {
			break
		}
		if c.send(i) != nil {
			_ = c.conn.CloseNow()
			return
		}
	}
	_ = c.conn.Close(c.code, c.reason)
}

// expire disconnects the client when its credential ends.
func (c *client) expire() {
	if c.caller.Await(c.ending, c.config.Clock) {
		c.end(StatusCredentialExpired, reasonExpired)
	}
}

// ping disconnects a client that does not answer.
func (c *client) ping() {
	every := time.NewTicker(c.config.PingInterval)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-c.ending:
			return
		}
		// The client's end does not cancel the ping: a canceled write closes the connection without a reason.
		ctx, cancel := context.WithTimeout(context.Background(), c.config.PongTimeout)
		err := c.conn.Ping(ctx)
		cancel()
		if err != nil {
			c.end(0, "")
			return
		}
	}
}

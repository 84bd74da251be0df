package crewhttp

import (
	"context"
	"sync"
	"time"

	ws "github.com/coder/websocket"

	"github.com/turntable-streams/turntable/processors/auth"
)

// StatusUnauthorized is the status with which a WebSocket is closed if its caller is not authenticated, and when the
// credential of its caller expires or is revoked.
const StatusUnauthorized ws.StatusCode = 4401

const (
	reasonUnauthorized = "unauthorized"
	reasonExpired      = "the credential has expired: connect again with a new one"
	reasonSlow         = "too slow: more waits for you than is kept"
	reasonStopping     = "server is stopping"
	reasonTooMany      = "too many frames"
)

const (
	// maxSubscriptions is to how many agents a client can subscribe, without "*".
	maxSubscriptions = 1000
	// maxSeen is for how many crews a client remembers whether its caller may use them.
	maxSeen = 10_000
)

// client is one WebSocket. Its goroutines are the HTTP handler's, which reads, and further ones that write, ping, and wait for
// the end of the caller's credential, if it has one.
type client struct {
	config *Config
	caller auth.Caller
	id     string // random
	conn   *ws.Conn
	queue  *queue

	once   sync.Once
	ending chan struct{} // closed by end
	code   ws.StatusCode // set before ending is closed; 0 closes the connection without a close frame
	reason string

	// The following are guarded by the lock of the index.
	texts   map[string]struct{} // the agents whose text the client gets
	all     bool                // it gets the text of every agent
	project string              // empty for all projects
	seen    map[string]bool     // whether the caller may use a crew
}

func newClient(config *Config, caller auth.Caller, id string) *client {
	return &client{
		config: config, caller: caller, id: id, queue: newQueue(queueLimits{config.QueueFrames, config.QueueBytes}), ending: make(chan struct{}),
		texts: map[string]struct{}{}, seen: map[string]bool{},
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
	if c.caller.MayUse == nil {
		return true
	}
	may, known := c.seen[crew]
	if !known {
		may = mayUse(c.caller, crew)
		if len(c.seen) >= maxSeen {
			clear(c.seen)
		}
		c.seen[crew] = may
	}
	return may
}

// show queues a frame. A client without room is disconnected.
func (c *client) show(frame []byte) {
	if !c.queue.put(frame) {
		c.end(ws.StatusTryAgainLater, reasonSlow)
	}
}

// end makes the client close its connection with a status and a reason. Only the first call has an effect.
func (c *client) end(code ws.StatusCode, reason string) {
	c.once.Do(func() {
		c.code, c.reason = code, reason
		close(c.ending)
	})
}

// ended reports whether end was called.
func (c *client) ended() bool {
	select {
	case <-c.ending:
		return true
	default:
		return false
	}
}

// serve passes the client's text frames to receive until the connection ends. Its goroutines have ended when it returns. receive
// must not wait for the client: pongs are read between its calls.
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
			if c.code == 0 {
				_ = c.conn.CloseNow()
			} else {
				_ = c.conn.Close(c.code, c.reason) // an error means that it is closed already
			}
			return
		default:
		}
		frame, ok := c.queue.take()
		if !ok {
			select {
			case <-c.queue.more:
			case <-c.ending:
			}
			continue
		}
		if c.send(frame) != nil {
			c.end(0, "")
		}
	}
}

func (c *client) send(frame []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.config.WriteTimeout)
	defer cancel()
	return c.conn.Write(ctx, ws.MessageText, frame)
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
		// The client's end does not cancel the ping: a cancelled write closes the connection without a reason.
		ctx, cancel := context.WithTimeout(context.Background(), c.config.PongTimeout)
		err := c.conn.Ping(ctx)
		cancel()
		if err != nil {
			c.end(0, "")
			return
		}
	}
}

// expire disconnects the client when its credential ends.
func (c *client) expire() {
	if c.caller.Await(c.ending, c.config.Clock) {
		c.end(StatusUnauthorized, reasonExpired)
	}
}

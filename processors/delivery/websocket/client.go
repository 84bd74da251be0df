package websocket

import (
	"context"
	"sync"
	"time"

	ws "github.com/coder/websocket"
)

// client is one connection. Its goroutines are a reader, which is the handler's, a writer and a pinger.
type client struct {
	rules  *rules
	caller Caller
	conn   *ws.Conn
	queue  *queue

	once   sync.Once
	done   chan struct{} // closed when it is to end
	code   ws.StatusCode // from then on; 0 ends it without a word
	reason string

	// Of the hub, by its lock.
	session *session
	holding bool     // what comes waits in held: a replay goes before it
	held    []*frame // within the limits of the queue
	bytes   int      // of held
	floor   floor
}

// floor is up to where a replay went: records before it come once more where this process is behind.
type floor struct {
	next [feedCount]int64
	at   time.Time // records that are younger are above it
}

func (f floor) above(r *frame) bool { return r.offset < f.next[r.feed] && !r.at.After(f.at) }

const (
	reasonSlow     = "too slow: more waits for you than is kept"
	reasonStopping = "server is stopping"
)

func newClient(r *rules, caller Caller) *client {
	return &client{rules: r, caller: caller, queue: newQueue(r.queue), done: make(chan struct{})}
}

// finish has the client end, once.
func (c *client) finish(code ws.StatusCode, reason string) {
	c.once.Do(func() {
		c.code, c.reason = code, reason
		close(c.done)
	})
}

// offer gives the client a frame of its session, under the hub's lock. One that has no room for it is dropped.
func (c *client) offer(f *frame) {
	switch {
	case c.floor.above(f):
	case !c.holding:
		if !c.queue.put(item{text: f.text}) {
			c.finish(ws.StatusTryAgainLater, reasonSlow)
		}
	case c.rules.queue.hold(len(c.held)+1, c.bytes+len(f.text)):
		c.held, c.bytes = append(c.held, f), c.bytes+len(f.text)
	default:
		c.finish(ws.StatusTryAgainLater, reasonSlow)
	}
}

// serve reads what the client sends until it ends, and hands over its frames. All that it began has ended then.
func (c *client) serve(receive func(frame []byte)) {
	c.conn.SetReadLimit(c.rules.inbound)
	var running sync.WaitGroup
	running.Go(c.write)
	running.Go(c.ping)
	for {
		kind, frame, err := c.conn.Read(context.Background())
		if err != nil {
			break
		}
		if kind == ws.MessageText {
			receive(frame)
		}
	}
	c.finish(0, "")
	running.Wait()
}

// write sends what waits, then says goodbye.
func (c *client) write() {
	for {
		select {
		case <-c.done:
			c.goodbye()
			return
		default:
		}
		i, ok := c.queue.take()
		if !ok {
			select {
			case <-c.queue.more:
			case <-c.done:
			}
			continue
		}
		if c.send(i) != nil {
			c.finish(0, "")
		}
	}
}

func (c *client) send(i item) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.rules.write)
	defer cancel()
	if err := c.conn.Write(ctx, ws.MessageText, i.text); err != nil {
		return err
	}
	if i.written != nil {
		signal(i.written)
	}
	return nil
}

// goodbye closes the connection. A client that is not to blame gets what waits for it first. That closing fails says
// that it is closed.
func (c *client) goodbye() {
	if c.code == 0 {
		_ = c.conn.CloseNow()
		return
	}
	until := time.Now().Add(c.rules.write)
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

// ping ends a client that does not answer.
func (c *client) ping() {
	every := time.NewTicker(c.rules.ping)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-c.done:
			return
		}
		// Its end does not interrupt it: a write that is cancelled closes the connection without a reason.
		ctx, cancel := context.WithTimeout(context.Background(), c.rules.pong)
		err := c.conn.Ping(ctx)
		cancel()
		if err != nil {
			c.finish(0, "")
			return
		}
	}
}

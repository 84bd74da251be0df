package socket

import (
	"context"
	"sync"
	"time"

	ws "github.com/coder/websocket"
)

// Serve passes the client's text frames to receive until the connection ends, and runs the functions also, which return when Ending
// is closed. All its goroutines have ended when it returns: those that write, ping, and wait for the end of the caller's credential.
// Pongs are read between the calls of receive.
func (c *Client) Serve(conn *ws.Conn, receive func(frame []byte), also ...func()) {
	c.conn = conn
	conn.SetReadLimit(c.config.FrameLimit)
	var running sync.WaitGroup
	for _, f := range append(also, c.write, c.ping, c.expire) {
		running.Go(f)
	}
	for {
		kind, frame, err := conn.Read(context.Background())
		if err != nil {
			break
		}
		switch {
		case kind == ws.MessageText:
			receive(frame)
		case c.config.TextOnly:
			c.End(ws.StatusUnsupportedData, "frames are text")
		}
	}
	c.End(0, "")
	running.Wait()
}

// write sends the queued frames until the client ends, then closes the connection.
func (c *Client) write() {
	defer c.Abort()
	defer c.discard()
	for {
		select {
		case <-c.Ending:
			c.close()
			return
		default:
		}
		f, ok := c.Take()
		if !ok {
			select {
			case <-c.more:
			case <-c.Ending:
			}
			continue
		}
		if c.send(f) != nil {
			c.End(0, "")
		}
	}
}

func (c *Client) send(f Frame) error {
	ctx, cancel := context.WithTimeout(c.Context, c.config.WriteTimeout)
	defer cancel()
	text := f.Text
	if f.Encode != nil {
		text = f.Encode()
	}
	err := c.conn.Write(ctx, ws.MessageText, text)
	f.done(err == nil)
	return err
}

// close closes the connection. Errors are ignored: they mean that it is already closed.
func (c *Client) close() {
	if c.Code == 0 {
		_ = c.conn.CloseNow()
		return
	}
	until := time.Now().Add(c.config.WriteTimeout)
	for c.config.Drain && c.Code == ws.StatusGoingAway && time.Now().Before(until) {
		f, ok := c.Take()
		if !ok {
			break
		}
		if c.send(f) != nil {
			_ = c.conn.CloseNow()
			return
		}
	}
	_ = c.conn.Close(c.Code, c.Reason)
}

// expire disconnects the client when its credential ends.
func (c *Client) expire() {
	if !c.Caller.Lasts() && c.Caller.Await(c.Ending, c.config.Clock) {
		c.End(StatusExpired, ReasonExpired)
	}
}

// ping disconnects a client that does not answer.
func (c *Client) ping() {
	if c.config.PingInterval == 0 {
		return
	}
	every := time.NewTicker(c.config.PingInterval)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-c.Ending:
			return
		}
		// The client's end does not cancel the ping: a cancelled write closes the connection without a reason.
		ctx, cancel := context.WithTimeout(context.Background(), c.config.PongTimeout)
		err := c.conn.Ping(ctx)
		cancel()
		if err != nil {
			c.End(0, "")
			return
		}
	}
}

package email

import (
	"container/list"
	"crypto/tls"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// sessionLife is how long a connection may bring no mail: what RFC 5321, section 4.5.3.2.7, gives the next command.
	sessionLife = 5 * time.Minute
	// sessionReads bounds what a client may send in that time beside mails. A mail takes some ten commands, TLS and a login some
	// more; each read brings one, or several that were sent together.
	sessionReads = 100
	// goodbye is how long the last reply of a connection may take to be written.
	goodbye = time.Second
)

// boundedConn is a connection that ends when it brings no mail. go-smtp answers an ended one with 421.
type boundedConn struct {
	net.Conn
	address  string
	listener *boundedListener
	place    *list.Element // in the listener, whose lock guards it

	mu    sync.Mutex
	phase phase
	until time.Time // when it has brought no mail for too long
	reads int       // since the last mail
	ended bool
}

// phase is what a connection is used for.
type phase int

const (
	commands phase = iota
	arriving       // a mail arrives
	received       // the receiver has a mail: its client must learn how that ends
)

// Read implements net.Conn.
func (c *boundedConn) Read(b []byte) (int, error) {
	if c.exhausted() {
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Read(b)
}

func (c *boundedConn) exhausted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == commands {
		c.reads++
	}
	return c.ended || c.reads > sessionReads
}

// SetReadDeadline implements net.Conn. The deadline is at most the end of the connection's life.
func (c *boundedConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		t = time.Unix(1, 0)
	case c.phase == commands && t.After(c.until):
		t = c.until
	}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *boundedConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		t = time.Now().Add(goodbye)
	}
	return c.Conn.SetWriteDeadline(t)
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	c.listener.remove(c)
	return c.Conn.Close()
}

// end ends the connection, with a reply if the client reads it.
func (c *boundedConn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	_ = c.Conn.SetWriteDeadline(time.Now().Add(goodbye))
}

func (c *boundedConn) mayEnd() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase != received
}

// begin says that a mail arrives, for which there is a time of its own.
func (c *boundedConn) begin(within time.Duration) {
	if c == nil {
		return
	}
	c.enter(arriving)
	_ = c.SetReadDeadline(time.Now().Add(within)) // an error means that the connection is closed
}

func (c *boundedConn) enter(p phase) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = p
}

// finish ends begin. A mail that was taken is one for which the connection is there.
func (c *boundedConn) finish(taken bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.phase = commands
	if taken {
		c.reads, c.until = 0, time.Now().Add(sessionLife)
	}
	c.mu.Unlock()
	if taken {
		c.listener.renew(c)
	}
}

// boundedOf returns the connection below TLS; nil for one of another listener.
func boundedOf(c net.Conn) *boundedConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	b, _ := c.(*boundedConn)
	return b
}

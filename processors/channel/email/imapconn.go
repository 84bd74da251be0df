package email

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// answerLimit is how long a server may take to answer a command, and answerRate (bytes a second) how fast it sends at least.
	answerLimit = time.Minute
	answerRate  = 16 << 10
	// answerOverhead is what an answer may have beside a message. The result of a search with 100,000 messages has less.
	answerOverhead = 1 << 20
)

// answerFault is why the connection to a server was ended by this side. It can be logged.
type answerFault string

func (f answerFault) Error() string { return string(f) }

const (
	errSilent        = answerFault("the server does not answer in time")
	errAnswerTooLong = answerFault("the server's answer is too long")
	errUnparsed      = answerFault("the server's answer cannot be parsed")
)

// imapConn is the connection of an IMAP client. It bounds the time and the size of the answer to a command, and remembers why it
// ended: the IMAP library has no limits while it waits for an answer, and its errors do not tell the reasons apart.
type imapConn struct {
	net.Conn
	limit int64 // of an answer, in bytes

	mu       sync.Mutex
	left     int64
	deadline time.Time // zero: no answer is expected
	failed   error
}

func newIMAPConn(c net.Conn, limit int64) *imapConn {
	return &imapConn{Conn: c, limit: limit, left: limit}
}

// expect begins the wait for an answer.
func (c *imapConn) expect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.deadline = c.limit, time.Now().Add(answerLimit)
	_ = c.Conn.SetReadDeadline(c.deadline)
}

// rest ends the wait for an answer. The server may be silent.
func (c *imapConn) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = time.Time{}
	_ = c.Conn.SetReadDeadline(c.deadline)
}

// Read implements net.Conn.
func (c *imapConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		return n, c.record(err)
	}
	c.mu.Lock()
	c.left -= int64(n)
	tooLong := c.left < 0
	if !c.deadline.IsZero() {
		c.deadline = c.deadline.Add(time.Duration(n) * time.Second / answerRate)
		_ = c.Conn.SetReadDeadline(c.deadline)
	}
	c.mu.Unlock()
	if tooLong {
		return 0, c.record(errAnswerTooLong)
	}
	return n, nil
}

// Write implements net.Conn.
func (c *imapConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		err = c.record(err)
	}
	return n, err
}

// SetReadDeadline does nothing: the library removes the deadline after each response.
func (*imapConn) SetReadDeadline(time.Time) error { return nil }

// Close implements net.Conn. While the connection works, the library closes it only if it cannot parse an answer.
func (c *imapConn) Close() error {
	_ = c.record(errUnparsed)
	return c.Conn.Close()
}

// fail closes the connection for a reason.
func (c *imapConn) fail(err error) {
	_ = c.record(err)
	_ = c.Conn.Close()
}

// record keeps the first reason.
func (c *imapConn) record(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errSilent
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = err
	}
	return err
}

// failure returns why the connection ended, or nil.
func (c *imapConn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

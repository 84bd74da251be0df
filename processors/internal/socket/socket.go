// Package socket is what the WebSockets of doors have in common: the upgrade of a connection, the frames that wait for a client, and
// the reasons for which a client is disconnected.
package socket

import (
	"context"
	"net/http"
	"sync"
	"time"

	ws "github.com/coder/websocket"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// StatusExpired is the status with which a connection is closed when the credential of its caller expires or is revoked.
const StatusExpired ws.StatusCode = 4401

// The reasons with which connections are closed.
const (
	ReasonExpired  = "the credential has expired: connect again with a new one"
	ReasonSlow     = "too slow: more waits for you than is kept"
	ReasonStopping = "server is stopping"
)

// Config is how a Client is served.
type Config struct {
	// Limits bounds the frames that wait for the client.
	Limits Limits
	// FrameLimit is the size of the largest frame of the client, in bytes.
	FrameLimit int64
	// TextOnly disconnects a client that sends a binary frame. Otherwise such frames are ignored.
	TextOnly bool
	// Drain writes the frames that wait before the connection is closed with the status 1001, for WriteTimeout at most.
	Drain bool
	// WriteTimeout is how long the write of a frame may take, PingInterval how often the client is pinged, zero for never, and
	// PongTimeout how long it may take to answer. A client that exceeds one is disconnected.
	WriteTimeout, PingInterval, PongTimeout time.Duration
	// Clock is for the end of the caller's credential.
	Clock clock.Clock
}

// Client is one connection and the frames that wait for it. Its methods are safe for concurrent use.
type Client struct {
	Caller auth.Caller
	// Ending is closed by End, with Code and Reason set before. The code 0 closes the connection without a close frame.
	Ending chan struct{}
	Code   ws.StatusCode
	Reason string
	// Context ends when the connection is closed, and with Abort.
	Context context.Context
	// Abort ends the write that waits for the client, and with it the connection.
	Abort context.CancelFunc

	config Config
	conn   *ws.Conn
	once   sync.Once
	more   chan struct{} // capacity 1: a frame was added
	room   chan struct{} // capacity 1: a frame was removed

	mu      sync.Mutex
	frames  []Frame
	counted int // frames that count against the limits, and bytes their size
	bytes   int
	closed  bool
}

// New returns a client of a caller. Frames can be queued before it is served.
func New(c Config, caller auth.Caller) *Client {
	client := &Client{
		Caller: caller, Ending: make(chan struct{}), config: c, more: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	client.Context, client.Abort = context.WithCancel(context.Background())
	return client
}

// End makes the client close its connection with a status and a reason. Only the first call has an effect.
func (c *Client) End(code ws.StatusCode, reason string) {
	c.once.Do(func() {
		c.Code, c.Reason = code, reason
		close(c.Ending)
	})
}

// Show queues a frame. A client without room for it is disconnected, and Show returns false.
func (c *Client) Show(f Frame) bool {
	ok := c.Put(f)
	if !ok {
		c.End(ws.StatusTryAgainLater, ReasonSlow)
	}
	return ok
}

// Accept upgrades the connection of a visit. It returns nil if it has written a response instead. Pages of origins may connect, which
// are patterns of path.Match for host or scheme://host, and those of the server's own host.
func Accept(w http.ResponseWriter, r *http.Request, v *entrance.Visit, origins []string) *ws.Conn {
	answer := &statusRecorder{ResponseWriter: w}
	conn, err := ws.Accept(answer, r, &ws.AcceptOptions{
		OriginPatterns: origins,
		// A browser closes a connection for which the server has selected none of the subprotocols that it offered.
		Subprotocols: []string{auth.Subprotocol},
	})
	if err != nil {
		v.Refuse(&entrance.Refusal{Status: answer.status, Text: "the origin of the page is not trusted"})
		return nil
	}
	return conn
}

// statusRecorder stores the status of a response that the connection is not upgraded with.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController and the upgrade find the connection.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

package platform

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

const (
	// connectTimeout is how long a connection may take to be made, with its handshake, and writeTimeout how long a message may
	// take to be written.
	connectTimeout = 30 * time.Second
	writeTimeout   = 10 * time.Second
)

// Conn is a WebSocket connection to a platform. Reads must not be concurrent; everything else may be.
type Conn struct {
	conn *websocket.Conn
	free func()
}

// Dial connects to a URL, without following redirects or using a proxy of the environment. A message of more than maxMessage
// bytes ends the connection. The error is an *adapter.Failure. The caller closes the connection.
func Dial(ctx context.Context, to string, header http.Header, maxMessage int64) (*Conn, error) {
	transport := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout:    connectTimeout,
		MaxResponseHeaderBytes: maxHeaders,
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	dialing, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, response, err := websocket.Dial(dialing, to, &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
	if err != nil {
		transport.CloseIdleConnections()
		if response != nil && response.StatusCode != http.StatusSwitchingProtocols {
			if f := StatusFailure(response.StatusCode, response.Header, time.Now()); f != nil {
				return nil, f
			}
		}
		return nil, Failure(err)
	}
	conn.SetReadLimit(maxMessage)
	return &Conn{conn: conn, free: transport.CloseIdleConnections}, nil
}

// Read reads a message of JSON. It returns an *adapter.Failure when the connection is lost, also with the platform's close code, see
// CloseCode, and when a message is not JSON.
func (c *Conn) Read(ctx context.Context, into any) error {
	_, raw, err := c.conn.Read(ctx)
	if err != nil {
		if code := websocket.CloseStatus(err); code >= 0 {
			return &adapter.Failure{Reason: "closed by the platform with code " + strconv.Itoa(int(code)), Status: int(code)}
		}
		return Failure(err)
	}
	if err := Decode(raw, into); err != nil {
		return &adapter.Failure{Reason: "message is not as documented"}
	}
	return nil
}

// Write writes a message of JSON.
func (c *Conn) Write(ctx context.Context, message any) error {
	raw, err := json.Marshal(message)
	if err != nil {
		return &adapter.Failure{Reason: "message cannot be made", Final: true}
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := c.conn.Write(ctx, websocket.MessageText, raw); err != nil {
		return Failure(err)
	}
	return nil
}

// KeepAlive sends a ping every period until ctx ends, and returns an *adapter.Failure when one is not answered within the next
// period. Read must be running, because it receives the answers, and says why a connection is over on which no ping can be sent.
func (c *Conn) KeepAlive(ctx context.Context, clk clock.Clock, period time.Duration) error {
	for clock.Sleep(ctx, clk, period) {
		ping, cancel := context.WithTimeout(ctx, period)
		_ = c.conn.Ping(ping)
		late := ping.Err() != nil
		cancel()
		if late {
			return &adapter.Failure{Reason: ReasonTimeout}
		}
	}
	return nil
}

// Close closes the connection with a code without waiting for the platform, and frees what it used.
func (c *Conn) Close(code int) {
	// The close handshake waits for the peer, so it is done only for codes that mean something to it.
	if code != 0 {
		_ = c.conn.Close(websocket.StatusCode(code), "") // the connection is given up either way
	}
	_ = c.conn.CloseNow()
	c.free()
}

// CloseCode returns the platform's close code of an error of Read, 0 if it has none.
func CloseCode(err error) int {
	var f *adapter.Failure
	if errors.As(err, &f) {
		return f.Status
	}
	return 0
}

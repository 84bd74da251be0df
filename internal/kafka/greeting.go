package kafka

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

const (
	// GreetingLimit is how long LimitGreeting waits for the first byte of a broker.
	GreetingLimit = 5 * time.Second
	greetingHold  = 2 * time.Second
)

// LimitGreeting times out connections of a configuration on which the broker sends no byte within GreetingLimit of the
// caller's first read: an address that accepts connections and never answers. New connections to the address then fail for 2
// seconds, so that Sarama, which tries each address several times, reports the error. Once a broker has answered, its
// connection has no limits but those of the configuration. It also works with TLS.
func LimitGreeting(c *sarama.Config) { limitGreeting(c, GreetingLimit, greetingHold) }

func limitGreeting(c *sarama.Config, limit, hold time.Duration) {
	d := &greetingDialer{silence: NewSilence(limit, hold)}
	if c.Net.Proxy.Enable {
		d.inner = c.Net.Proxy.Dialer
	} else {
		d.inner = &net.Dialer{Timeout: c.Net.DialTimeout, KeepAlive: c.Net.KeepAlive, LocalAddr: c.Net.LocalAddr}
	}
	c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, d
}

type greetingDialer struct {
	silence *Silence
	inner   interface {
		Dial(network, address string) (net.Conn, error)
	}
}

// Dial makes a connection whose first read is limited.
func (d *greetingDialer) Dial(network, address string) (net.Conn, error) {
	if d.silence.holds(address) {
		return nil, fmt.Errorf("%w: %s", ErrSilent, address)
	}
	c, err := d.inner.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &greetingConn{Conn: c, silence: d.silence, address: address}, nil
}

type greetingConn struct {
	net.Conn
	silence *Silence
	address string
	silent  atomic.Bool // no byte arrived in time

	mu      sync.Mutex // with TLS, Sarama sets the deadline before it writes, too
	greeted bool
	until   time.Time // the deadline that the caller set last
}

// SetReadDeadline implements net.Conn.
func (c *greetingConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	if !c.greeted {
		return nil // Read sets it
	}
	return c.Conn.SetReadDeadline(t)
}

// Read implements net.Conn.
func (c *greetingConn) Read(b []byte) (int, error) {
	if c.silent.Load() {
		return 0, fmt.Errorf("%w: %s", ErrSilent, c.address)
	}
	first, err := c.limit()
	if err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	switch {
	case !first:
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.silent.Store(true)
		c.silence.note(c.address)
		return n, fmt.Errorf("%w: %s: %w", ErrSilent, c.address, err)
	case n > 0 && err == nil:
		err = c.greet()
	}
	return n, err
}

// limit sets the deadline of the first read. It reports false if a byte has arrived before.
func (c *greetingConn) limit() (first bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.greeted {
		return false, nil
	}
	limit := time.Now().Add(c.silence.limit)
	if !c.until.IsZero() && c.until.Before(limit) {
		limit = c.until
	}
	return true, c.Conn.SetReadDeadline(limit)
}

// greet restores the caller's deadline.
func (c *greetingConn) greet() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.greeted = true
	return c.Conn.SetReadDeadline(c.until)
}

// Write implements net.Conn. Sarama asks a broker again on the same connection, in another version.
func (c *greetingConn) Write(b []byte) (int, error) {
	if c.silent.Load() {
		return 0, fmt.Errorf("%w: %s", ErrSilent, c.address)
	}
	return c.Conn.Write(b)
}

package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// ErrSilent is wrapped by the errors of connections to a broker that did not answer in time: it hangs or is unreachable.
var ErrSilent = errors.New("kafka: broker is silent")

// Silence times out connections to a broker that does not answer a request in time. In Sarama alone Net.ReadTimeout
// bounds every wait, and it has to be longer than a join, whose answer the coordinator delays until all members have
// joined: a broker that hangs would stop an instance for half a minute, three times for each connection that is made to
// it (a connection begins with two ApiVersions requests). With a Silence only joins keep that bound. Requests that a
// broker may delay for less (fetches, produce requests) have the limit and that delay.
//
// The requests of encrypted connections cannot be read, so there Net.ReadTimeout remains the bound; only the time to
// connect is limited.
//
// A Silence is safe for concurrent use. It may be used for several configurations, whose connections then share the list
// of silent brokers.
type Silence struct {
	limit, hold time.Duration

	mu     sync.Mutex
	silent map[string]time.Time             // address to the time of its last timeout
	open   map[string]map[*silenceConn]bool // connections by address
}

// NewSilence returns a Silence that times out a request after limit. It then closes all connections to the address and
// fails new ones for hold, so that clients use the other brokers at once. With a hold of 0 new connections are allowed.
func NewSilence(limit, hold time.Duration) *Silence {
	return &Silence{
		limit: limit, hold: hold, silent: map[string]time.Time{}, open: map[string]map[*silenceConn]bool{},
	}
}

// Limit makes the connections of a configuration use the Silence. The configuration's timeouts and TLS settings must be
// final.
func (s *Silence) Limit(c *sarama.Config) {
	c.Net.DialTimeout = min(c.Net.DialTimeout, s.limit)
	if c.Net.TLS.Enable {
		return
	}
	d := &silenceDialer{silence: s, fetch: c.Consumer.MaxWaitTime, produce: c.Producer.Timeout}
	if c.Net.Proxy.Enable {
		d.inner = c.Net.Proxy.Dialer
	} else {
		d.inner = &net.Dialer{Timeout: c.Net.DialTimeout, KeepAlive: c.Net.KeepAlive, LocalAddr: c.Net.LocalAddr}
	}
	c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, d
}

func (s *Silence) note(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent[address] = time.Now()
	for c := range s.open[address] {
		c.silent.Store(true)
		_ = c.Conn.Close()
	}
	delete(s.open, address)
}

func (s *Silence) add(c *silenceConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[c.address] == nil {
		s.open[c.address] = map[*silenceConn]bool{}
	}
	s.open[c.address][c] = true
}

func (s *Silence) remove(c *silenceConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open[c.address], c)
	if len(s.open[c.address]) == 0 {
		delete(s.open, c.address)
	}
}

func (s *Silence) holds(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.silent[address]
	if ok && time.Since(at) >= s.hold {
		delete(s.silent, address)
		return false
	}
	return ok
}

type silenceDialer struct {
	silence *Silence
	inner   interface {
		Dial(network, address string) (net.Conn, error)
	}
	fetch, produce time.Duration // for which the broker may delay an answer
}

// Dial makes a connection whose reads are limited.
func (d *silenceDialer) Dial(network, address string) (net.Conn, error) {
	if d.silence.holds(address) {
		return nil, fmt.Errorf("%w: %s", ErrSilent, address)
	}
	c, err := d.inner.Dial(network, address)
	if err != nil {
		return nil, err
	}
	limited := &silenceConn{Conn: c, dialer: d, address: address}
	limited.key.Store(-1)
	d.silence.add(limited)
	return limited, nil
}

// The API keys of the requests whose answers brokers may delay.
const (
	produceKey = 0
	fetchKey   = 1
	joinKey    = 11
	syncKey    = 14
)

type silenceConn struct {
	net.Conn
	dialer  *silenceDialer
	address string
	key     atomic.Int32 // of the last request; Sarama has one in flight
	silent  atomic.Bool
	// until is the deadline that Sarama set last. Only the reading goroutine uses it.
	until time.Time
}

// Write writes one request: Sarama calls it once per request. The API key follows the length.
func (c *silenceConn) Write(request []byte) (int, error) {
	if c.silent.Load() {
		return 0, fmt.Errorf("%w: %s", ErrSilent, c.address)
	}
	if len(request) >= 6 {
		c.key.Store(int32(binary.BigEndian.Uint16(request[4:])))
	}
	return c.Conn.Write(request)
}

// SetReadDeadline implements net.Conn.
func (c *silenceConn) SetReadDeadline(t time.Time) error {
	c.until = t
	return c.extend()
}

// Read implements net.Conn. Every byte that arrives extends the deadline, so that a slow answer is not a timeout.
func (c *silenceConn) Read(b []byte) (int, error) {
	if c.silent.Load() {
		return 0, fmt.Errorf("%w: %s", ErrSilent, c.address)
	}
	n, err := c.Conn.Read(b)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.dialer.silence.note(c.address)
	case n > 0 && err == nil:
		err = c.extend()
	}
	return n, err
}

// Close implements net.Conn.
func (c *silenceConn) Close() error {
	c.dialer.silence.remove(c)
	if err := c.Conn.Close(); err != nil && !(c.silent.Load() && errors.Is(err, net.ErrClosed)) {
		return err
	}
	return nil
}

func (c *silenceConn) extend() error {
	limit := c.dialer.silence.limit
	switch c.key.Load() {
	case joinKey, syncKey:
		return c.Conn.SetReadDeadline(c.until)
	case fetchKey:
		limit += c.dialer.fetch
	case produceKey:
		limit += c.dialer.produce
	}
	t := time.Now().Add(limit)
	if !c.until.IsZero() && c.until.Before(t) {
		t = c.until
	}
	return c.Conn.SetReadDeadline(t)
}

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

// ErrSilent says that a broker owed an answer and nothing came: it hangs, or is cut off.
var ErrSilent = errors.New("kafka: broker is silent")

// Silence has connections give up on a broker from which nothing comes for a while though it owes an answer. With
// Sarama alone Net.ReadTimeout bounds every wait, and that has to be longer than a join, which the brokers hold back
// until all members are there: a broker that hangs would stop a unit for half a minute, three times over for each
// connection that is made to it (a connection begins with two questions for versions). Here joins alone keep that bound;
// what a broker may hold back for less (fetches, produce requests) has so much more.
//
// Encrypted connections show no requests, so there Net.ReadTimeout remains; only the time to connect is limited.
//
// It is safe for concurrent use, and for all configurations whose connections shall share what they find out.
type Silence struct {
	limit, hold time.Duration

	mu     sync.Mutex
	silent map[string]time.Time             // addresses, and when they were found silent
	open   map[string]map[*silenceConn]bool // connections by address
}

// NewSilence gives up after limit. All connections to the address are closed then, whatever they wait for, and for hold
// no other is tried, so that clients go to the other brokers at once; 0: always tried.
func NewSilence(limit, hold time.Duration) *Silence {
	return &Silence{
		limit: limit, hold: hold, silent: map[string]time.Time{}, open: map[string]map[*silenceConn]bool{},
	}
}

// Limit changes a configuration, whose timeouts and TLS settings have to be final.
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
	fetch, produce time.Duration // which the broker may take
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

// The API keys of the requests that brokers hold back.
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
	// until is the deadline that Sarama set last. It is the reader's own.
	until time.Time
}

// Write writes one request, which is how Sarama calls it. The API key stands behind the length.
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

// Read implements net.Conn. What arrives is no silence, however slowly it comes.
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

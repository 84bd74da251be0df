package httpserver

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// ErrConfig is wrapped by the errors of Limit and Listen about options.
var ErrConfig = errors.New("httpserver: bad configuration")

// Option configures Limit and Listen.
type Option func(*limits)

type limits struct {
	all, address int
	bad          error
}

// WithConnectionLimit sets how many connections may be open (default 4096, at least 1).
func WithConnectionLimit(n int) Option {
	return func(l *limits) { l.all = l.positive("WithConnectionLimit", n) }
}

// WithAddressLimit sets how many connections of one IP address (IPv6: of its first 64 bits) may be open (default 2048, at
// least 1).
func WithAddressLimit(n int) Option {
	return func(l *limits) { l.address = l.positive("WithAddressLimit", n) }
}

func (l *limits) positive(name string, n int) int {
	if n < 1 {
		l.bad = errors.Join(l.bad, fmt.Errorf("%w: %s: %d, want at least 1", ErrConfig, name, n))
	}
	return n
}

// Listen listens on a TCP address and limits the connections.
func Listen(address string, opts ...Option) (net.Listener, error) {
	inner, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	l, err := Limit(inner, opts...)
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return l, nil
}

// Limit returns a listener that closes connections over a limit immediately. A connection that waited instead would keep
// those of other clients waiting. Close closes inner.
func Limit(inner net.Listener, opts ...Option) (net.Listener, error) {
	l := limits{all: 4096, address: 2048}
	for _, o := range opts {
		o(&l)
	}
	if l.bad != nil {
		return nil, l.bad
	}
	return &listener{Listener: inner, limits: l, open: map[string]int{}}, nil
}

type listener struct {
	net.Listener
	limits limits

	mu   sync.Mutex
	all  int
	open map[string]int // by address; only those with connections
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := entrance.Address(c.RemoteAddr().String())
		if l.enter(address) {
			return &conn{Conn: c, leave: sync.OnceFunc(func() { l.leave(address) })}, nil
		}
		_ = c.Close()
	}
}

func (l *listener) enter(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.limits.all || l.open[address] >= l.limits.address {
		return false
	}
	l.all++
	l.open[address]++
	return true
}

func (l *listener) leave(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
}

// conn is a connection that counts until it is closed.
type conn struct {
	net.Conn
	leave func()
}

func (c *conn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite lets http.Server send the end of a response before it closes the connection.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

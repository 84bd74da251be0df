package email

import (
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// boundedListener limits the open connections of a listener, in all and of each address. Connections over a limit get reply 421
// (RFC 5321, section 3.8) and are closed.
type boundedListener struct {
	net.Listener
	all, each int

	mu    sync.Mutex
	conns map[*boundedConn]struct{}
	by    map[string]int
}

func newBoundedListener(l net.Listener, all, each int) *boundedListener {
	return &boundedListener{Listener: l, all: all, each: each, conns: map[*boundedConn]struct{}{}, by: map[string]int{}}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		b := &boundedConn{Conn: c, address: entrance.Address(c.RemoteAddr().String()), listener: l}
		if l.add(b) {
			return b, nil
		}
		// The buffer of a new connection takes so few bytes at once; a deadline makes sure.
		_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = c.Write([]byte("421 4.7.0 Too many connections\r\n"))
		_ = c.Close()
	}
}

func (l *boundedListener) add(c *boundedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= l.all || l.by[c.address] >= l.each {
		return false
	}
	l.conns[c] = struct{}{}
	l.by[c.address]++
	return true
}

func (l *boundedListener) remove(c *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.conns[c]; !ok {
		return
	}
	delete(l.conns, c)
	if l.by[c.address]--; l.by[c.address] == 0 {
		delete(l.by, c.address)
	}
}

// closeAll closes the open connections.
func (l *boundedListener) closeAll() {
	l.mu.Lock()
	open := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

type boundedConn struct {
	net.Conn
	address  string
	listener *boundedListener
}

func (c *boundedConn) Close() error {
	c.listener.remove(c)
	return c.Conn.Close()
}

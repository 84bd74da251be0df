package email

import (
	"container/list"
	"net"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// boundedListener limits the open connections of a listener, in all and of each address. A connection over the limit of its address
// gets reply 421 (RFC 5321, section 3.8) and is closed. One over the limit of all takes the place of the one that has brought no mail
// for the longest, so that connections that bring none keep no mail out.
type boundedListener struct {
	net.Listener
	all, each int

	mu    sync.Mutex
	conns *list.List // of *boundedConn, the one whose last mail is the longest ago first
	by    map[string]int
}

func newBoundedListener(l net.Listener, all, each int) *boundedListener {
	return &boundedListener{Listener: l, all: all, each: each, conns: list.New(), by: map[string]int{}}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		b := &boundedConn{Conn: c, address: entrance.Address(c.RemoteAddr().String()), listener: l, until: time.Now().Add(sessionLife)}
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
	open := l.by[c.address]
	var oldest *boundedConn
	if l.conns.Len() >= l.all {
		if oldest = l.oldest(); oldest == nil {
			return false
		}
		if oldest.address == c.address {
			open--
		}
	}
	if open >= l.each {
		return false
	}
	if oldest != nil {
		l.take(oldest)
		oldest.end()
	}
	c.place = l.conns.PushBack(c)
	l.by[c.address]++
	return true
}

// oldest returns the connection that gives way to a new one; nil if the receiver has mails of all.
func (l *boundedListener) oldest() *boundedConn {
	for e := l.conns.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*boundedConn); c.mayEnd() {
			return c
		}
	}
	return nil
}

func (l *boundedListener) remove(c *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(c)
}

// take removes a connection, once. The caller holds the lock.
func (l *boundedListener) take(c *boundedConn) {
	if c.place == nil {
		return
	}
	l.conns.Remove(c.place)
	c.place = nil
	if l.by[c.address]--; l.by[c.address] == 0 {
		delete(l.by, c.address)
	}
}

// renew makes a connection the newest.
func (l *boundedListener) renew(c *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.place != nil {
		l.conns.MoveToBack(c.place)
	}
}

// closeAll closes the open connections.
func (l *boundedListener) closeAll() {
	l.mu.Lock()
	var open []*boundedConn
	for e := l.conns.Front(); e != nil; e = e.Next() {
		open = append(open, e.Value.(*boundedConn))
	}
	l.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

// Package memnet connects the HTTP clients and servers of a test in memory. In a bubble of testing/synctest, time does not pass
// while a goroutine waits for a real connection, so that neither side of one would ever time out.
package memnet

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
)

// Listener accepts the connections that are dialed with its DialContext. A connection has no buffer: what one side writes, the
// other side has to read.
type Listener struct {
	dialed chan net.Conn
	closed chan struct{}
	close  func()
	ports  atomic.Int32 // of clients
}

// Listen returns an open listener.
func Listen() *Listener {
	l := &Listener{dialed: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	l.ports.Store(1024)
	return l
}

// Accept returns the next connection. After Close it fails with net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.dialed:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Close refuses further connections.
func (l *Listener) Close() error {
	l.close()
	return nil
}

// Addr is an address of loopback.
func (l *Listener) Addr() net.Addr { return address(80) }

// DialContext connects to the listener, whatever the address, and waits until the connection is accepted. If the listener is
// closed it fails with syscall.ECONNREFUSED.
func (l *Listener) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	port := address(int(l.ports.Add(1)))
	err := error(syscall.ECONNREFUSED)
	select {
	case <-l.closed:
	default:
		select {
		case l.dialed <- conn{server, l.Addr(), port}:
			return conn{client, port, l.Addr()}, nil
		case <-l.closed:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return nil, &net.OpError{Op: "dial", Net: network, Addr: l.Addr(), Err: err}
}

func address(port int) *net.TCPAddr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }

// conn is one side of a connection.
type conn struct {
	net.Conn
	local, remote net.Addr
}

func (c conn) LocalAddr() net.Addr  { return c.local }
func (c conn) RemoteAddr() net.Addr { return c.remote }

// Serve starts a server like httptest.NewServer. Only its Client, and connections of the returned listener, reach it.
func Serve(h http.Handler) (*httptest.Server, *Listener) {
	l := Listen()
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	s.Client().Transport.(*http.Transport).DialContext = l.DialContext
	return s, l
}

package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// callbackProxy forwards callbacks to the orchestrator. A test can take it down or make it busy.
type callbackProxy struct {
	t       *testing.T
	address string

	mu     sync.Mutex
	server *http.Server
	served chan struct{} // closed when the server has ended
	to     *httputil.ReverseProxy
	busy   int // how many more callbacks get 429 and Retry-After: 1
	open   int // callbacks that are not answered yet
	came   []callback
}

// callback is a received request.
type callback struct {
	path, body string
	header     http.Header
	at         time.Time
	status     int
}

func newCallbackProxy(t *testing.T) *callbackProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &callbackProxy{t: t, address: listener.Addr().String()}
	f.serve(listener)
	t.Cleanup(f.stop)
	return f
}

func (f *callbackProxy) serve(listener net.Listener) {
	server, served := &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}, make(chan struct{})
	f.mu.Lock()
	f.server, f.served = server, served
	f.mu.Unlock()
	go func() {
		defer close(served)
		_ = server.Serve(listener) // it returns an error when it is closed
	}()
}

// pass sets the address to which callbacks are forwarded.
func (f *callbackProxy) pass(to string) {
	u, err := url.Parse(to)
	require.NoError(f.t, err)
	transport := &http.Transport{}
	f.t.Cleanup(transport.CloseIdleConnections)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(u) },
		Transport: transport,
	}
}

// stop closes the listener: callers get no connection.
func (f *callbackProxy) stop() {
	f.mu.Lock()
	server, served := f.server, f.served
	f.mu.Unlock()
	_ = server.Close() // an error means that it is already closed
	<-served
}

// restart listens on the same address again.
func (f *callbackProxy) restart() {
	f.t.Helper()
	var listener net.Listener
	require.Eventually(f.t, func() bool {
		var err error
		listener, err = net.Listen("tcp", f.address)
		return err == nil
	}, waitLimit, 5*time.Millisecond)
	f.serve(listener)
}

func (f *callbackProxy) refuse(times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = times
}

func (f *callbackProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c := callback{path: r.URL.Path, body: string(body), header: r.Header.Clone(), at: time.Now()}
	f.mu.Lock()
	to := f.to
	f.open++
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.open--
		f.came = append(f.came, c)
	}()
	if f.busy > 0 {
		f.busy--
		c.status = http.StatusTooManyRequests
	}
	f.mu.Unlock()
	if c.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(c.status)
	} else {
		r.Body = io.NopCloser(bytes.NewReader(body))
		noted := &statusNoted{ResponseWriter: w}
		to.ServeHTTP(noted, r)
		c.status = noted.status
	}
}

// callbacks returns the requests that came so far.
func (f *callbackProxy) callbacks() []callback { return f.answered(0) }

// await waits for n callbacks and returns all.
func (f *callbackProxy) await(n int) []callback {
	f.t.Helper()
	came := f.answered(n)
	require.Len(f.t, came, n)
	return came
}

// answered returns at least n callbacks, when all that came are answered: what a callback causes can be seen before its answer is.
func (f *callbackProxy) answered(n int) (came []callback) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		came = append([]callback(nil), f.came...)
		return f.open == 0 && len(came) >= n
	}, waitLimit, time.Millisecond)
	return came
}

type statusNoted struct {
	http.ResponseWriter
	status int
}

func (w *statusNoted) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

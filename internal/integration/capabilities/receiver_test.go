package capabilities

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// receiver is a service over real HTTP. It drops repeats by their Idempotency-Key.
type receiver struct {
	t       testing.TB
	address string
	answer  func(w http.ResponseWriter, r *http.Request, key string) // called instead of accepting the request, if not nil

	mu     sync.Mutex
	server *http.Server
	bodies map[string]string // by key
	calls  map[string]int    // requests by key
}

func newReceiver(t testing.TB) *receiver {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &receiver{t: t, address: l.Addr().String(), bodies: map[string]string{}, calls: map[string]int{}}
	r.serve(l)
	t.Cleanup(func() { _ = r.Kill() })
	return r
}

func (r *receiver) serve(l net.Listener) {
	server := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	r.mu.Lock()
	r.server = server
	r.mu.Unlock()
	go func() { _ = server.Serve(l) }()
}

// Kill closes the listener and all connections.
func (r *receiver) Kill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.server.Close()
}

// restart listens on the same address again.
func (r *receiver) restart() {
	r.t.Helper()
	var l net.Listener
	require.Eventually(r.t, func() (ok bool) {
		var err error
		l, err = net.Listen("tcp", r.address)
		return err == nil
	}, waitLimit, 5*time.Millisecond)
	r.serve(l)
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	key := q.Header.Get("Idempotency-Key")
	r.mu.Lock()
	r.calls[key]++
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(w, q, key)
		return
	}
	r.mu.Lock()
	r.bodies[key] = string(body) + " " + q.Header.Get("Authorization")
	r.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
}

// taken returns the accepted deliveries, and how many requests repeated one of them.
func (r *receiver) taken() (bodies []string, repeats int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, body := range r.bodies {
		bodies = append(bodies, body)
		repeats += r.calls[key] - 1
	}
	return bodies, repeats
}

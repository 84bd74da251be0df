package sink_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/memnet"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// receiver starts a service "harbor" and returns a transport that has it in its registry.
func receiver(t *testing.T, h http.HandlerFunc, opts ...sink.HTTPOption) *sink.HTTP {
	t.Helper()
	server, listener := memnet.Serve(h)
	t.Cleanup(server.Close)
	inMemory := func(_ *sink.HTTP, t *http.Transport) { t.DialContext = listener.DialContext }
	return caller(t, "harbor:"+server.URL+"/base/", append(opts, inMemory)...)
}

func caller(t *testing.T, mapping string, opts ...sink.HTTPOption) *sink.HTTP {
	t.Helper()
	services, err := sink.ParseServices(mapping)
	require.NoError(t, err)
	c := sink.NewHTTP(services, opts...)
	t.Cleanup(c.Close)
	return c
}

func failure(t *testing.T, err error) sink.Failure {
	t.Helper()
	var f *sink.Failure
	require.ErrorAs(t, err, &f)
	return *f
}

func TestCallbackRequestEqualsFlightDecks(t *testing.T) {
	h := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		require.Equal(t, "POST", r.Method)
		require.Equal(t, "/base/api/tools/response", r.URL.String())
		require.Equal(t, "Bearer t0ken", r.Header.Get("Authorization"))
		require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		require.Equal(t, "d-1", r.Header.Get("Idempotency-Key"))
		require.Equal(t, `{"result":"Berth N4 is \"free\"."}`, string(body))
		w.WriteHeader(http.StatusAccepted)
	})
	require.NoError(t, h.Deliver(t.Context(), attempt("harbor")))
}

func TestTokenIsSentOnlyIfThereIsOne(t *testing.T) {
	var header atomic.Value
	h := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		_, has := r.Header["Authorization"]
		header.Store(has)
	})
	for _, token := range []string{"", "  "} {
		require.NoError(t, h.Deliver(t.Context(), attempt("harbor", func(d *topics.Delivery) { d.Token = &token })))
		require.Equal(t, false, header.Load())
	}
	require.NoError(t, h.Deliver(t.Context(), attempt("harbor", func(d *topics.Delivery) { d.Token = nil })))
	require.Equal(t, false, header.Load())
	bad := "s3cret\r\nX-Evil: 1"
	f := failure(t, h.Deliver(t.Context(), attempt("harbor", func(d *topics.Delivery) { d.Token = &bad })))
	require.True(t, f.Final)
	require.NotContains(t, f.Reason, "s3cret")
}

func TestStatusDecidesWhetherAFailureIsFinal(t *testing.T) {
	var code atomic.Int64
	h := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Location", "/elsewhere")
		require.Equal(t, "/base/api/tools/response", r.URL.Path, "redirects are not followed")
		w.WriteHeader(int(code.Load()))
	})
	for c, final := range map[int]bool{
		301: true, 302: true, 307: true, 308: true, 400: true, 401: true, 404: true, 409: true, 410: true, 422: true,
		408: false, 429: false, 500: false, 502: false, 503: false, 599: false,
	} {
		code.Store(int64(c))
		f := failure(t, h.Deliver(t.Context(), attempt("harbor")))
		require.Equal(t, final, f.Final, c)
		require.Equal(t, c, f.Status)
		if !final {
			require.Equal(t, 7*time.Second, f.RetryAfter)
		}
	}
	for _, c := range []int{200, 201, 202, 204} {
		code.Store(int64(c))
		require.NoError(t, h.Deliver(t.Context(), attempt("harbor")))
	}
}

func TestUnknownServiceIsNotCalled(t *testing.T) {
	h := receiver(t, func(http.ResponseWriter, *http.Request) { t.Error("called") })
	for _, service := range []string{"", "Harbor", "harbor ", "http://evil.invalid"} {
		f := failure(t, h.Deliver(t.Context(), attempt(service)))
		require.True(t, f.Final)
		require.Equal(t, "unknown service", f.Reason)
	}
}

func TestTimeoutCoversTheWholeAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		silent := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-release
		}, sink.WithTimeout(50*time.Millisecond))
		t.Cleanup(func() { close(release) })
		f := failure(t, silent.Deliver(t.Context(), attempt("harbor")))
		require.Equal(t, "timeout", f.Reason)
		require.False(t, f.Final)

		endless := receiver(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(strings.Repeat("x", 1<<12))); err != nil {
					return
				}
			}
		}, sink.WithTimeout(time.Minute))
		begun := time.Now()
		require.NoError(t, endless.Deliver(t.Context(), attempt("harbor")), "the status is 200")
		require.Less(t, time.Since(begun), 30*time.Second, "only the start of the body is read")
	})
}

func TestNetworkErrorsCanBeRetried(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	f := failure(t, caller(t, "harbor:http://"+address).Deliver(t.Context(), attempt("harbor")))
	require.Equal(t, "no connection", f.Reason)
	require.False(t, f.Final)

	hangUp := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.Close()
		}
	})
	f = failure(t, hangUp.Deliver(t.Context(), attempt("harbor")))
	require.Equal(t, "connection lost", f.Reason)
	require.False(t, f.Final)

	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	f = failure(t, caller(t, "harbor:https://"+server.Listener.Addr().String()).Deliver(t.Context(), attempt("harbor")))
	require.Equal(t, "no TLS", f.Reason)
	require.NotContains(t, f.Error(), server.Listener.Addr().String())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f = failure(t, receiver(t, func(http.ResponseWriter, *http.Request) {}).Deliver(ctx, attempt("harbor")))
	require.Equal(t, "sink was stopped", f.Reason)
}

func TestConnectionsAreReused(t *testing.T) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Repeat("x", 32<<10)))
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	h := caller(t, "harbor:"+server.URL)
	for range 20 {
		require.NoError(t, h.Deliver(t.Context(), attempt("harbor")))
	}
	require.EqualValues(t, 1, connections.Load())
}

func TestCallbackBodyOfAnErrorOutputHasStatusAndError(t *testing.T) {
	d := attempt("harbor", func(d *topics.Delivery) {
		d.Body = topics.Raw(`{"content":"late","status":"error","error":{"code":"think_timeout","message":"late"}}`)
	})
	require.Equal(t, `{"result":"late","status":"error","error":{"code":"think_timeout","message":"late"}}`,
		string(sink.CallbackBody(d)))
	require.Equal(t, `{"result":""}`, string(sink.CallbackBody(topics.Delivery{})))
	for content, want := range map[string]string{`7`: `"7"`, `null`: `""`, `{"a":1}`: `""`, `"a\"b"`: `"a\"b"`} {
		require.Equal(t, `{"result":`+want+`}`, string(sink.CallbackBody(topics.Delivery{
			Body: topics.Raw(`{"content":` + content + `}`),
		})), content)
	}
}

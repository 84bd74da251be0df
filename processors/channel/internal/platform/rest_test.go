package platform

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

func client(t *testing.T) *http.Client {
	t.Helper()
	c := Client(0)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestRequestHasJSONAndToken(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		require.Equal(t, "Bearer t0ken", r.Header.Get("Authorization"))
		require.Equal(t, `{"a":1}`, string(body))
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(`{"b":2}`))
	}))
	t.Cleanup(s.Close)
	a, err := Do(t.Context(), client(t), http.MethodPost, s.URL, "t0ken", map[string]int{"a": 1})
	require.NoError(t, err)
	require.Equal(t, http.StatusTeapot, a.Status)
	require.Equal(t, `{"b":2}`, string(a.Body))
}

func TestNetworkErrorIsAFailureWithoutTheURL(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.Close()
		}
	}))
	t.Cleanup(s.Close)
	_, err := Do(t.Context(), client(t), http.MethodPost, s.URL+"/bot1:s3cret/", "", struct{}{})
	var f *adapter.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, adapter.Failure{Reason: ReasonConnectionLost}, *f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Do(ctx, client(t), http.MethodGet, s.URL, "", nil)
	require.ErrorAs(t, err, &f)
	require.Equal(t, ReasonInterrupted, f.Reason)
	_, err = Do(t.Context(), client(t), "BAD METHOD", s.URL, "", nil)
	require.ErrorAs(t, err, &f)
	require.True(t, f.Final)
}

func TestHeader(t *testing.T) {
	require.True(t, HeaderValue("abc.DEF-123"))
	for _, bad := range []string{"", "a b", "a\n", "a\x7f", "é"} {
		require.False(t, HeaderValue(bad), bad)
	}
}

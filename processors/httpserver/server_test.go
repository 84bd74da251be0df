package httpserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const waitLimit = time.Minute

// start serves 200 to every request on a loopback address.
func start(t *testing.T, change func(*http.Server), opts ...Option) (address string) {
	t.Helper()
	l, err := Listen("127.0.0.1:0", opts...)
	require.NoError(t, err)
	s := New(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if change != nil {
		change(s)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return l.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(waitLimit)))
	return c
}

// answered sends a request on a connection and reports whether it is answered.
func answered(c net.Conn) bool {
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return false
	}
	_, err := io.ReadFull(c, make([]byte, 15))
	return err == nil
}

func TestConnectionsOfAnAddressAreLimited(t *testing.T) {
	address := start(t, nil, WithAddressLimit(2))
	first, second := dial(t, address), dial(t, address)
	require.True(t, answered(first))
	require.True(t, answered(second))
	require.False(t, answered(dial(t, address)), "it is closed at once and delays no other")
	require.NoError(t, first.Close())
	require.Eventually(t, func() bool { return answered(dial(t, address)) }, waitLimit, time.Millisecond)
}

func TestAllConnectionsAreLimited(t *testing.T) {
	address := start(t, nil, WithConnectionLimit(1))
	require.True(t, answered(dial(t, address)))
	require.False(t, answered(dial(t, address)))
}

func TestSlowHeadersAreCutOff(t *testing.T) {
	require.Equal(t, 5*time.Second, New(nil).ReadHeaderTimeout)
	c := dial(t, start(t, func(s *http.Server) { s.ReadHeaderTimeout = 50 * time.Millisecond }))
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost:")
	require.NoError(t, err)
	_, err = io.ReadAll(c)
	require.False(t, errors.Is(err, net.ErrClosed))
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the server has closed the connection")
}

func TestBadLimitsAreRejected(t *testing.T) {
	for _, o := range []Option{WithAddressLimit(0), WithConnectionLimit(-1)} {
		_, err := Listen("127.0.0.1:0", o)
		require.ErrorIs(t, err, ErrConfig)
	}
}

func TestAddressThatATrustedProxyNamesIsTheClients(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48"), netip.MustParsePrefix("127.0.0.1/32")}
	const proxy = "10.1.2.3:4711"
	for name, c := range map[string]struct {
		remote    string
		forwarded []string
		want      string
	}{
		"a stranger says it is another":     {"192.0.2.1:99", []string{"198.51.100.7"}, "192.0.2.1:99"},
		"no header":                         {proxy, nil, proxy},
		"one proxy":                         {proxy, []string{"198.51.100.7"}, "198.51.100.7:0"},
		"what the client sent is ignored":   {proxy, []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7:0"},
		"in a header of its own too":        {proxy, []string{"203.0.113.9", "198.51.100.7"}, "198.51.100.7:0"},
		"two proxies":                       {proxy, []string{"203.0.113.9,198.51.100.7 , 10.9.9.9"}, "198.51.100.7:0"},
		"client that names proxies":         {proxy, []string{"10.0.0.1, 10.0.0.2, 198.51.100.7"}, "198.51.100.7:0"},
		"all are proxies":                   {proxy, []string{"10.0.0.1, 10.0.0.2"}, "10.0.0.1:0"},
		"IPv6":                              {"[2001:db8:1::5]:1", []string{"2001:db8:2::7"}, "[2001:db8:2::7]:0"},
		"with ports":                        {proxy, []string{"[2001:db8:2::7]:80, 10.0.0.1:99"}, "[2001:db8:2::7]:0"},
		"IPv4 in IPv6":                      {"[::ffff:10.1.2.3]:1", []string{"::ffff:198.51.100.7"}, "198.51.100.7:0"},
		"not an address":                    {proxy, []string{"198.51.100.7, unknown"}, proxy},
		"not an address behind a proxy":     {proxy, []string{"unknown, 10.0.0.1"}, "10.0.0.1:0"},
		"empty":                             {proxy, []string{""}, proxy},
		"no address at all, as in a socket": {"@", []string{"198.51.100.7"}, "@"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = c.remote
			for _, f := range c.forwarded {
				r.Header.Add("X-Forwarded-For", f)
			}
			var got string
			WithTrustedProxies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr }), proxies...).
				ServeHTTP(httptest.NewRecorder(), r)
			require.Equal(t, c.want, got)
			require.Equal(t, c.remote, r.RemoteAddr, "the server's request is unchanged")
			WithTrustedProxies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr })).
				ServeHTTP(httptest.NewRecorder(), r)
			require.Equal(t, c.remote, got, "without proxies")
		})
	}
}

// serveOne starts a request that lasts until end is closed, and stops the server meanwhile.
func serveOne(t *testing.T, grace time.Duration, end <-chan struct{}) (got <-chan bool, served <-chan error) {
	t.Helper()
	l, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	began := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	result, returned := make(chan bool, 1), make(chan error, 1)
	go func() {
		returned <- Serve(ctx, New(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(began)
			<-end
		})), l, grace)
	}()
	c := dial(t, l.Addr().String())
	go func() { result <- answered(c) }()
	<-began
	stop()
	return result, returned
}

func TestServeAnswersTheRunningRequests(t *testing.T) {
	end := make(chan struct{})
	got, served := serveOne(t, waitLimit, end)
	close(end)
	require.True(t, <-got)
	require.NoError(t, <-served)
}

func TestServeClosesConnectionsAfterItsGrace(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	got, served := serveOne(t, time.Millisecond, end)
	require.ErrorIs(t, <-served, context.DeadlineExceeded)
	require.False(t, <-got)
}

func TestServeReturnsTheErrorOfTheListener(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, Serve(t.Context(), New(http.NotFoundHandler()), l, waitLimit), net.ErrClosed)
}

package memnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServerAnswersItsClientInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := memnet.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			host, port, err := net.SplitHostPort(r.RemoteAddr)
			if err != nil || port == "80" {
				w.WriteHeader(http.StatusBadRequest)
			}
			_, _ = w.Write([]byte(host + " sent " + string(body)))
		}))
		defer server.Close()
		for range 2 { // the second request is on the connection of the first one
			response, err := server.Client().Post(server.URL, "text/plain", strings.NewReader("hi"))
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			require.NoError(t, errors.Join(err, response.Body.Close()))
			require.Equal(t, "127.0.0.1 sent hi", string(body))
			require.Equal(t, http.StatusOK, response.StatusCode)
		}
	})
}

func TestTimeoutsPassWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, listener := memnet.Serve(http.NotFoundHandler())
		defer server.Close()
		server.Config.ReadHeaderTimeout = time.Hour
		silent, err := listener.DialContext(t.Context(), "tcp", "any:1")
		require.NoError(t, err)
		defer func() { _ = silent.Close() }()
		begun := time.Now()
		_, err = silent.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, time.Hour, time.Since(begun))
	})
}

func TestWebSocketWorksInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := memnet.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := websocket.Accept(w, r, nil)
			if err == nil {
				_ = c.Write(r.Context(), websocket.MessageText, []byte("welcome"))
				_, _, _ = c.Read(r.Context())
			}
		}))
		defer server.Close()
		c, _, err := websocket.Dial(t.Context(), server.URL, &websocket.DialOptions{HTTPClient: server.Client()})
		require.NoError(t, err)
		_, text, err := c.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, "welcome", string(text))
		limited, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, _, err = c.Read(limited)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, c.CloseNow())
	})
}

func TestClosedListenerRefusesConnections(t *testing.T) {
	l := memnet.Listen()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.DialContext(ctx, "tcp", "any:1")
	require.ErrorIs(t, err, context.Canceled, "nobody accepts it")
	require.NoError(t, errors.Join(l.Close(), l.Close()))
	_, err = l.DialContext(t.Context(), "tcp", "any:1")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

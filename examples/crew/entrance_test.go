package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
)

// noBrokers is a publisher of a test in which nothing may be written.
type noBrokers struct{ t *testing.T }

func (n noBrokers) Publish(context.Context, ...processors.Outbound) error {
	n.t.Error("the request was accepted")
	return nil
}

// The browser of the user who runs the example shows pages of others. They cannot use the door.
func TestDoorIsClosedToPagesOfOthers(t *testing.T) {
	e, err := openDoor(t.Context(), []string{nowhere}, noBrokers{t}, "127.0.0.1:0", zap.NewNop())
	require.NoError(t, err)
	defer func() { require.NoError(t, e.stop()) }()
	const ready = http.StatusServiceUnavailable // the index has no brokers: it answers those that may ask
	_, port, _ := strings.Cut(e.address, ":")
	for name, c := range map[string]struct {
		headers map[string]string
		want    int
	}{
		"person":       {map[string]string{"Authorization": "Bearer " + e.token}, ready},
		"own page":     {map[string]string{"Authorization": "Bearer " + e.token, "Origin": e.url()}, ready},
		"localhost":    {map[string]string{"Authorization": "Bearer " + e.token, "Host": "localhost:" + port, "Origin": "http://localhost:" + port}, ready},
		"no token":     {nil, http.StatusUnauthorized},
		"other token":  {map[string]string{"Authorization": "Bearer x"}, http.StatusUnauthorized},
		"other origin": {map[string]string{"Authorization": "Bearer " + e.token, "Origin": "https://evil.example"}, http.StatusForbidden},
		"other host":   {map[string]string{"Authorization": "Bearer " + e.token, "Host": "evil.example:" + port}, http.StatusForbidden},
		"plain text":   {map[string]string{"Authorization": "Bearer " + e.token, "Content-Type": "text/plain"}, http.StatusUnsupportedMediaType},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url()+"/api/agents", strings.NewReader("{}"))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		for key, value := range c.headers {
			r.Header.Set(key, value)
		}
		r.Host = r.Header.Get("Host")
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, c.want, response.StatusCode, name)
	}
	for url, want := range map[string]int{
		e.socket(): ready,
		strings.Replace(e.socket(), "127.0.0.1", "localhost", 1): ready,
	} {
		_, response, err := ws.Dial(t.Context(), url, nil)
		require.Error(t, err)
		require.Equal(t, want, response.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
}

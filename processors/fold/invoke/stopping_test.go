package invoke

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that stops cancels its requests. Their responses must not look complete.
func TestStoppingServerDoesNotAnswerWithSuccess(t *testing.T) {
	for _, accept := range []string{"application/json", "application/x-ndjson", "text/event-stream"} {
		agent := newLive()
		ctx, stop := context.WithCancel(context.Background())
		server := httptest.NewUnstartedServer(must(New(agent, Config{})))
		server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
		server.Start()
		t.Cleanup(server.Close)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(question))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", accept)
		go func() {
			<-agent.begun
			stop()
		}()
		resp, err := server.Client().Do(r)
		if errors.Is(err, io.EOF) && accept != "application/json" { // aborted before the headers were sent
			<-agent.closed
			continue
		}
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, resp.Body.Close())
		<-agent.closed
		if accept == "application/json" {
			require.NoError(t, err)
			require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
			require.Equal(t, "the service is stopping", textAt(t, string(body), "status", "message"))
			continue
		}
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a transfer that ends well would be a whole stream")
	}
}

func TestErrorWithASuccessStatusIsAnswered500(t *testing.T) {
	for _, status := range []int{-1, 7, 200, 204, 302, 600, 99_999} {
		agent := scripted(t, hello)
		agent.refuses = &Error{Status: status, Text: "no"}
		a := newSite(t, agent).invoke(`{}`)
		require.Equal(t, http.StatusInternalServerError, a.status)
		require.Equal(t, "500", string(at(t, a.body, "status", "code")))
	}
}

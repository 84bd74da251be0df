package whole

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// A peer that does not wait for its task gets the reply at the service that the receiver has configured for its token.
func TestReplyIsDeliveredToTheCallbackService(t *testing.T) {
	type callback struct{ authorization, body string }
	called := make(chan callback, 10)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		called <- callback{r.Header.Get("Authorization"), string(body)}
	}))
	defer service.Close()
	agent, brokers := testbroker.AgentOf(t), testbroker.Start(t)
	deliveries, err := delivery.Graph(agent, delivery.Config{PeerCallbacks: true})
	require.NoError(t, err)
	routes, err := delivery.RoutesGraph(agent, delivery.Config{})
	require.NoError(t, err)
	group, ctx := errgroup.WithContext(t.Context())
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		require.NoError(t, group.Wait())
	}()
	address := instance(ctx, t, group, brokers, agent, []*goka.GroupGraph{deliveries, routes}, `{"peers":{"enabled":true,
		"instanceId":"tenant-1","inboundTokens":[{"id":"hq","token":"`+peerToken+`","callbackService":"hq"}]}}`)
	services, err := sink.ParseServices("hq:" + service.URL)
	require.NoError(t, err)
	to, err := processors.NewPublisher(brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, to.Close()) })
	callbacks := sink.NewHTTP(services)
	t.Cleanup(callbacks.Close)
	sender, err := sink.New(agent, to, sink.Config{Transports: map[string]sink.Transport{topics.KindHTTP: callbacks}})
	require.NoError(t, err)
	group.Go(func() error { return sender.Run(ctx, brokers) })

	request := peerwire.Request{TaskID: "t-1", ParentInstanceID: "hq", Content: "work", CallbackToken: "a token of the callback"}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/api/peer/delegate", strings.NewReader(string(request.Body())))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+peerToken)
	r.Header.Set("Prefer", "respond-async")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Contains(t, []int{http.StatusOK, http.StatusAccepted}, response.StatusCode)

	select {
	case c := <-called:
		require.Equal(t, "Bearer a token of the callback", c.authorization)
		var body struct {
			Result string `json:"result"`
		}
		require.NoError(t, json.Unmarshal([]byte(c.body), &body))
		reply, err := peerwire.ReadReply([]byte(body.Result), "t-1")
		require.NoError(t, err)
		require.Equal(t, peerwire.StatusSuccess, reply.Status)
		require.Equal(t, "done", reply.Result)
	case <-time.After(waitLimit):
		require.Fail(t, "the service was not called")
	}
}

package transport

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// brokerLimit is generous: the tests of several packages may share a slow machine.
const brokerLimit = 3 * time.Minute

func newTopics(t *testing.T) (brokers []string, agent string, catalog topics.Catalog, to *processors.KafkaPublisher) {
	t.Helper()
	brokers, agent = testbroker.Start(t), testbroker.Agent()
	catalog, err := topics.For(agent, topics.WithPeers())
	require.NoError(t, err)
	require.NoError(t, topics.EnsureCluster(t.Context(), brokers, kafka.Config(), catalog, topics.WithPartitions(2)))
	to, err = processors.NewPublisher(brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, to.Close()) })
	return brokers, agent, catalog, to
}

// background runs a function until the test ends.
func background(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ran)
	})
}

func TestAttemptOnATopicEndsInAReceiptWithTheReply(t *testing.T) {
	brokers, agent, catalog, to := newTopics(t)
	p := newInstance(t)
	p.delegate = func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("{\"taskId\":\"t/9\",\"peerInstanceId\":\"a\",\"status\":\"success\",\"result\":\"\xff \\ud800\"}"))
	}
	receipts := make(chan topics.Receipt, 10)
	follower, err := processors.NewFollower(brokers, []string{catalog.PeerReceipts.Name()}, func(r processors.Inbound) {
		in := catalog.PeerReceipts.Codec().Unmarshal(r.Value)
		assert.NoError(t, in.Err)
		assert.Equal(t, "s", string(r.Key))
		receipts <- in.Value
	})
	require.NoError(t, err)
	background(t, follower.Run)
	<-follower.Ready()

	s, err := sink.New(agent, to, sink.Config{Peers: true, Transports: map[string]sink.Transport{Kind: p.sender()}})
	require.NoError(t, err)
	background(t, func(ctx context.Context) error { return s.Run(ctx, brokers) })
	out, err := processors.OutboundOf(catalog.PeerAttempts, "s", attempt().Delivery, "peer_1/attempt/1")
	require.NoError(t, err)
	require.NoError(t, to.Publish(t.Context(), out))
	select {
	case r := <-receipts:
		require.Equal(t, topics.OutcomeDelivered, r.Outcome)
		require.Equal(t, "peer_1", r.DeliveryID)
		a, err := peerwire.ReadAnswer(r.Response)
		require.NoError(t, err)
		reply, err := peerwire.ReadReply(a.Reply, "t/9")
		require.NoError(t, err)
		require.Equal(t, "\ufffd \ufffd", reply.Result)
	case <-time.After(brokerLimit):
		t.Fatal("no receipt")
	}
}

func TestCancelOnATopicEndsTheAttemptsOfEveryProcess(t *testing.T) {
	brokers, agent, catalog, to := newTopics(t)
	p, begun := newInstance(t, cancels), make(chan struct{})
	p.delegate = func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		hang(w, r)
	}
	p.tasks = answer(202, "")
	tr := p.sender()
	background(t, func(ctx context.Context) error { return tr.Run(ctx, agent, brokers) })
	var running sync.WaitGroup
	ended := make(chan exchanged, 1)
	running.Go(func() {
		ended <- exchange(t, tr, attempt(func(_ *sink.Attempt, b *peerwire.Attempt) {
			b.Timeout, b.Deadline = 2*brokerLimit, time.Now().Add(2*brokerLimit)
		}))
	})
	<-begun
	out, err := processors.OutboundOf(catalog.PeerAttempts, "s", attempt(cancelOf).Delivery, "peer_1/cancel")
	require.NoError(t, err)
	// The follower begins at the end of the topic: cancels that were written before it was connected are not read.
	require.Eventually(t, func() bool {
		assert.NoError(t, to.Publish(t.Context(), out))
		return len(ended) == 1
	}, brokerLimit, 100*time.Millisecond)
	running.Wait()
	require.Equal(t, peerwire.CodeCancelled, (<-ended).Code)
	require.Equal(t, 1, p.count("DELETE"), "the attempt has told the peer")
}

func TestRunReportsAnInvalidAgent(t *testing.T) {
	require.ErrorContains(t, New(nil, Config{}).Run(t.Context(), "", []string{"127.0.0.1:1"}), "transport:")
	require.ErrorIs(t, New(nil, Config{}).Run(t.Context(), "pilot", nil), processors.ErrConfig)
}

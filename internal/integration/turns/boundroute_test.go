package turns

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// Messages of a few sessions are posted at the same time without a request ID, as FlightDeck's clients do, some with a reply and
// some without. Each answer goes to the caller whose message it answers.
func TestAnswersOfConcurrentMessagesGoToTheirCallers(t *testing.T) {
	const messages, sessions = 150, 10
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		c := config{
			agent: testbroker.Agent(), instance: "one", brokers: testbroker.Start(t), guarantee: guarantee, partitions: 3,
			turn: turn.Config{Policy: turn.Queue, QueueLimit: messages},
		}
		start(t, c)
		catalog, err := topics.For(c.agent)
		require.NoError(t, err)
		to, err := processors.NewPublisher(c.brokers)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, to.Close()) })
		posted := make(chan struct{}) // a turn that ends before its route is read has no caller
		readTopic(t, c, catalog.EnrichedMessageInput.Name(), func(ctx context.Context, r processors.Inbound) error {
			select {
			case <-posted:
			case <-ctx.Done():
				return ctx.Err()
			}
			in := catalog.EnrichedMessageInput.Codec().Unmarshal(r.Value).Value
			m, err := topics.DecodeMessage(in.LatestInput)
			if err != nil {
				return err
			}
			out, err := processors.OutboundOf(catalog.ThinkRequestResponse, string(r.Key), topics.ThinkResponse{
				LastInputMessage: in.LatestInput, PreviousMessages: topics.Raw("[]"), EndTurn: true,
				LastInputResponse: topics.Raw(`[{"role":"assistant","content":` + string(m.Content) + `}]`),
			}, string(r.Header(topics.HeaderID))+"/think")
			if err != nil {
				return err
			}
			return to.Publish(ctx, out)
		})
		outputs := make(chan topics.Output, messages)
		readTopic(t, c, catalog.MessageOutput.Name(), func(_ context.Context, r processors.Inbound) error {
			outputs <- catalog.MessageOutput.Codec().Unmarshal(r.Value).Value
			return nil
		})
		doors, err := turnhttp.New(c.agent, to, turnhttp.Config{CallbackServices: func(string) bool { return true }})
		require.NoError(t, err)

		routes := 0
		var posts sync.WaitGroup
		for i := range messages {
			body := fmt.Sprintf(`{"session_id":"s%d","content":"message %d"`, i%sessions, i)
			if i%4 != 0 {
				routes++
				body += fmt.Sprintf(`,"reply":{"callbackService":"harbor","bearerToken":"message %d"}`, i)
			}
			posts.Go(func() {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, turnhttp.ChatPath, strings.NewReader(body+"}"))
				r.Header.Set("Content-Type", "application/json")
				doors.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					t.Error(w.Code, w.Body)
				}
			})
		}
		posts.Wait()
		awaitCommitted(t, c, string(catalog.Group()), catalog.ReplyTo.Name(), int64(routes))
		close(posted)
		seen := map[string]bool{}
		for len(seen) < messages {
			var out topics.Output
			select {
			case out = <-outputs:
			case <-time.After(wait):
				require.Fail(t, "no output", "%d came", len(seen))
			}
			require.Nil(t, out.Error, out.Content)
			seen[out.Content] = true
			var number int
			_, err := fmt.Sscanf(out.Content, "message %d", &number)
			require.NoError(t, err)
			wanted := ""
			if number%4 != 0 {
				wanted = out.Content
			}
			require.Equal(t, wanted, topics.TokenOf(out.ReplyTo), "the caller of the answer to %s", out.Content)
		}
	})
}

// awaitCommitted waits until a group has handled as many records of a topic.
func awaitCommitted(t *testing.T, c config, group, topic string, records int64) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.brokers...))
	require.NoError(t, err)
	defer client.Close()
	require.Eventually(t, func() bool {
		committed, err := kadm.NewClient(client).FetchOffsetsForTopics(t.Context(), group, topic)
		sum := int64(0)
		for _, o := range committed[topic] {
			sum += max(o.At, 0) // -1 without a commit
		}
		return err == nil && sum == records
	}, wait, 20*time.Millisecond, "group %s has not handled %s", group, topic)
}

// readTopic handles the records of a topic until the test ends.
func readTopic(t *testing.T, c config, topic string, handle func(context.Context, processors.Inbound) error) {
	t.Helper()
	w, err := worker.New([]string{topic},
		func(ctx context.Context, r worker.Record) error { return handle(ctx, r.Inbound) }, worker.Config{
			Group: "readers of " + topic, Drop: true,
		})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, c.brokers) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

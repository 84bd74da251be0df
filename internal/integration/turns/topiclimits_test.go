package turns

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// An answer that message-output does not accept ends its turn as too_large, and the turns of other sessions go on.
func TestAnswerThatItsTopicRefusesBlocksNoOtherSession(t *testing.T) {
	for _, guarantee := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(guarantee), func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, guarantee, turn.Config{})
			catalog, err := topics.For(a.name)
			require.NoError(t, err)
			client, err := kgo.NewClient(kgo.SeedBrokers(a.brokers...), kgo.ConsumeTopics(catalog.EnrichedMessageInput.Name(), catalog.MessageOutput.Name()),
				kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
			require.NoError(t, err)
			defer client.Close()
			limit := "20000"
			altered, err := kadm.NewClient(client).AlterTopicConfigs(t.Context(),
				[]kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &limit}}, catalog.MessageOutput.Name())
			require.NoError(t, err)
			require.NoError(t, altered[0].Err)

			for _, session := range []string{"large", "s-1", "s-2", "s-3", "s-4", "s-5", "s-6"} {
				_, err := a.user.Say(t.Context(), wiretest.Say{Session: session, Text: "Which berth is free?"}, wiretest.Sent{})
				require.NoError(t, err)
			}
			ended := map[string]topics.Output{}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			for len(ended) < 7 && ctx.Err() == nil {
				client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
					session := string(r.Key)
					if r.Topic == catalog.MessageOutput.Name() {
						ended[session] = catalog.MessageOutput.Codec().Unmarshal(r.Value).Value
						return
					}
					asked := catalog.EnrichedMessageInput.Codec().Unmarshal(r.Value).Value
					text := "N4"
					if session == "large" {
						text = strings.Repeat("x", 50_000)
					}
					answer, err := catalog.ThinkRequestResponse.Codec().Marshal(topics.ThinkResponse{
						PreviousMessages: asked.History, LastInputMessage: asked.LatestInput, EndTurn: true,
						LastInputResponse: topics.Raw(`[{"role":"assistant","content":"` + text + `"}]`),
					})
					require.NoError(t, err)
					_, err = a.user.Send(t.Context(), wiretest.Record{Topic: catalog.ThinkRequestResponse.Name(), Key: []byte(session), Value: answer, Partition: wiretest.AtHome}, wiretest.Sent{})
					require.NoError(t, err)
				})
			}
			require.Len(t, ended, 7)
			require.NotNil(t, ended["large"].Error)
			require.Equal(t, topics.CodeTooLarge, ended["large"].Error.Code)
			delete(ended, "large")
			for session, o := range ended {
				require.Equal(t, "N4", o.Content, session)
			}
		})
	}
}

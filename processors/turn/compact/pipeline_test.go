package compact_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// A whole pipeline on a broker: a turn over the limit continues with the summary of the compactor, under both guarantees.
func TestPipelineContinuesWithASummary(t *testing.T) {
	for _, guarantee := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(guarantee), func(t *testing.T) {
			t.Parallel()
			b, err := embedded.Start(embedded.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, b.Close()) })
			to, err := processors.NewPublisher(b.Addrs())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, to.Close()) })
			catalog, err := topics.For("pilot", topics.WithCompaction())
			require.NoError(t, err)

			hidden := make(chan turn.Hidden, 10)
			graph, err := turn.Graph("pilot", turn.Config{
				Compaction:   &turn.Compaction{Keep: 1},
				HistoryLimit: turn.HistoryLimit{Messages: 4},
				Metrics:      turn.Metrics{HistoryHidden: func(_ string, h turn.Hidden) { hidden <- h }},
			})
			require.NoError(t, err)
			p, err := processors.New(b.Addrs(), graph, processors.WithTopics(catalog), processors.WithInstance("one"),
				processors.WithGuarantee(guarantee), processors.WithTick(20*time.Millisecond))
			require.NoError(t, err)
			run(t, p.Run)
			require.Eventually(t, func() bool { return p.Health().State == processors.Running }, time.Minute, 5*time.Millisecond)

			asked := make(chan think.Step, 10)
			model, err := think.New("pilot", to, think.Func(func(_ context.Context, s think.Step) (think.Reply, error) {
				asked <- s
				return think.Say("answer"), nil
			}), think.Config{})
			require.NoError(t, err)
			run(t, func(ctx context.Context) error { return model.Run(ctx, b.Addrs()) })
			compactor, err := compact.New("pilot", to, compact.Func(
				func(_ context.Context, c compact.Conversation) (compact.Summary, error) {
					return compact.Summary{Text: fmt.Sprint(len(c.Messages), " messages")}, nil
				}), compact.Config{})
			require.NoError(t, err)
			run(t, func(ctx context.Context) error { return compactor.Run(ctx, b.Addrs()) })

			var last think.Step
			for n := range 4 {
				role, session := "user", "s"
				m, err := processors.OutboundOf(catalog.MessageInput, session, topics.Message{
					SessionID: &session, Role: &role, Content: topics.Raw(fmt.Sprintf("%q", fmt.Sprint("question ", n))),
				}, "")
				require.NoError(t, err)
				require.NoError(t, to.Publish(t.Context(), m))
				select {
				case last = <-asked:
				case <-time.After(time.Minute):
					require.FailNow(t, "the model is not asked")
				}
			}
			require.Len(t, last.Messages, 4, "the summary, the newest exchange, the question")
			require.Equal(t, "[Conversation Summary]\n4 messages", topics.Text(last.Messages[0].Content))
			require.Equal(t, "question 2", topics.Text(last.Messages[1].Content))
			h := <-hidden
			require.True(t, h.Summarized)
			require.Equal(t, 4, h.Messages)
		})
	}
}

// run runs a function until the test ends.
func run(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ran)
	})
}

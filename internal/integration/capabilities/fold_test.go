package capabilities

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/topics"
)

// sendRaw writes a record, in the partition of any key.
func (r *foldRig) sendRaw(key, partitionOf string, value []byte) {
	r.producer.Produce(context.Background(), &kgo.Record{
		Topic: r.topics.AgentEvents.Name(), Key: []byte(key), Value: value,
		Partition: codec.PartitionOf(partitionOf, r.partitions),
	}, nil)
}

// states are the batches' states and reasons, by turn.
func (r *foldRig) states() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	states := map[string]string{}
	for _, list := range r.batches {
		reason := ""
		if list[0].Reason != nil {
			reason = " " + *list[0].Reason
		}
		states[list[0].TurnID] = list[0].State + reason
	}
	return states
}

func TestTurnsEndDespiteInvalidRecords(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		const grace, gap, silence = 100 * time.Millisecond, 5 * time.Second, 10 * time.Second
		r := newFoldRig(t, guarantee, 4, fold.Config{
			Grace: grace, Silence: silence,
			WindowCount: 100, WindowBytes: 10_000, WindowWait: gap, TurnLimit: 20_000,
		})
		now := clock.NewFake(time.Now())
		g := r.run(processors.WithClock(now))
		r.watch()
		open := func(session string, is func(*foldrow.Turn) bool) {
			t.Helper()
			require.Eventually(t, func() bool {
				value, err := g.Get(session)
				require.NoError(t, err)
				row, err := foldrow.Table.Of(value)
				require.NoError(t, err)
				return row != nil && len(row.Open) == 1 && is(row.Open[0])
			}, waitLimit, time.Millisecond)
		}
		good := turnOf("session-1", "good", 100)
		r.send(good[:50]...)
		for _, poison := range []string{"{", "{}", `{"session_id":"session-1","turn_id":"good","attempt":1}`} {
			r.sendRaw("session-1", "session-1", []byte(poison))
		}
		// A record with another key and one in another partition: the loop topic brings both to their session.
		moved, err := r.topics.AgentEvents.Codec().Marshal(good[50])
		require.NoError(t, err)
		r.sendRaw("session-2", "session-2", moved)
		moved, err = r.topics.AgentEvents.Codec().Marshal(good[51])
		require.NoError(t, err)
		r.sendRaw("session-1", "session-3", moved)
		require.NoError(t, r.producer.Flush(t.Context()))
		r.send(good[52:99]...)
		// The last record of the valid turn is sent after the records with a wrong key have arrived.
		open("session-1", func(turn *foldrow.Turn) bool { return turn.Seq == 99 })
		r.send(good[99])

		holed := turnOf("session-2", "gap", 50)
		r.send(append(holed[:20:20], holed[21:40]...)...)
		r.send(turnOf("session-3", "large", 2000)...)
		r.send(turnOf("session-3", "silent", 30)[:29]...)
		huge := strings.Repeat("x", 990_000) // larger than an event may be, not than a record
		r.send(topics.AgentEvent{
			SessionID: "session-4", TurnID: "huge", Attempt: 1, Seq: 1,
			Event: topics.Raw(`{"type":"message","data":{"text":"` + huge + `"}}`),
		}, topics.AgentEvent{
			SessionID: "session-4", TurnID: "huge", Attempt: 1, Seq: 2, Event: topics.Raw(`{"type":"done","data":{}}`),
		})
		r.await(2)
		open("session-2", func(turn *foldrow.Turn) bool { return len(turn.Held) == 19 })
		open("session-3", func(turn *foldrow.Turn) bool { return turn.Seq == 29 })
		open("session-4", func(turn *foldrow.Turn) bool { return turn.Done })
		for i, limit := range []time.Duration{grace, gap, silence} {
			now.Advance(limit)
			r.await(3 + i)
		}
		g.stop()
		require.Equal(t, map[string]string{
			"good": "complete", "gap": "failed gap", "large": "failed too_large", "silent": "expired silence",
			"huge": "complete",
		}, r.states())
		require.Eventually(t, func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.letters == 4
		}, waitLimit, 5*time.Millisecond)
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, list := range r.batches {
			if list[0].TurnID == "good" {
				require.Equal(t, folded(t, good), threeFields(list[0]))
			}
		}
	})
}

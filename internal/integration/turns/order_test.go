package turns

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
)

// letter returns the letter of a record. In message-input, the group writes only tool messages.
func letter(n wiretest.Names, r *kgo.Record) string {
	switch {
	case r.Topic == n.Enriched:
		return "E"
	case r.Topic == n.AllComplete:
		return "A"
	case strings.Contains(string(r.Value), `"tool_results"`):
		return "T"
	default:
		return "M"
	}
}

// idOf returns the turntable.id of a record: the ID of its turn, a slash, and what it is.
func idOf(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == "turntable.id" {
			return string(h.Value)
		}
	}
	return ""
}

// playOrdered plays turns with two tools each and returns the records of the three topics in order of arrival at a reader,
// by session.
func playOrdered(t *testing.T, c config, level kgo.IsolationLevel, concurrency, turns int) map[string][]*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := wiretest.NamesOf(c.agent)
	require.NoError(t, wiretest.CreateTopics(ctx, c.brokers, c.agent, 2))
	reader, err := kgo.NewClient(kgo.SeedBrokers(c.brokers...), kgo.FetchIsolationLevel(level),
		kgo.ConsumeTopics(n.Enriched, n.AllComplete, n.MessageInput), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer reader.Close()
	load, err := wiretest.StartLoad(ctx, c.brokers, c.agent, wiretest.LoadOptions{
		Turns: turns, Tools: 2, Concurrency: concurrency,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, load.Close()) }()
	read := map[string][]*kgo.Record{}
	for count := 0; count < 5*turns; {
		fetches := reader.PollFetches(ctx)
		require.NoError(t, fetches.Err(), "%d records, %+v", count, load.Progress())
		fetches.EachRecord(func(r *kgo.Record) {
			count++
			read[string(r.Key)] = append(read[string(r.Key)], r)
		})
	}
	require.NoError(t, load.Wait(ctx))
	return read
}

func letters(n wiretest.Names, records []*kgo.Record) string {
	var b strings.Builder
	for _, r := range records {
		b.WriteString(letter(n, r))
	}
	return b.String()
}

// Readers of several topics, such as FlightDeck's dashboard, sort by timestamp. They must see the user's message, the record for the
// model, all-complete, the tool message, then the next record for the model. Records of equal timestamps are taken in the wrong order
// here. The timestamps of a step are up to 2 ms ahead of it: the next turn of a user and a model that take less time may be seen before
// its last records, so each turn is looked at by itself.
func TestTimestampsOfAToolStepFollowItsCauses(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		c := config{agent: testbroker.Agent(), instance: "i1", brokers: testbroker.Start(t), guarantee: guarantee, partitions: 2}
		start(t, c)
		n := wiretest.NamesOf(c.agent)
		for session, records := range playOrdered(t, c, kgo.ReadCommitted(), 4, 20) {
			slices.SortStableFunc(records, func(a, b *kgo.Record) int {
				return cmp.Or(a.Timestamp.Compare(b.Timestamp),
					strings.Index("ETAM", letter(n, a))-strings.Index("ETAM", letter(n, b)))
			})
			all := letters(n, records)
			turns := map[string]string{}
			for _, r := range records {
				if l := letter(n, r); l != "M" {
					turn, _, _ := strings.Cut(idOf(r), "/")
					turns[turn] += l
				}
			}
			require.Len(t, turns, strings.Count(all, "M"))
			for turn, seen := range turns {
				require.Equal(t, "EATE", seen, "session %s, turn %s: %s", session, turn, all)
			}
			asked, thinks := 0, 0
			for _, l := range all {
				switch l {
				case 'M':
					asked++
				case 'E':
					thinks++
					require.GreaterOrEqual(t, asked, (thinks+1)/2, "%s: %s", session, all)
				}
			}
		}
	})
}

// Each request to the broker waits for the answer to the one before, so outputs in separate requests are acknowledged one
// after the other.
func TestOrderedOutputsOfAStepAreAcknowledgedOneAfterTheOther(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		const turns = 10
		right := 0
		// The broker may answer a fetch of several topics in between, on a machine under load more often than not, but not every time.
		for tries := 0; right <= turns/2 && tries < 5; tries++ {
			right = arrivedInOrder(t, guarantee, turns)
			t.Logf("%d of %d turns arrived in order at a reader", right, turns)
		}
		require.Greater(t, right, turns/2)
	})
}

// arrivedInOrder plays turns with ordered outputs, whose requests must come one after the other, and returns how many of the turns
// a reader of several topics sees in order.
func arrivedInOrder(t *testing.T, guarantee processors.Guarantee, turns int) (right int) {
	c := config{
		agent: testbroker.Agent(), instance: "i1", brokers: testbroker.Start(t), guarantee: guarantee, partitions: 2,
		child: settings{Ordered: true},
	}
	n := wiretest.NamesOf(c.agent)
	names := map[string]string{n.Enriched: "E", n.AllComplete: "A", n.MessageInput: "T"}
	var mu sync.Mutex
	var requests []string
	behind := c
	_, behind.brokers = newTap(t, c.brokers, func(request) verdict { return pass }, func(r kmsg.Request) {
		produce, ok := r.(*kmsg.ProduceRequest)
		if !ok {
			return
		}
		var sent string
		for _, topic := range produce.Topics {
			sent += names[topic.Topic]
		}
		if sent != "" {
			mu.Lock()
			requests = append(requests, sent)
			mu.Unlock()
		}
	})
	start(t, behind)
	for _, records := range playOrdered(t, c, kgo.ReadUncommitted(), 1, turns) {
		right += strings.Count(letters(n, records), "MEATE")
	}
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, strings.Repeat("E A T E ", turns), strings.Join(requests, " ")+" ")
	return right
}

// A process is killed when it sends the tool message of a step whose all-complete is acknowledged: the step is repeated with
// the same IDs, and the turn ends in its answer.
func TestTurnSurvivesAKillBetweenItsOrderedOutputs(t *testing.T) {
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		t.Parallel()
		c := config{
			agent: testbroker.Agent(), instance: "i1", dir: t.TempDir(), brokers: testbroker.Start(t), guarantee: guarantee,
			child: settings{Ordered: true},
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, wiretest.CreateTopics(ctx, c.brokers, c.agent, 2))
		n := wiretest.NamesOf(c.agent)
		load, err := wiretest.StartLoad(ctx, c.brokers, c.agent, wiretest.LoadOptions{Turns: 4, Tools: 2, Concurrency: 2})
		require.NoError(t, err)
		for range 2 {
			killedAt(t, c, 1, func(topic string) bool { return topic == n.MessageInput })
		}
		i := spawn(t, c)
		require.NoError(t, load.Wait(ctx))
		require.NoError(t, load.Close())
		require.NoError(t, i.Stop())

		report := kept(ctx, t, c)
		require.Equal(t, 4, report.Counts.Messages)
	}, processors.AtLeastOnce, processors.ExactlyOnce)
}

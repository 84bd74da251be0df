package capabilities

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// foldRig is the group of the fold, a producer of events and a reader of batches.
type foldRig struct {
	*world
	config   fold.Config
	producer *kgo.Client

	batches map[string][]topics.BatchMessage // by turntable.id
	letters int
}

func newFoldRig(tb testing.TB, guarantee processors.Guarantee, partitions int32, config fold.Config) *foldRig {
	tb.Helper()
	r := &foldRig{
		world: newWorld(tb, guarantee, partitions, topics.WithEvents()), config: config, batches: map[string][]topics.BatchMessage{},
	}
	var err error
	// Partition like Java's producers.
	r.producer, err = kgo.NewClient(kgo.SeedBrokers(r.brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(time.Millisecond))
	require.NoError(tb, err)
	tb.Cleanup(r.producer.Close)
	return r
}

func (r *foldRig) run(opts ...processors.Option) *instance {
	r.tb.Helper()
	g, err := fold.Graph(r.agent, r.config)
	require.NoError(r.tb, err)
	return r.group(g, "fold", opts...)
}

// send writes records of a session in order, and returns before they are acknowledged.
func (r *foldRig) send(events ...topics.AgentEvent) {
	r.tb.Helper()
	for _, e := range events {
		raw, err := r.topics.AgentEvents.Codec().Marshal(e)
		require.NoError(r.tb, err)
		r.producer.Produce(context.Background(), &kgo.Record{
			Topic: r.topics.AgentEvents.Name(), Key: []byte(e.SessionID), Value: raw,
			Partition: codec.PartitionOf(e.SessionID, r.partitions),
		}, func(_ *kgo.Record, err error) {
			if err != nil && !errors.Is(err, kgo.ErrClientClosed) {
				r.tb.Errorf("produce: %v", err)
			}
		})
	}
}

// watch reads batches, and dead letters.
func (r *foldRig) watch() {
	r.tb.Helper()
	r.read(func(record *kgo.Record) {
		if record.Topic != r.topics.BatchMessages.Name() {
			r.letters++
			return
		}
		b := decode(r.world, r.topics.BatchMessages, record)
		if string(record.Key) != b.SessionID {
			r.tb.Errorf("batch of %s: %s", record.Key, b.SessionID)
		}
		id := header(record, topics.HeaderID)
		r.batches[id] = append(r.batches[id], b)
	}, r.topics.BatchMessages.Name(), string(r.topics.FoldGroup())+"-dlq")
}

func (r *foldRig) closed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.batches)
}

func (r *foldRig) await(turns int) {
	r.tb.Helper()
	require.Eventually(r.tb, func() bool { return r.closed() >= turns }, waitLimit, 5*time.Millisecond)
}

// turnOf returns a turn of n records: text, calls and results, and its terminal record.
func turnOf(session, turn string, records int) (events []topics.AgentEvent) {
	add := func(event string) {
		events = append(events, topics.AgentEvent{
			SessionID: session, TurnID: turn, Attempt: 1, Seq: int64(len(events) + 1), Event: topics.Raw(event),
		})
	}
	for block := 0; len(events) < records-1; block++ {
		id := "msg-" + strconv.Itoa(block)
		add(`{"type":"message_start","data":{"id":"` + id + `"}}`)
		for i := 0; i < 40 && len(events) < records-4; i++ {
			add(`{"type":"message_delta","data":{"id":"` + id + `","delta":"` + turn + ` says ` + strconv.Itoa(i) + `. "}}`)
		}
		for _, event := range []string{
			`{"type":"message_end","data":{"id":"` + id + `"}}`,
			`{"type":"tool_call","data":{"id":"` + id + `","name":"look","input":{"n":1.50}}}`,
			`{"type":"tool_result","id":"` + id + `","output":"` + turn + `"}`,
		} {
			if len(events) < records-1 {
				add(event)
			}
		}
	}
	reason := "end_turn"
	return append(events, topics.AgentEvent{
		SessionID: session, TurnID: turn, Attempt: 1, Seq: int64(len(events) + 1),
		Result: &topics.AgentResult{OK: true, StopReason: &reason},
	})
}

// folded returns package folder's batch of a turn's events: its first three fields.
func folded(tb testing.TB, events []topics.AgentEvent) string {
	tb.Helper()
	f := folder.NewFolder()
	for _, e := range events {
		if e.Result != nil {
			continue
		}
		event, err := folder.DecodeEvent([]byte(e.Event))
		require.NoError(tb, err)
		require.NoError(tb, f.Add(event))
	}
	b, err := f.Batch(folder.End{StopReason: []byte(`"end_turn"`)})
	require.NoError(tb, err)
	return string(b.AppendJSON(nil))
}

func threeFields(b topics.BatchMessage) string {
	return `{"messages":` + b.Messages.String() + `,"stop_reason":` + b.StopReason.String() +
		`,"pending_interaction":` + b.PendingInteraction.String() + `}`
}

package invoke

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/topics"
)

// writeAt writes records with a timestamp.
func (b *broker) writeAt(at time.Time, events ...topics.AgentEvent) {
	b.t.Helper()
	conf := kafka.Config()
	conf.Producer.Partitioner, conf.Producer.Return.Successes = sarama.NewManualPartitioner, true
	to, err := sarama.NewSyncProducer(b.addrs, conf)
	require.NoError(b.t, err)
	for _, e := range events {
		raw, err := b.catalog.AgentEvents.Codec().Marshal(e)
		require.NoError(b.t, err)
		_, _, err = to.SendMessage(&sarama.ProducerMessage{
			Topic: b.catalog.AgentEvents.Name(), Partition: codec.PartitionOf(e.SessionID, 3), Timestamp: at,
			Key: sarama.StringEncoder(e.SessionID), Value: sarama.ByteEncoder(raw),
		})
		require.NoError(b.t, err)
	}
	require.NoError(b.t, to.Close())
}

// deleteBefore removes a session's records before an offset from the topic, as retention does.
func (b *broker) deleteBefore(session string, offset int64) {
	b.t.Helper()
	admin, err := sarama.NewClusterAdmin(b.addrs, kafka.Config())
	require.NoError(b.t, err)
	partition := codec.PartitionOf(session, 3)
	require.NoError(b.t, admin.DeleteRecords(b.catalog.AgentEvents.Name(), map[int32]int64{partition: offset}))
	require.NoError(b.t, admin.Close())
}

// statusOf returns the status of a response. It does not read the body, which may not end.
func (s *site) statusOf(body string, headers ...string) int {
	s.t.Helper()
	ctx, leave := context.WithTimeout(s.t.Context(), time.Minute)
	defer leave()
	resp := s.sendUntil(ctx, http.MethodPost, "/invoke", body, headers...)
	require.NoError(s.t, resp.Body.Close())
	return resp.StatusCode
}

// forms are the Accept headers of all response formats.
var forms = []string{"application/json", "application/x-ndjson", "text/event-stream"}

// The clock does not advance, so no response waits for the gap's timeout.
func TestResumeIsGoneIfTheFirstRecordsAreOlderThanTheLookback(t *testing.T) {
	t.Parallel()
	turn := func(session, turn string, attempt int64) []topics.AgentEvent {
		return records(session, turn, attempt, scripted(t, hello).events, topics.AgentResult{OK: true})
	}
	b := newBroker(t)
	s := serve(t, must(New(b.pipeline(func(c *PipelineConfig) { c.Clock = clock.NewFake(noon) }), Config{Random: &counting{}})))
	early, late := noon.Add(-2*time.Hour), noon.Add(-30*time.Minute)

	running, ended, retried := turn("s-1", "running", 1), turn("s-1", "ended", 1), turn("s-1", "retried", 2)
	b.writeAt(early, turn("s-1", "old", 1)...)
	b.writeAt(early, turn("s-1", "retried", 1)[:3]...)
	b.writeAt(early, running[:3]...)
	b.writeAt(early, ended[:3]...)
	b.writeAt(early, retried[:3]...)
	b.writeAt(late, running[3:5]...)
	b.writeAt(late, ended[3:]...)
	b.writeAt(late, retried[3:]...)

	for _, id := range []string{
		"running.1.0", "running.1.2", "running.1.3", "running.1.4", "running.1.5", "ended.1.0", "ended.1.2", "ended.1.6",
		"retried.2.0", "retried.2.5", "old.1.2", "old.2.0",
	} {
		for _, accept := range forms {
			require.Equal(t, http.StatusGone, s.statusOf(`{"session_id":"s-1"}`, HeaderLastEvent, id, "Accept", accept),
				"%s as %s", id, accept)
		}
	}
	require.Equal(t, http.StatusGone, s.statusOf(`{"session_id":"s-1"}`, HeaderLastEvent, "retried.1.2"),
		"the batch is that of the newer attempt")
}

func TestResumeIsGoneIfTheTopicHasRemovedTheFirstRecords(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.writeAt(noon.Add(-30*time.Minute), records("s-1", "t", 1, scripted(t, hello).events, topics.AgentResult{OK: true})[:5]...)
	b.deleteBefore("s-1", 3)
	s := serve(t, must(New(b.pipeline(func(c *PipelineConfig) { c.Clock = clock.NewFake(noon) }), Config{Random: &counting{}})))
	for _, id := range []string{"t.1.0", "t.1.2", "t.1.4"} {
		require.Equal(t, http.StatusGone, s.statusOf(`{"session_id":"s-1"}`, HeaderLastEvent, id, "Accept", forms[1]), id)
	}
}

func TestResumeAfterUnknownEventsIsGone(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.write(records("s-1", "t", 1, scripted(t, hello).events, topics.AgentResult{OK: true, StopReason: &endTurn})...)
	s := serve(t, must(New(b.pipeline(), Config{Random: &counting{}})))
	for id, want := range map[string]int{
		"t.1.0": http.StatusOK, "t.1.5": http.StatusOK, "t.1.6": http.StatusOK,
		"t.1.7": http.StatusGone, "t.2.1": http.StatusGone, "t.2.0": http.StatusGone, "t.0.1": http.StatusGone,
	} {
		require.Equal(t, want, s.statusOf(`{"session_id":"s-1"}`, HeaderLastEvent, id), id)
	}

	buffered := newSite(t, newBuffered(t, scripted(t, hello)))
	whole := buffered.invoke(question, "Accept", "text/event-stream")
	require.Equal(t, http.StatusOK, whole.status)
	require.Equal(t, http.StatusOK, buffered.statusOf(question, HeaderLastEvent, turnID+".1.5"))
	require.Equal(t, http.StatusGone, buffered.statusOf(question, HeaderLastEvent, turnID+".1.7"))
}

// A repeated request also reads its turn again.
func TestRepeatedRequestIsGoneIfItsTurnCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	p := b.pipeline(func(c *PipelineConfig) { c.Clock = clock.NewFake(noon) })
	s := serve(t, must(New(p, Config{Random: &counting{}})))
	list := records("s-1", derived("pilot", "s-1", "k"), 1, scripted(t, hello).events, topics.AgentResult{OK: true})
	b.writeAt(noon.Add(-2*time.Hour), list[:2]...)
	b.writeAt(noon.Add(-30*time.Minute), list[2:4]...)
	require.NoError(t, p.catchUp(t.Context(), "s-1"))
	for _, accept := range forms {
		require.Equal(t, http.StatusGone, s.statusOf(question, "Idempotency-Key", "k", "Accept", accept), accept)
	}
}

// A turn whose second record was written before its first is not gone: Resume waits for the first.
func TestResumeWaitsForALateFirstRecord(t *testing.T) {
	t.Parallel()
	for _, comes := range []bool{true, false} {
		b := newBroker(t)
		now := clock.NewFake(noon)
		s := serve(t, must(New(b.pipeline(func(c *PipelineConfig) { c.Clock = now }), Config{Random: &counting{}})))
		list := records("s-1", "t", 1, scripted(t, hello).events, topics.AgentResult{OK: true})
		b.writeAt(noon.Add(-10*time.Second), list[1])
		status := make(chan int, 1)
		go func() {
			status <- s.statusOf(`{"session_id":"s-1"}`, HeaderLastEvent, "t.1.0", "Accept", forms[1])
		}()
		require.NoError(t, now.WaitTickers(t.Context(), 1))
		require.Empty(t, status)
		if comes {
			b.writeAt(noon, list[0])
			require.Equal(t, http.StatusOK, <-status)
			continue
		}
		now.Advance(20*time.Second - time.Millisecond)
		require.Empty(t, status)
		now.Advance(time.Millisecond)
		require.Equal(t, http.StatusGone, <-status, "30 s after the record behind the gap was written")
	}
}

// A turn is read from the partition that has it: its producer may have another partitioner.
func TestTurnInAForeignPartitionCanBeRead(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	foreign := (codec.PartitionOf("s-1", 3) + 1) % 3
	to, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer to.Close()
	events := scripted(t, hello).events
	for _, e := range records("s-1", "t", 1, events, topics.AgentResult{OK: true}) {
		raw, err := b.catalog.AgentEvents.Codec().Marshal(e)
		require.NoError(t, err)
		r := &kgo.Record{Topic: b.catalog.AgentEvents.Name(), Partition: foreign, Key: []byte("s-1"), Value: raw}
		require.NoError(t, to.ProduceSync(t.Context(), r).FirstErr())
	}
	s, err := b.pipeline().Resume(t.Context(), Request{SessionID: "s-1"}, EventID{"t", 1, 0})
	require.NoError(t, err)
	defer s.Close()
	for _, want := range events {
		item, err := s.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, want.Type, item.Event.Type)
	}
}

package fold_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_000).UTC()

// bench runs the group without a broker and collects everything that it writes.
type bench struct {
	*processortest.Driver
	topics   topics.Catalog
	events   *processortest.Input[topics.AgentEvent]
	controls *processortest.Input[topics.Control]
	batches  *processortest.Output[topics.BatchMessage]
	letters  *processortest.Output[[]byte]
}

func newBench(t *testing.T, config fold.Config) *bench {
	t.Helper()
	c, err := topics.For("quay")
	require.NoError(t, err)
	g, err := fold.Graph("quay", config)
	require.NoError(t, err)
	d := processortest.New(t, noon, g)
	return &bench{
		Driver: d, topics: c, events: processortest.In(d, c.AgentEvents), controls: processortest.In(d, c.SessionControl),
		batches: processortest.Out(d, c.BatchMessages), letters: processortest.OutRaw(d, "quay-fold-streams-dlq"),
	}
}

func (b *bench) event(turn string, seq int64, event string) {
	b.events.Pipe("s", topics.AgentEvent{
		SessionID: "s", TurnID: turn, Attempt: 1, Seq: seq, Event: topics.Raw(event),
	})
}

func (b *bench) end(turn string, seq int64, stopReason string) {
	b.events.Pipe("s", topics.AgentEvent{
		SessionID: "s", TurnID: turn, Attempt: 1, Seq: seq,
		Result: &topics.AgentResult{OK: true, StopReason: &stopReason},
	})
}

func (b *bench) say(turn, text string) {
	b.event(turn, 1, `{"type":"message","data":{"text":"`+text+`"}}`)
}

func (b *bench) reason(r processortest.Record[[]byte]) string {
	return string(r.Headers[topics.HeaderErrorReason])
}

func TestTurnEmitsOneBatchUnderItsSession(t *testing.T) {
	b := newBench(t, fold.Config{})
	b.say("t", "Hello")
	for i := range 100 {
		b.event("t", int64(i+2), `{"type":"message","data":{"text":"some more, enough for a part"}}`)
	}
	b.end("t", 102, "end_turn")
	batch := b.batches.Next()
	require.Equal(t, "s", batch.Key)
	require.Regexp(t, "^[0-9a-f]{32}/0/batch/0$", batch.ID())
	require.Equal(t, "t", batch.Value.TurnID)
	require.Equal(t, topics.BatchComplete, batch.Value.State)
	elements, err := topics.Elements(batch.Value.Messages)
	require.NoError(t, err)
	require.Len(t, elements, 101)
	require.NoError(t, b.Replay())
	table := processortest.Table(b.Driver, b.topics.FoldGroup(), foldrow.Table.Codec())
	row, ok := table.Get("s")
	require.True(t, ok)
	require.Empty(t, row.Open)
	text, err := fold.Describe(row)
	require.NoError(t, err)
	require.Contains(t, text, "remembered: 1")
	b.Advance(25 * time.Hour)
	require.Empty(t, table.Keys())
}

func TestIDsOfEqualTurnsOfTwoSessionsDiffer(t *testing.T) {
	b := newBench(t, fold.Config{})
	for _, session := range []string{"s1", "s2"} {
		b.events.Pipe(session, topics.AgentEvent{
			SessionID: session, TurnID: "t", Attempt: 1, Seq: 1, Result: &topics.AgentResult{OK: true},
		})
	}
	require.NotEqual(t, b.batches.Next().ID(), b.batches.Next().ID())
}

func TestRecordUnderAWrongKeyIsFoldedUnderItsSession(t *testing.T) {
	b := newBench(t, fold.Config{})
	b.say("t", "Hello")
	b.events.Pipe("another", topics.AgentEvent{
		SessionID: "s", TurnID: "t", Attempt: 1, Seq: 2, Result: &topics.AgentResult{OK: true},
	})
	require.Equal(t, "s", b.batches.Next().Key)
}

func TestPoisonIsDeadLetteredAndNoOtherRecordIsLost(t *testing.T) {
	b := newBench(t, fold.Config{})
	b.say("t", "Hello")
	for _, record := range []string{`{`, `{}`, `[]`, `{"session_id":"s","turn_id":"t","attempt":1,"seq":2}`} {
		b.events.PipeRaw("s", []byte(record))
	}
	b.events.PipeRaw("s", nil)
	b.events.PipeRaw("", []byte(`{"session_id":"","turn_id":"t","attempt":1,"seq":2,"event":{}}`))
	b.event("t", 2, `[]`)
	b.end("t", 3, "end_turn")
	letters := b.letters.Drain()
	require.Len(t, letters, 7)
	require.Contains(t, b.reason(letters[4]), "tombstone")
	require.Contains(t, b.reason(letters[6]), "event is no object")
	require.Equal(t, topics.BatchComplete, b.batches.Next().Value.State)
}

func TestDeadlinesCloseTurns(t *testing.T) {
	b := newBench(t, fold.Config{Grace: time.Second, Silence: time.Minute, WindowCount: 10, WindowBytes: 1000, WindowWait: 10 * time.Second})
	b.say("done", "Hello")
	b.event("done", 2, `{"type":"done","data":{}}`)
	b.say("silent", "Hello")
	b.say("gap", "Hello")
	b.event("gap", 3, `{"type":"message","data":{"text":"late"}}`)
	b.Advance(time.Minute)
	for _, want := range []string{"done complete", "gap failed", "silent expired"} {
		batch := b.batches.Next().Value
		require.Equal(t, want, batch.TurnID+" "+batch.State)
	}
	require.NoError(t, b.Replay())
}

func TestControlCancels(t *testing.T) {
	b := newBench(t, fold.Config{})
	b.say("t", "Hello")
	b.controls.Pipe("s", topics.Control{Action: topics.ActionCancel})
	require.Equal(t, topics.BatchCancelled, b.batches.Next().Value.State)
	b.controls.PipeRaw("s", nil)
}

func TestInvalidFieldFailsGraph(t *testing.T) {
	for want, c := range map[string]fold.Config{
		"WindowCount is -1": {WindowCount: -1}, "WindowBytes is -1": {WindowBytes: -1}, "WindowWait is -1ns": {WindowWait: -1},
		"Grace is -1ns": {Grace: -1}, "Silence is 1µs": {Silence: time.Microsecond}, "OpenTurns is 1000, want 1 to 256": {OpenTurns: 1000},
		"TurnLimit is 1, want 1024": {TurnLimit: 1}, "RecordLimit is 1000": {RecordLimit: 1000}, "RememberFor is -1ns": {RememberFor: -1},
		"RememberCount is 1048576": {RememberCount: 1 << 20},
	} {
		_, err := fold.Graph("quay", c)
		require.ErrorIs(t, err, fold.ErrConfig)
		require.ErrorContains(t, err, want)
	}
	_, err := fold.Graph("no good", fold.Config{})
	require.ErrorIs(t, err, topics.ErrAgent)
	_, err = fold.Graph("quay", fold.Config{TurnLimit: 10 << 20, RecordLimit: 12 << 20})
	require.NoError(t, err)
}

package invoke

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/topics"
)

// liveTurn is the stream of a turn whose records come from the test.
type liveTurn struct {
	*pipelineStream
	t   *testing.T
	now *clock.Fake
}

func newLiveTurn(t *testing.T) *liveTurn {
	now := clock.NewFake(noon)
	rules := pipelineRules{
		silence: 30 * time.Minute, grace: 5 * time.Second, gap: 30 * time.Second, lookback: time.Hour, waiting: 1 << 20,
		turns: 10, clock: now,
	}
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	s, _ := (&Pipeline{rules: rules, hub: newHub(catalog, rules)}).open(Request{SessionID: "s"}, "t")
	return &liveTurn{s, t, now}
}

func (l *liveTurn) comes(seq int64, event string) {
	e := topics.AgentEvent{SessionID: "s", TurnID: "t", Attempt: 1, Seq: seq, Event: topics.Raw(event)}
	l.box.put(sessionRecord{event: &e}, len(event), l.pipeline.hub.limit)
}

// tells checks that the next events have these numbers.
func (l *liveTurn) tells(seqs ...uint64) {
	l.t.Helper()
	for _, seq := range seqs {
		item, err := l.Next(l.t.Context())
		require.NoError(l.t, err)
		require.Equal(l.t, seq, item.ID.Seq)
	}
}

// waits calls Next, which blocks.
func (l *liveTurn) waits() <-chan error {
	l.t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := l.Next(l.t.Context())
		ended <- err
	}()
	require.NoError(l.t, l.now.WaitTickers(l.t.Context(), 1))
	return ended
}

const (
	someEvent  = `{"type":"message","data":{"text":"a"}}`
	doneEvent  = `{"type":"done","data":{}}`
	pauseEvent = `{"type":"done","data":{"stopReason":"paused"}}`
)

func TestStreamWithAGapAfterDoneWaitsForTheMissingRecord(t *testing.T) {
	l := newLiveTurn(t)
	l.comes(1, someEvent)
	l.comes(2, doneEvent)
	l.comes(4, someEvent)
	l.tells(1, 2)
	ended := l.waits()
	l.now.Advance(30*time.Second - time.Millisecond)
	l.comes(3, pauseEvent)
	require.NoError(t, <-ended, "the done event with the reason is told")
	_, err := l.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
}

func TestStreamWithAGapAfterDoneFailsIfTheGapStaysOpen(t *testing.T) {
	l := newLiveTurn(t)
	l.comes(1, someEvent)
	l.comes(2, doneEvent)
	l.comes(4, someEvent)
	l.tells(1, 2)
	ended := l.waits()
	l.now.Advance(30*time.Second - time.Millisecond)
	require.Empty(t, ended)
	l.now.Advance(time.Millisecond)
	require.ErrorIs(t, <-ended, errGap)
}

func TestGraceOfAStreamBeginsWhenItsGapCloses(t *testing.T) {
	l := newLiveTurn(t)
	l.comes(1, doneEvent)
	l.comes(3, someEvent)
	l.tells(1)
	ended := l.waits()
	l.now.Advance(20 * time.Second)
	l.comes(2, someEvent)
	require.NoError(t, <-ended)
	l.tells(3)
	ended = l.waits()
	l.now.Advance(5*time.Second - time.Millisecond)
	require.Empty(t, ended)
	l.now.Advance(time.Millisecond)
	require.ErrorIs(t, <-ended, io.EOF)
}

func TestRecordsAfterAGapDoNotProlongIt(t *testing.T) {
	l := newLiveTurn(t)
	l.comes(1, someEvent)
	l.comes(3, someEvent)
	l.tells(1)
	ended := l.waits()
	for seq := range int64(5) {
		l.comes(seq+4, someEvent)
		l.now.Advance(6 * time.Second)
	}
	select {
	case err := <-ended:
		require.ErrorIs(t, err, errGap)
	case <-time.After(10 * time.Second):
		t.Fatal("30 s after the gap opened the stream is still open")
	}
}

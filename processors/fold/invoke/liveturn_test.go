package invoke

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/fold/folder"
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
	c := PipelineConfig{WaitingBytes: 1 << 20, IndexedTurns: 10, Clock: now}
	c.complete(&bounds.Check{})
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	s, _ := (&Pipeline{config: c, hub: newHub(catalog, c)}).open(Request{SessionID: "s"}, "t")
	return &liveTurn{s, t, now}
}

func (l *liveTurn) comes(seq int64, event string) {
	e := topics.AgentEvent{SessionID: "s", TurnID: "t", Attempt: 1, Seq: seq, Event: topics.Raw(event)}
	l.box.put(sessionRecord{event: &e}, len(event), l.pipeline.hub.limit)
}

// ends is the batch of the turn.
func (l *liveTurn) ends(attempt, seq int64) {
	l.box.put(sessionRecord{end: &turnEnd{turn: "t", attempt: attempt, seq: seq, state: folder.Complete}}, 1, l.pipeline.hub.limit)
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

const someEvent = `{"type":"message","data":{"text":"a"}}`

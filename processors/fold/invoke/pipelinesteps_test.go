package invoke

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// steppedLive is the stream of a turn with steps. Its records are on a topic of the test, from which they can be read again.
type steppedLive struct {
	*liveTurn
	follower
	written []processors.Inbound
}

func newSteppedLive(t *testing.T) *steppedLive {
	l := &steppedLive{liveTurn: newLiveTurn(t)}
	l.pipeline.follower, l.pipeline.slots = l, entrance.NewSlots(1)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func (l *steppedLive) ReplayRange(ctx context.Context, _ string, _ int32, begin, end int64,
	take func(context.Context, processors.Inbound) bool,
) (int64, error) {
	for _, r := range l.written[begin:end] {
		if !take(ctx, r) {
			return r.Offset + 1, nil
		}
	}
	return end, nil
}

func (l *steppedLive) write(e topics.AgentEvent) {
	l.t.Helper()
	events := l.pipeline.hub.topics.AgentEvents
	raw, err := events.Codec().Marshal(e)
	require.NoError(l.t, err)
	r := processors.Inbound{
		Topic: events.Name(), Offset: int64(len(l.written)), Key: []byte(e.SessionID), Value: raw, Timestamp: l.now.Now(),
	}
	l.written = append(l.written, r)
	l.pipeline.hub.handle(r)
}

// output writes a record of message-output.
func (l *steppedLive) output(o topics.Output) {
	l.t.Helper()
	outputs := l.pipeline.hub.topics.MessageOutput
	raw, err := outputs.Codec().Marshal(o)
	require.NoError(l.t, err)
	l.pipeline.hub.handle(processors.Inbound{Topic: outputs.Name(), Key: []byte("s"), Value: raw, Timestamp: l.now.Now()})
}

func ofTurn(step, seq int64, kind string) topics.AgentEvent {
	return topics.AgentEvent{
		SessionID: "s", TurnID: "t", Author: topics.AuthorTurn, Step: step, Attempt: 1, Seq: seq,
		Event: topics.Raw(`{"type":"` + kind + `","data":{"id":"g"}}`),
	}
}

func ofWorker(step, attempt, seq int64, text string) topics.AgentEvent {
	return topics.AgentEvent{
		SessionID: "s", TurnID: "t", Step: step, Attempt: attempt, Seq: seq,
		Event: topics.Raw(`{"type":"message","data":{"text":"` + text + `"}}`),
	}
}

func settling(e topics.AgentEvent, attempt, seq int64) topics.AgentEvent {
	e.Settles = &topics.AgentAttempt{Attempt: attempt, Seq: seq}
	return e
}

// The index forgets a turn that has no record for as long as the look-back: its first record is then that after the pause.
func TestReplacedEventsAreReadFromTheTurnsFirstRecordAfterALongPause(t *testing.T) {
	l := newSteppedLive(t)
	l.write(topics.AgentEvent{SessionID: "other", TurnID: "o", Attempt: 1, Seq: 1, Event: topics.Raw(someEvent)})
	l.write(ofTurn(1, 1, "step_start"))
	l.write(ofWorker(1, 5, 1, "I pay."))
	l.write(settling(ofTurn(1, 2, "step_end"), 5, 1))
	l.write(ofTurn(1, 4, "interaction_request"))
	l.tells(1, 2, 3, 4)
	l.now.Advance(3 * time.Hour)
	l.write(topics.AgentEvent{SessionID: "other", TurnID: "p", Attempt: 1, Seq: 1, Event: topics.Raw(someEvent)})
	l.write(ofTurn(1, 5, "interaction_response"))
	require.EqualValues(t, 6, l.pipeline.hub.lookup("s", "t").first, "the index knows the records after the pause only")
	l.write(ofTurn(2, 1, "step_start"))
	l.write(ofWorker(2, 7, 1, "dead"))
	l.tells(5, 6, 7)

	l.write(ofWorker(2, 9, 1, "alive"))
	_, err := l.Next(t.Context())
	var replaced *Superseded
	require.ErrorAs(t, err, &replaced)
	require.Equal(t, EventID{Turn: "t", Attempt: 2}, replaced.By)
	l.tells(1, 2, 3, 4, 5, 6, 7)
	end := settling(topics.AgentEvent{
		SessionID: "s", TurnID: "t", Author: topics.AuthorTurn, Step: 2, Attempt: 1, Seq: 1_000_000,
		Result: &topics.AgentResult{OK: true, StopReason: &endTurn},
	}, 9, 1)
	l.write(end)
	l.ends(2, 8)
	_, err = l.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
}

// An instance without turn.Config.Events ends a turn that began with it: its output is the only end.
func TestStreamEndsAfterTheTurnsOutputIfNoRecordEndsItsEvents(t *testing.T) {
	request := "t"
	for want, output := range map[string]topics.Output{
		"no_events": {RequestID: &request, Content: "Bye."},
		"busy":      {RequestID: &request, Error: &topics.OutputError{Code: "busy", Message: "no quota"}},
	} {
		l := newSteppedLive(t)
		l.write(ofTurn(1, 1, "step_start"))
		l.tells(1)
		l.output(output)
		ended := l.waits()
		l.now.Advance(30*time.Second - time.Millisecond)
		require.Empty(t, ended)
		l.now.Advance(time.Millisecond)
		var failure *Error
		select {
		case err := <-ended:
			require.ErrorAs(t, err, &failure)
		case <-time.After(10 * time.Second):
			t.Fatal("30 s after the turn's output the stream is still open")
		}
		require.Equal(t, want, failure.Code)
	}
}

func TestOutputBeforeTheLastEventsDoesNotEndTheStream(t *testing.T) {
	request := "t"
	l := newSteppedLive(t)
	l.write(ofTurn(1, 1, "step_start"))
	l.tells(1)
	l.output(topics.Output{RequestID: &request, Content: "Bye."})
	ended := l.waits()
	l.now.Advance(30*time.Second - time.Millisecond)
	l.write(settling(topics.AgentEvent{
		SessionID: "s", TurnID: "t", Author: topics.AuthorTurn, Step: 1, Attempt: 1, Seq: 1_000_000,
		Result: &topics.AgentResult{OK: true, StopReason: &endTurn},
	}, 9, 0))
	l.ends(1, 2)
	require.ErrorIs(t, <-ended, io.EOF)
}

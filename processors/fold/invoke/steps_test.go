package invoke

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// steppedTurn is a turn whose steps have writers of their own: what each of them writes, and the events that count.
type steppedTurn struct {
	writers [][]topics.AgentEvent
	events  []topics.Raw
	result  *topics.AgentResult // nil: the turn has no terminal record yet
	settled int                 // how many of the events do not depend on the order of the writers
}

// drawStepped draws a turn. Workers die in the middle of a step, and repeat steps that have a response; any attempt can be the
// one whose response is accepted. ends says that the last step is answered.
func drawStepped(t *rapid.T, ends bool) steppedTurn {
	var turn steppedTurn
	var own []topics.AgentEvent
	steps := rapid.IntRange(1, 3).Draw(t, "steps")
	ofTurn := func(step, seq int, e topics.AgentEvent) {
		e.SessionID, e.TurnID, e.Author, e.Step, e.Attempt, e.Seq = "s", "t", topics.AuthorTurn, int64(step), 1, int64(seq)
		if own = append(own, e); e.Event != nil {
			turn.events = append(turn.events, e.Event)
		}
	}
	mark := func(kind string, n int) topics.Raw {
		return topics.Raw(fmt.Sprintf(`{"type":%q,"data":{"type":%q,"step":%d}}`, kind, kind, n))
	}
	for step := 1; step <= steps; step++ {
		ofTurn(step, 1, topics.AgentEvent{Event: mark("step_start", step)})
		attempts := rapid.IntRange(1, 3).Draw(t, "attempts")
		accepted := rapid.IntRange(1, attempts).Draw(t, "accepted")
		settles := &topics.AgentAttempt{Attempt: int64(accepted)}
		for attempt := 1; attempt <= attempts; attempt++ {
			var records []topics.AgentEvent
			n := rapid.IntRange(0, 4).Draw(t, "events")
			for i := 1; i <= n; i++ {
				event := topics.Raw(fmt.Sprintf(`{"type":"message","data":{"text":"%d.%d.%d"}}`, step, attempt, i))
				records = append(records, topics.AgentEvent{
					SessionID: "s", TurnID: "t", Step: int64(step), Attempt: int64(attempt), Seq: int64(i), Event: event,
				})
				if attempt == accepted && (ends || step < steps) {
					turn.events, settles.Seq = append(turn.events, event), int64(i)
				}
			}
			turn.writers = append(turn.writers, records)
		}
		if step == steps {
			turn.result = &topics.AgentResult{OK: true, StopReason: new("end_turn")}
			e := topics.AgentEvent{Result: turn.result, Settles: settles}
			if !ends {
				*turn.result = topics.AgentResult{Error: new("no quota"), Code: topics.CodeThinkFailed}
				e.Settles = nil
			}
			ofTurn(step, 1_000_000, e)
			break
		}
		ofTurn(step, 2, topics.AgentEvent{Event: mark("step_end", step), Settles: settles})
		for i := range rapid.IntRange(1, 2).Draw(t, "results") {
			ofTurn(step, 5+3*i, topics.AgentEvent{Event: topics.Raw(fmt.Sprintf(
				`{"type":"tool_result","data":{"id":"c%d.%d","output":"r"}}`, step, i))})
		}
	}
	turn.settled = len(turn.events)
	turn.writers = append(turn.writers, own)
	return turn
}

// interleaved draws an order of the writers' records, with repeats of a writer's last ones. Each writer's own order is kept.
func (s steppedTurn) interleaved(t *rapid.T) (records []topics.AgentEvent) {
	left := slices.Clone(s.writers)
	for {
		left = slices.DeleteFunc(left, func(w []topics.AgentEvent) bool { return len(w) == 0 })
		if len(left) == 0 {
			return records
		}
		i := rapid.IntRange(0, len(left)-1).Draw(t, "writer")
		if e := left[i][0]; rapid.IntRange(0, 4).Draw(t, "repeats") == 0 && e.Result == nil {
			records = append(records, e) // after a crash or a lost acknowledgement
		}
		records, left[i] = append(records, left[i][0]), left[i][1:]
	}
}

// readSteps reads records as a request does: from the first one again whenever events were replaced.
func readSteps(t require.TestingT, records []topics.AgentEvent, wanted int64) (events []topics.AgentEvent) {
	s := sequence{attempt: wanted}
	for read := 0; read < len(records); {
		ready, err := s.add(records[read])
		read++
		if errors.Is(err, errReplaced) {
			read, events = 0, nil
			continue
		}
		require.NoError(t, err)
		events = append(events, ready...)
	}
	for i, e := range events {
		require.EqualValues(t, i+1, e.Seq, "the turn has one sequence")
		require.Equal(t, events[0].Attempt, e.Attempt)
		if e.Result != nil {
			return events[:i+1] // nothing counts after it
		}
	}
	return events
}

// foldedByReader returns the batch of what a request reads.
func foldedByReader(t require.TestingT, events []topics.AgentEvent) string {
	f, end := folder.NewFolder(), folder.End{}
	for _, e := range events {
		if e.Result != nil {
			end = folder.EndOf(*e.Result)
			continue
		}
		event, err := folder.DecodeEvent(e.Event)
		require.NoError(t, err)
		require.NoError(t, f.Add(event))
	}
	b, err := f.Batch(end)
	require.NoError(t, err)
	return string(folder.AppendMessages(nil, b.Messages)) + string(b.State)
}

// foldGroup is the fold group, without a broker.
type foldGroup struct {
	*processortest.Driver
	events   *processortest.Input[topics.AgentEvent]
	batches  *processortest.Output[topics.BatchMessage]
	rows     *processortest.GroupTable[*foldrow.Row]
	sessions int
}

func newFoldGroup(t *testing.T) *foldGroup {
	t.Helper()
	c, err := topics.For("quay")
	require.NoError(t, err)
	d := processortest.New(t, time.UnixMilli(1_790_000_000_000), must(fold.Graph("quay", fold.Config{})))
	return &foldGroup{
		Driver: d, events: processortest.In(d, c.AgentEvents), batches: processortest.Out(d, c.BatchMessages),
		rows: processortest.Table(d, c.FoldGroup(), foldrow.Table.Codec()),
	}
}

// folded returns the batch that the group writes for records, in a session of its own. Dead letters fail the test.
func (g *foldGroup) folded(t require.TestingT, records []topics.AgentEvent) (string, topics.BatchMessage) {
	g.sessions++
	session := fmt.Sprint("s", g.sessions)
	for _, e := range records {
		e.SessionID = session
		g.events.Pipe(session, e)
	}
	g.Advance(time.Millisecond)
	batches := g.batches.Drain()
	require.Len(t, batches, 1, "one batch a turn")
	row, ok := g.rows.Get(session)
	require.True(t, ok)
	require.Empty(t, row.Open)
	return string(batches[0].Value.Messages) + batches[0].Value.State, batches[0].Value
}

// For any order of the writers' records, also with repeats and with workers that died, a turn with an answer folds to the same
// batch, in the group and in the stream of a request.
func TestAnsweredTurnFoldsToOneBatchForAnyOrderOfItsWriters(t *testing.T) {
	group := newFoldGroup(t)
	rapid.Check(t, func(t *rapid.T) {
		turn := drawStepped(t, true)
		var ideal []topics.AgentEvent
		for _, e := range turn.events {
			ideal = append(ideal, topics.AgentEvent{Event: e})
		}
		want := foldedByReader(t, append(ideal, topics.AgentEvent{Result: turn.result}))
		records := turn.interleaved(t)
		events := readSteps(t, records, 0)
		require.Equal(t, want, foldedByReader(t, events))
		got, batch := group.folded(t, records)
		require.Equal(t, want, got)
		require.Equal(t, events[len(events)-1].Seq, batch.Seq)
		for wanted := range events[0].Attempt { // a client that resumes gets the same events
			require.Equal(t, events, readSteps(t, records, wanted+1))
		}
	})
}

// A turn that is cancelled or fails in a step ends at its terminal record, with the events of the step that came before it: the
// same ones in the batch and in the stream.
func TestTurnWithoutAnAnswerFoldsToItsStream(t *testing.T) {
	group := newFoldGroup(t)
	rapid.Check(t, func(t *rapid.T) {
		records := drawStepped(t, false).interleaved(t)
		got, batch := group.folded(t, records)
		require.Equal(t, foldedByReader(t, readSteps(t, records, 0)), got)
		require.Equal(t, topics.BatchFailed, batch.State)
		require.Equal(t, "think_failed", *batch.Reason)
	})
}

func TestReplacedAttemptIsReadAgainUnderAGreaterNumber(t *testing.T) {
	record := func(attempt, seq int64, text string) topics.AgentEvent {
		return topics.AgentEvent{
			TurnID: "t", Step: 1, Attempt: attempt, Seq: seq, Event: topics.Raw(`{"type":"message","text":"` + text + `"}`),
		}
	}
	start := topics.AgentEvent{TurnID: "t", Author: topics.AuthorTurn, Step: 1, Attempt: 1, Seq: 1, Event: topics.Raw(`{"type":"step_start"}`)}
	events := readSteps(t, []topics.AgentEvent{start, record(7, 1, "dead"), record(9, 1, "alive"), record(7, 2, "late")}, 0)
	require.Len(t, events, 2)
	require.EqualValues(t, 2, events[1].Attempt)
	require.Contains(t, string(events[1].Event), "alive")
	_, after, _ := strings.Cut(positionOf(events[1]).String(), "t.")
	require.Equal(t, "2.2", after)
}

// A worker whose clock is behind takes over from one that died, and writes more than is kept out of order.
func TestLongAttemptWithAnEarlierClockIsTold(t *testing.T) {
	const long = heldRecords + 500
	of := func(attempt, seq int64) topics.AgentEvent {
		return topics.AgentEvent{
			SessionID: "s", TurnID: "t", Step: 1, Attempt: attempt, Seq: seq,
			Event: topics.Raw(fmt.Sprintf(`{"type":"message","data":{"text":"%d.%d "}}`, attempt, seq)),
		}
	}
	own := topics.AgentEvent{SessionID: "s", TurnID: "t", Author: topics.AuthorTurn, Step: 1, Attempt: 1, Seq: 1}
	start, end := own, own
	start.Event = topics.Raw(`{"type":"step_start","data":{"type":"step_start","step":1}}`)
	end.Seq, end.Result = 1_000_000, &topics.AgentResult{OK: true, StopReason: new("end_turn")}

	group := newFoldGroup(t)
	for settled, last := range map[int64]int64{1990: long, 2000: 1} {
		records := []topics.AgentEvent{start, of(2000, 1)}
		for seq := range int64(long) {
			records = append(records, of(1990, seq+1))
		}
		end.Settles = &topics.AgentAttempt{Attempt: settled, Seq: last}
		records = append(records, end)

		events := readSteps(t, records, 0)
		require.Len(t, events, int(last)+2)
		for _, e := range events[1 : last+1] {
			require.Contains(t, string(e.Event), fmt.Sprintf(`"%d.`, settled))
		}
		got, _ := group.folded(t, records)
		require.Equal(t, got, foldedByReader(t, events))
		require.Equal(t, events, readSteps(t, records, events[0].Attempt))
	}
}

package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// smallRow is the smallest limit that rules may have.
func smallRow(r *rules) { r.RecordLimit, r.RowLimit = minRecord, minRecord-rowMargin }

// keepState replaces the row by a state whose fields stand in the row itself.
func (p *play) keepState(s *turnrow.State) {
	p.tb.Helper()
	raw, err := turnrow.Table.Marshal(s)
	require.NoError(p.tb, err)
	p.row, p.parts = raw, map[uint32][]byte{}
}

// fill makes the history so long that the row has just so many bytes left up to its limit, and memories of n requests
// and of n applied records and ended calls.
func (p *play) fill(n, left int) {
	p.tb.Helper()
	p.fillWith(n, left, func(s *turnrow.State, size int) {
		s.HistoryLength, s.History = 1, []byte(`[{"role":"user","content":"`+strings.Repeat("h", size)+`"}]`)
	})
}

// fillForGood is fill with a route instead of the history: nothing that can be given up.
func (p *play) fillForGood(n, left int) {
	p.tb.Helper()
	p.fillWith(n, left, func(s *turnrow.State, size int) {
		s.Routes = []*turnrow.ReplyRoute{{
			RequestId: ptr("other"), ReplyTo: []byte(`{"to":"` + strings.Repeat("r", size) + `"}`),
			ExpiresMs: p.now.Add(time.Hour).UnixMilli(),
		}}
	})
}

func (p *play) fillWith(n, left int, filler func(s *turnrow.State, size int)) {
	p.tb.Helper()
	s := &turnrow.State{Version: rowVersion, TouchedMs: p.now.UnixMilli()}
	for i := range n {
		d := fmt.Sprint(i)
		s.Requests = remember(s.Requests, digests.Of(ofRequest, "r"+d), p.now, time.Hour, n)
		s.Causes = remember(s.Causes, digests.Of(ofCause, d), p.now, time.Hour, n)
		s.Calls = remember(s.Calls, digests.Of(ofCall, d), p.now, time.Hour, n)
	}
	filler(s, 0)
	size := p.rules.RowLimit - left - stateSize(s) - 3 // the lengths get longer
	filler(s, size)
	require.InDelta(p.tb, p.rules.RowLimit-left, stateSize(s), 3)
	p.keepState(s)
}

// size is that of the row as it is written: with its parts, their names and its deadline.
func (p *play) size() int {
	p.tb.Helper()
	s, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(p.tb, err)
	return len(p.row) + partsSize(s)
}

// recordOf is a record that is not delivered yet.
func (p *play) recordOf(topic, value string) event {
	p.tb.Helper()
	e, ok := p.event(topic, []byte(value))
	require.True(p.tb, ok, value)
	return e
}

func (p *play) knowsRequest(id string) bool {
	s := &transition{session: session{row: p.state(), now: p.now, rules: p.rules}}
	return s.knowsRequest(id)
}

func TestOpeningATurnForgetsOlderMemoriesButNoRequest(t *testing.T) {
	p := newPlay(t, smallRow)
	p.fill(500, 100)
	require.Len(t, emitted[enriched](p.send("message-input", requestMessage("hi", "new"))), 1)
	for i := range 500 {
		id := fmt.Sprint("r", i)
		require.True(t, p.knowsRequest(id), id)
		require.Equal(t, []string{reasonSameRequest}, p.send("message-input", requestMessage("again", id)).letters())
	}
	s := p.state()
	require.Less(t, len(s.Causes)+len(s.Calls), 2*500*memorySize)
	require.GreaterOrEqual(t, len(s.Causes), recentMemories*memorySize)
}

// A turn that has no room is not begun: its model is not asked, and its message is told.
func TestTurnWithoutRoomIsNotOpened(t *testing.T) {
	for _, left := range []int{0, 60, 120, 300, 500} {
		p := newPlay(t, smallRow)
		p.fillForGood(recentMemories, left)
		p.rules.RememberFor = time.Hour
		es := p.send("message-input", requestMessage("hi", strings.Repeat("n", 1000)))
		require.Empty(t, emitted[enriched](es))
		require.Equal(t, topics.CodeTooLarge, the[answered](t, es).Error.Code, left)
		for i := range recentMemories {
			require.True(t, p.knowsRequest(fmt.Sprint("r", i)))
		}
	}
}

// Where there is no room even for the memory of a message it is answered all the same, on the route of its request.
func TestMessageThatCannotBeRememberedIsAnsweredOnItsRoute(t *testing.T) {
	p := newPlay(t, smallRow)
	p.fillForGood(recentMemories, 30)
	s := p.state()
	s.Requests, s.Calls = append(s.Requests, s.Calls...), nil // nothing is left to give up
	s.Routes = append(s.Routes, &turnrow.ReplyRoute{RequestId: ptr("n"), ReplyTo: []byte(`{}`), ExpiresMs: p.now.Add(time.Hour).UnixMilli()})
	p.keepState(s)
	before := p.row
	es := p.send("message-input", requestMessage("hi", "n"))
	require.Equal(t, []string{reasonRowSize}, es.letters())
	o := the[answered](t, es)
	require.Equal(t, topics.CodeTooLarge, o.Error.Code)
	require.Equal(t, `{}`, string(o.ReplyTo))
	require.Equal(t, before, p.row)
}

func TestMessageThatWouldWaitDisplacesNoOther(t *testing.T) {
	p := newPlay(t, smallRow)
	p.ask("open")
	for range 2 {
		require.Empty(t, p.send("message-input", message(strings.Repeat("w", 20<<10))))
	}
	require.Empty(t, p.result("early", strings.Repeat("r", 10<<10)))
	es := p.send("message-input", message(strings.Repeat("w", 40<<10)))
	require.Equal(t, topics.CodeQueueFull, the[answered](t, es).Error.Code)
	require.Empty(t, es.letters(), "a held result would not have made enough room")
	require.Len(t, p.state().Waiting, 2)
	require.Len(t, p.state().Turn.Held, 1)

	es = p.send("message-input", message(strings.Repeat("w", 15<<10)))
	require.Equal(t, []string{reasonNoRoom}, es.letters())
	require.Len(t, p.state().Waiting, 3)
}

// An answer that fits in no way costs nobody else anything.
func TestNothingIsGivenUpIfTheRowStillWouldNotFit(t *testing.T) {
	p := newPlay(t, smallRow)
	asked := p.ask("open")
	p.send("message-input", message("waits"))
	es := p.respond(asked, saying(strings.Repeat("a", 70<<10)))
	ends := emitted[answered](es)
	require.Len(t, ends, 1)
	require.Equal(t, topics.CodeTooLarge, ends[0].Error.Code)
	require.Len(t, emitted[enriched](es), 1, "the next message has its turn")
}

func TestEachKindIsGivenUpBeforeTheNext(t *testing.T) {
	for _, c := range []struct {
		answer                        int
		memories, held, waits, goesOn bool
	}{
		{20 << 10, true, true, true, true},
		{32 << 10, false, true, true, true},
		{40 << 10, false, false, true, true},
		{50 << 10, false, false, false, true},
		{63 << 10, false, true, true, false}, // what waits would not make enough room: the turn ends
	} {
		t.Run(fmt.Sprint(c.answer), func(t *testing.T) {
			p := newPlay(t, smallRow)
			asked := p.ask("open")
			s := p.state()
			for i := range 500 {
				s.Causes = remember(s.Causes, digests.Of(ofCause, fmt.Sprint(i)), p.now, time.Hour, 1000)
			}
			p.keepState(s)
			p.send("message-input", message(strings.Repeat("w", 12<<10)))
			p.result("early", strings.Repeat("r", 10<<10))
			es := p.respond(asked, `"last_input_response":[{"role":"assistant","content":"`+strings.Repeat("a", c.answer)+`"}],`+
				`"tool_uses":[{"tool_use_id":"t1","name":"look"}]`)
			answers := emitted[answered](es)
			if !c.goesOn {
				require.Equal(t, topics.CodeTooLarge, answers[0].Error.Code)
				require.Empty(t, emitted[called](es))
				require.Len(t, emitted[enriched](es), 1, "the waiting message has its turn")
				return
			}
			require.Len(t, emitted[called](es), 1)
			s = p.state()
			if c.held { // else the bytes of forgotten memories may still have room in their part
				require.Equal(t, c.memories, len(s.Causes) >= 500*memorySize, "memories")
			}
			require.Equal(t, c.held, len(s.Turn.Held) == 1, "held")
			require.Equal(t, c.waits, len(s.Waiting) == 1, "waiting")
			require.GreaterOrEqual(t, len(s.Causes), recentMemories*memorySize)
		})
	}
}

// The names of parts, and the bytes that parts still have of what was forgotten, count in the size of the row.
func TestPartsOfForgottenMemoriesMakeRoom(t *testing.T) {
	p := newPlay(t, smallRow)
	for i := range 1500 {
		p.now = p.now.Add(time.Millisecond)
		p.send("session-control", fmt.Sprintf(`{"action":"cancel","request_id":"none%d"}`, i))
	}
	asked := p.ask("one")
	before, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(t, err)
	require.NotEmpty(t, before.CausesParts)
	out := p.respond(asked, saying(strings.Repeat("a", 50<<10)))
	require.Nil(t, the[answered](t, out).Error)
	require.Len(t, emitted[enriched](p.send("message-input", message("two"))), 1)
}

// A deadline of a row that is over a lowered limit is done once.
func TestDeadlineOfARowOverALoweredLimitFiresOnce(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying(strings.Repeat("x", 500<<10)))
	p.send("message-input", requestMessage("two", "r2"))
	p.send("message-input", message("three"))
	found := p.size()
	p.rules.RowLimit = 200 << 10
	ends := emitted[answered](p.wait(p.rules.ThinkTimeout))
	require.Len(t, ends, 1)
	require.Equal(t, topics.CodeThinkTimeout, ends[0].Error.Code)
	require.Less(t, p.size(), found)
	require.NotNil(t, p.state().Turn, "the next message has its turn, without the history")
	require.Empty(t, p.state().History)
	require.True(t, p.knowsRequest("r2"))
	at, ok := rows.Deadline(p.row)
	require.False(t, ok && at <= p.now.UnixMilli(), "nothing is due")
}

// A session whose history is over a lowered limit goes on once its model has shortened it.
func TestRowOverALoweredLimitIsWrittenWhereItShrinks(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying(strings.Repeat("x", 500<<10)))
	asked := p.ask("two")
	p.rules.RowLimit = 200 << 10
	asked.History = nil
	require.Nil(t, the[answered](t, p.respond(asked, `"compaction":true,`+saying("short"))).Error)
	require.Len(t, emitted[enriched](p.send("message-input", message("three"))), 1)
}

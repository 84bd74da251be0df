package fold

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// scriptOf draws a turn's events, valid or not.
func scriptOf(t *rapid.T) []string {
	id := rapid.SampledFrom([]string{"a", "b"})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		text := rapid.SampledFrom([]string{"x", "Hello", "a longer text with \"quotes\" and 🙂", string(make([]byte, 90))})
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			return startEvent(id.Draw(t, "id"))
		case 1, 2, 3, 4:
			quoted, _ := jsontext.AppendQuote(nil, text.Draw(t, "text"))
			return fmt.Sprintf(`{"type":"message_delta","data":{"id":%q,"delta":%s}}`, id.Draw(t, "id"), quoted)
		case 5:
			return fmt.Sprintf(`{"type":"message_end","data":{"id":%q}}`, id.Draw(t, "id"))
		case 6:
			return fmt.Sprintf(`{"type":"tool_call","data":{"id":%q,"name":"n","input":{"n":%d}}}`, id.Draw(t, "id"),
				rapid.IntRange(0, 1000).Draw(t, "n"))
		case 7:
			return fmt.Sprintf(`{"type":"tool_result","id":%q,"output":[1.50],"isError":true}`, id.Draw(t, "id"))
		case 8:
			return `{"type":"interaction_request","data":{"id":"q","payload":{"toolName":"n"}}}`
		default:
			return rapid.SampledFrom([]string{
				`{"type":"thought","data":{"text":"hm"}}`, `{"type":"usage","data":{"input":3}}`,
				`{"type":"message","data":{"text":null}}`, `{"type":"message_delta","data":{"id":"a","delta":1}}`, plainDone,
			}).Draw(t, "odd")
		}
	}), 0, 60).Draw(t, "script")
}

// foldedDirectly returns package folder's batch of the events.
func foldedDirectly(t tester, events []string, end folder.End) string {
	t.Helper()
	f := folder.NewFolder()
	for _, raw := range events {
		e, err := folder.DecodeEvent(topics.Raw(raw))
		require.NoError(t, err)
		require.NoError(t, f.Add(e))
	}
	b, err := f.Batch(end)
	require.NoError(t, err)
	return string(b.AppendRecord(nil))
}

// foldedByGroup returns the same fields of a batch message.
func foldedByGroup(b topics.BatchMessage) string {
	failure := "null"
	if b.Error != nil {
		quoted, _ := jsontext.AppendQuote(nil, *b.Error)
		failure = string(quoted)
	}
	return fmt.Sprintf(`{"messages":%s,"stop_reason":%s,"pending_interaction":%s,"state":%q,"pending_interactions":%s,`+
		`"tool_results":%s,"error":%s,"usage":%s,"malformed_events":%d}`, b.Messages, b.StopReason, b.PendingInteraction,
		b.State, b.PendingInteractions, b.ToolResults, failure, b.Usage, b.MalformedEvents)
}

// shuffled draws an order of the records with repeats, in which each is at most a given distance from its position.
func shuffled(t *rapid.T, records []input, distance int) []input {
	order := make([]int, len(records))
	place := make([]int, len(records))
	for i := range order {
		order[i], place[i] = i, i+rapid.IntRange(0, distance).Draw(t, "displacement")
	}
	slices.SortStableFunc(order, func(a, b int) int { return place[a] - place[b] })
	var out []input
	for _, i := range order {
		out = append(out, records[i])
		if rapid.IntRange(0, 3).Draw(t, "repeated") == 0 {
			out = append(out, records[rapid.IntRange(0, i).Draw(t, "which")])
		}
	}
	return out
}

// Shuffled within the window and with repeats, a turn folds to the same batch as in order. With a missing record, the batch
// has the events before it and the reason gap.
func TestGroupBatchIsTheFoldOfTheStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := scriptOf(t)
		records := make([]input, len(events))
		for i, e := range events {
			records[i] = eventRecord(t, "t", int64(i+1), e)
		}
		lost := rapid.SampledFrom([]int{-1, -1, rapid.IntRange(0, max(len(events)-1, 0)).Draw(t, "lost")}).Draw(t, "loses")
		p := newPlay(t)
		p.whole = rapid.Bool().Draw(t, "without parts")
		for _, in := range shuffled(t, records, 8) {
			if lost >= 0 && in.(eventReceived).Event.Seq == int64(lost+1) {
				continue
			}
			p.handle(in)
		}
		p.handle(terminalRecord(t, "t", int64(len(events)+1), okResult("end_turn")))
		want := foldedDirectly(t, events, folder.End{StopReason: topics.Raw(`"end_turn"`), State: folder.Complete})
		if lost >= 0 && len(events) > 0 {
			want = foldedDirectly(t, events[:lost], folder.End{State: folder.Failed})
		}
		require.Equal(t, want, foldedByGroup(p.only("t")))
		row := p.row
		for _, in := range p.past {
			require.Empty(t, effects(p.handle(in)).batches(), "nothing of it comes again")
			require.Equal(t, row, p.row)
		}
		p.settle()
	})
}

// For any order of records and any crash, each turn has one batch: the fold of a prefix of its last attempt, and of all its
// events if no record was lost.
func TestEveryTurnHasExactlyOneBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlay(t, func(c *Config) { c.OpenTurns, c.WindowCount = 3, 4 })
		p.whole = rapid.Bool().Draw(t, "without parts")
		scripts := map[string][]string{}
		next := map[string]int{}
		names := []string{"a", "b", "c", "d"}
		for _, n := range names {
			scripts[n] = scriptOf(t)
		}
		input := func(name string, seq int) input {
			if seq > len(scripts[name]) {
				return terminalRecord(t, name, int64(seq), okResult("end_turn"))
			}
			return eventRecord(t, name, int64(seq), scripts[name][seq-1])
		}
		t.Repeat(map[string]func(*rapid.T){
			"next": func(t *rapid.T) {
				name := rapid.SampledFrom(names).Draw(t, "turn")
				for range rapid.IntRange(1, 10).Draw(t, "records") {
					next[name]++
					in := input(name, next[name])
					if rapid.IntRange(0, 5).Draw(t, "crash") == 0 {
						p.crash(in, rapid.IntRange(0, 6).Draw(t, "effects"))
					}
					p.handle(in)
				}
			},
			"repeat": func(t *rapid.T) {
				if len(p.past) > 0 {
					p.handle(rapid.SampledFrom(p.past).Draw(t, "input"))
				}
			},
			"lose": func(t *rapid.T) {
				next[rapid.SampledFrom(names).Draw(t, "turn")]++
			},
			"wait": func(t *rapid.T) {
				// A deadline whose callback is interrupted by a crash fires again at the same time.
				if at, ok := rows.Deadline(p.row); ok && len(p.state().Open) > 0 && rapid.Bool().Draw(t, "crash") {
					p.now = time.UnixMilli(max(at, p.now.UnixMilli())).UTC()
					p.crash(deadlineReached{}, rapid.IntRange(0, 3).Draw(t, "effects"))
					p.handle(deadlineReached{})
				}
				p.until(rapid.SampledFrom([]time.Duration{time.Millisecond, 4 * time.Second, 31 * time.Second}).Draw(t, "time"))
			},
		})
		p.until(time.Hour)
		for id, list := range p.batches {
			for _, b := range list {
				require.Equal(t, foldedByGroup(list[0]), foldedByGroup(b), "%s: a repeat is the same", id)
			}
			b := list[0]
			prefix := scripts[b.TurnID][:min(int(b.Seq), len(scripts[b.TurnID]))]
			if int(b.Seq) > len(prefix) {
				require.Equal(t, foldedDirectly(t, prefix, folder.End{StopReason: topics.Raw(`"end_turn"`), State: folder.Complete}),
					foldedByGroup(b))
				continue
			}
			// The end of other turns is not in their events.
			end := folder.End{State: folder.State(b.State)}
			require.Equal(t, foldedDirectly(t, prefix, end), foldedByGroup(b))
		}
		for _, name := range names {
			if p.saw(name) {
				require.Contains(t, p.batches, recordID("s", name, "batch"))
			}
		}
	})
}

// saw reports whether any record of a turn was received.
func (p *play) saw(turn string) bool {
	return slices.ContainsFunc(p.past, func(in input) bool {
		a, ok := in.(eventReceived)
		return ok && a.Event.TurnID == turn
	})
}

// The bytes that a turn writes to the table grow linearly with its text, and the row stays small.
func TestCostOfATurnIsLinear(t *testing.T) {
	cost := func(n int) (written, text int) {
		p := newPlay(t)
		p.handle(eventRecord(t, "t", 1, startEvent("m")))
		for i := range n {
			p.handle(eventRecord(t, "t", int64(i+2), deltaEvent("m", "a token of 32 bytes, not a short")))
			require.Less(t, len(p.row), tailLimit+200)
		}
		p.handle(terminalRecord(t, "t", int64(n+2), okResult("end_turn")))
		return p.written, n * 32
	}
	small, _ := cost(500)
	large, text := cost(5000)
	require.InEpsilon(t, 10, float64(large)/float64(small), 0.05)
	t.Logf("5000 deltas of 32 bytes, a row written with each: %.1f times the text", float64(large)/float64(text))
}

// The row is also small if the records of several turns alternate.
func TestAlternatingTurnsReferToPartsInFewBytes(t *testing.T) {
	p := newPlay(t)
	for i := range 2000 {
		for _, turn := range []string{"a", "b", "c"} {
			p.handle(eventRecord(t, turn, int64(i+1),
				`{"type":"message","data":{"text":"0123456789012345678901234567890123456789"}}`))
		}
	}
	for _, turn := range p.state().Open {
		require.Less(t, len(turn.Parts), 20)
	}
	p.settle()
}

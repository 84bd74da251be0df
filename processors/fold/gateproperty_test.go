package fold

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// gatedTurn is a runner that asks, pauses, and continues when all its gates have an outcome.
type gatedTurn struct {
	name    string
	events  []string // of the attempt, with "" for the terminal record of a pause
	asked   int
	waiting []int // interaction requests without an outcome
	ended   bool
}

func (r *gatedTurn) record(t tester, seq int) input {
	if e := r.events[seq-1]; e != "" {
		return eventRecord(t, r.name, int64(seq), e)
	}
	return terminalRecord(t, r.name, int64(seq), okResult("paused"))
}

// For any order of events, outcomes, redeliveries and crashes, each turn has one batch, no batch of a paused turn is complete,
// and each gate ends: by its outcome or by its withdrawal.
func TestEveryPausedTurnHasExactlyOneBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlay(t, gating, func(c *Config) { c.RememberFor = 100 * 24 * time.Hour })
		p.whole = rapid.Bool().Draw(t, "without parts")
		turns := []*gatedTurn{{name: "a"}, {name: "b"}}
		decided := map[string]bool{}
		cause := 0
		closed := func(name string) bool { return len(p.batches[recordID("s", name, "batch")]) > 0 }
		// deliver handles an input, perhaps after a crash in which only some of its effects were executed.
		deliver := func(t *rapid.T, in input) {
			if rapid.IntRange(0, 4).Draw(t, "crash") == 0 {
				p.crash(in, rapid.IntRange(0, 6).Draw(t, "effects"))
				// Gates that were requested before the crash can have an outcome already. A batch that was written before it
				// is written again, and could then differ.
				for _, id := range p.opened() {
					g := p.gates[id]
					if turn, _, _, _ := folder.ParseGateCall(g.CallID); closed(turn) {
						continue
					}
					if !decided[id] && rapid.IntRange(0, 2).Draw(t, "early") == 0 {
						turn, attempt, n, _ := folder.ParseGateCall(g.CallID)
						decided[id] = true
						p.handle(outcomeRecord(t, turn, attempt, n, topics.GateApproved))
					}
				}
			}
			p.handle(in)
		}
		t.Repeat(map[string]func(*rapid.T){
			"run": func(t *rapid.T) {
				r := rapid.SampledFrom(turns).Draw(t, "turn")
				waits := slices.ContainsFunc(r.waiting, func(n int) bool { return !decided[gateID(r.name, 1, n)] })
				if r.ended || waits && rapid.IntRange(0, 9).Draw(t, "patient") > 0 {
					return
				}
				from := len(r.events)
				for _, n := range r.waiting {
					if rapid.Bool().Draw(t, "answers") {
						r.events = append(r.events, answersTo(fmt.Sprint("r", n)))
					}
				}
				r.waiting = nil
				r.events = append(r.events, `{"type":"message","data":{"text":"x"}}`)
				if rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
					for seq := from + 1; seq <= len(r.events); seq++ {
						deliver(t, r.record(t, seq))
					}
					r.ended = true
					deliver(t, terminalRecord(t, r.name, int64(len(r.events)+1), okResult("end_turn")))
					return
				}
				for range rapid.IntRange(1, 3).Draw(t, "asks") {
					r.events = append(r.events, asks(fmt.Sprint("r", r.asked), fmt.Sprint("c", r.asked)))
					r.waiting = append(r.waiting, r.asked)
					r.asked++
				}
				pause := rapid.SampledFrom([][]string{{doneWith("paused")}, {doneWith("paused"), ""}, {""}, {plainDone, ""}}).Draw(t, "pause")
				r.events = append(r.events, pause...)
				order := make([]int, 0, len(r.events)-from)
				for seq := from + 1; seq <= len(r.events); seq++ {
					order = append(order, seq)
				}
				if rapid.Bool().Draw(t, "shuffled") {
					order = rapid.Permutation(order).Draw(t, "order")
				}
				for _, seq := range order {
					deliver(t, r.record(t, seq))
				}
			},
			"decide": func(t *rapid.T) {
				open := slices.DeleteFunc(p.opened(), func(id string) bool { return decided[id] })
				if len(open) == 0 {
					return
				}
				id := rapid.SampledFrom(open).Draw(t, "gate")
				turn, attempt, n, ok := folder.ParseGateCall(p.gates[id].CallID)
				require.True(t, ok)
				decided[id] = true
				deliver(t, outcomeRecord(t, turn, attempt, n, rapid.SampledFrom([]topics.GateStatus{
					topics.GateApproved, topics.GateDenied, topics.GateTimedOut,
				}).Draw(t, "status")))
			},
			"repeat": func(t *rapid.T) {
				if len(p.past) > 0 {
					p.handle(rapid.SampledFrom(p.past).Draw(t, "input"))
				}
			},
			"cancel": func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "really") > 0 {
					return
				}
				cause++
				action := rapid.SampledFrom([]string{topics.ActionCancel, topics.ActionPurge}).Draw(t, "action")
				deliver(t, controlReceived{record(fmt.Sprint(cause)), topics.Control{Action: action}})
			},
			"wait": func(t *rapid.T) {
				p.until(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Minute, 3 * time.Hour}).Draw(t, "time"))
				for _, open := range p.state().GetOpen() {
					for _, n := range open.Gates {
						require.False(t, closed(open.Id), "gate %d of %s", n, open.Id)
					}
				}
			},
			"": func(t *rapid.T) {
				for _, r := range turns {
					for _, b := range p.batches[recordID("s", r.name, "batch")] {
						require.False(t, b.State == topics.BatchComplete && string(b.StopReason) == stopPaused, "a pause is not an end")
						require.Equal(t, foldedByGroup(p.batches[recordID("s", r.name, "batch")][0]), foldedByGroup(b), "a repeat is the same")
					}
				}
			},
		})
		p.until(31 * 24 * time.Hour)
		for _, r := range turns {
			if p.saw(r.name) {
				require.NotEmpty(t, p.batches[recordID("s", r.name, "batch")], r.name)
			}
		}
		for id, g := range p.gates {
			require.True(t, decided[id] || p.withdrawn[id] != "", "gate %s of %s", id, g.CallID)
		}
		if p.row != nil {
			at, ok := rows.Deadline(p.row)
			require.True(t, ok)
			require.Positive(t, at)
		}
	})
}

// Without crashes and lost records, a turn with pauses has the batch of all its events.
func TestBatchOfATurnWithPausesIsTheFoldOfItsEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlay(t, gating)
		var events []string
		seq, asked := int64(0), 0
		send := func(e string) {
			seq++
			events = append(events, e)
			p.handle(eventRecord(t, "t", seq, e))
		}
		for range rapid.IntRange(0, 4).Draw(t, "pauses") {
			for _, e := range scriptOf(t) {
				if e != plainDone { // a second done event would end the turn
					send(e)
				}
			}
			send(asks(fmt.Sprint("r", asked), fmt.Sprint("c", asked)))
			send(doneWith("paused"))
			if rapid.Bool().Draw(t, "terminal record") {
				seq++
				p.handle(terminalRecord(t, "t", seq, okResult("paused")))
			}
			for id, g := range p.gates {
				turn, attempt, n, _ := folder.ParseGateCall(g.CallID)
				require.Equal(t, id, gateID(turn, attempt, n))
				p.handle(outcomeRecord(t, turn, attempt, n, topics.GateApproved))
			}
			send(answersTo(fmt.Sprint("r", asked)))
			asked++
		}
		p.handle(terminalRecord(t, "t", seq+1, okResult("end_turn")))
		b := p.only("t")
		require.Equal(t, "complete", outcomeOf(b))
		f := folder.NewFolder()
		for _, raw := range events {
			e, err := folder.DecodeEvent(topics.Raw(raw))
			require.NoError(t, err)
			require.NoError(t, f.Add(e))
		}
		end := folder.End{StopReason: topics.Raw(`"end_turn"`), State: folder.Complete}
		for _, a := range f.Interactions() {
			if slices.Contains(gateNumbers(p), a.Index) {
				end.Decided = append(end.Decided, a.Index)
			}
		}
		want, err := f.Batch(end)
		require.NoError(t, err)
		require.Equal(t, string(want.AppendRecord(nil)), foldedByGroup(b))
	})
}

// gateNumbers returns the numbers of the interaction requests with a gate.
func gateNumbers(p *play) (list []int) {
	for _, g := range p.gates {
		if _, _, n, ok := folder.ParseGateCall(g.CallID); ok {
			list = append(list, n)
		}
	}
	return list
}

package websocket

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

func renderedTurn(all []processors.Inbound) (records []rendered) {
	catalog, err := topics.For("pilot")
	if err != nil {
		panic(err)
	}
	names := feedsOf(catalog)
	for _, r := range all {
		records = append(records, render(feed(slices.Index(names[:], r.Topic)), "s", r))
	}
	return records
}

// drawOrder draws an order of arrival that keeps the order within each topic.
func drawOrder(t *rapid.T, causal []rendered) (arrivals []rendered) {
	var queues [feedCount][]rendered
	for _, r := range causal {
		queues[r.feed] = append(queues[r.feed], r)
	}
	for range causal {
		var open []feed
		for f, queue := range queues {
			if len(queue) > 0 {
				open = append(open, feed(f))
			}
		}
		f := rapid.SampledFrom(open).Draw(t, "feed")
		arrivals, queues[f] = append(arrivals, queues[f][0]), queues[f][1:]
	}
	return arrivals
}

// spot is where a record is, without its contents.
type spot struct {
	feed   feed
	offset int64
}

func spotOf(r rendered) spot { return spot{r.feed, r.offset} }

func drain(w *waiting, now time.Time) (sent []rendered) {
	for r, ok := w.next(now, waitingLimits); ok; r, ok = w.next(now, waitingLimits) {
		sent = append(sent, r)
	}
	return sent
}

// follows requires the order of the records of one turn that causes give. Records of one kind and step have no order.
func followsCauses(t require.TestingT, records []rendered, sent []rendered) {
	at := map[spot]int{}
	for i, r := range sent {
		at[spotOf(r)] = i
	}
	for i, before := range records {
		for _, after := range records[i+1:] {
			a, aSent := at[spotOf(before)]
			b, bSent := at[spotOf(after)]
			call := func(f feed) bool { return f == feedToolUse || f == feedToolResult }
			another := call(before.feed) && call(after.feed) && callIn(before) != callIn(after)
			if before.feed == after.feed && a < b || another {
				continue
			}
			if aSent && bSent {
				require.Less(t, a, b, "%v before %v", spotOf(before), spotOf(after))
			}
		}
	}
}

// callIn returns the tool_use_id of a call or a result.
func callIn(r rendered) string {
	value, _ := topics.Lookup(topics.Raw(string(r.event)+"}"), "data")
	value, _ = topics.Lookup(value, "value")
	return callOf(value)
}

func TestAnyOrderOfArrivalIsSentInCausalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.Bool().Draw(t, "the workers write IDs")
		steps, calls := rapid.IntRange(0, 3).Draw(t, "steps"), rapid.IntRange(1, 4).Draw(t, "calls")
		same := own && rapid.Bool().Draw(t, "the model repeats its tool_use_ids")
		var w waiting
		for turn := range rapid.IntRange(1, 3).Draw(t, "turns") {
			causal := renderedTurn(turnRecords(turn, steps, calls, own, func(step, call int) string {
				if same {
					return fmt.Sprint(call)
				}
				return fmt.Sprintf("%d-%d-%d", turn, step, call)
			}))
			var sent []rendered
			for _, r := range drawOrder(t, causal) {
				w.add(r, noon)
				sent = append(sent, drain(&w, noon)...)
			}
			require.Equal(t, len(causal), len(sent), "each record is sent once, without waiting for the time")
			followsCauses(t, causal, sent)
		}
		require.Zero(t, w.count)
		require.Zero(t, w.bytes)
		require.Empty(t, w.facts)
	})
}

// Any records may be missing, and the turn of the rest may have begun before the session was followed.
func TestRecordWithoutItsCauseIsSentAfterAWhile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.Bool().Draw(t, "own")
		causal := renderedTurn(turnRecords(1, 2, 3, own, func(step, call int) string { return fmt.Sprintf("%d-%d", step, call) }))
		causal = slices.DeleteFunc(causal, func(rendered) bool { return rapid.IntRange(0, 3).Draw(t, "missing") == 0 })
		var w waiting
		now := noon
		arrived, added := map[spot]time.Time{}, drawOrder(t, causal)
		var sent []rendered
		take := func() {
			for _, r := range drain(&w, now) {
				require.LessOrEqual(t, now.Sub(arrived[spotOf(r)]), causeWait)
				sent = append(sent, r)
			}
		}
		for _, r := range added {
			for range rapid.IntRange(0, 3).Draw(t, "ticks") {
				now = now.Add(causeTick)
				take()
			}
			arrived[spotOf(r)] = now
			w.add(r, now)
			take()
		}
		for range causeWait / causeTick {
			now = now.Add(causeTick)
			take()
		}
		var want, got []spot
		for _, r := range added {
			want = append(want, spotOf(r))
		}
		var next [feedCount]int64
		for _, r := range sent {
			got = append(got, spotOf(r))
			require.Greater(t, r.offset, next[r.feed], "a feed keeps its order")
			next[r.feed] = r.offset
		}
		require.ElementsMatch(t, want, got)
	})
}

func TestReplayIsInCausalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		causal := renderedTurn(turnRecords(1, 2, 3, true, func(_, call int) string { return fmt.Sprint(call) }))
		from := rapid.IntRange(0, len(causal)-1).Draw(t, "from")
		causal = causal[from:]
		skew := rapid.SliceOfN(rapid.IntRange(-5, 5), len(causal), len(causal)).Draw(t, "skew")
		var w waiting
		for f := range feedCount {
			for i, r := range causal {
				if r.feed == f {
					r.at = noon.Add(time.Duration(i+skew[i]) * time.Millisecond)
					w.add(r, r.at)
				}
			}
		}
		var sent []rendered
		for r, ok := w.nextByTime(); ok; r, ok = w.nextByTime() {
			sent = append(sent, r)
		}
		require.Equal(t, len(causal), len(sent))
		followsCauses(t, causal, sent)
	})
}

// A model worker and tools in other languages write no IDs: their records are matched by tool_use_id.
func TestRecordsWithoutIDAreMatchedByCall(t *testing.T) {
	causal := renderedTurn(turnRecords(1, 1, 2, false, func(_, call int) string { return fmt.Sprint("toolu_", call) }))
	// 0 message, 1 enriched, 2 think, 3 4 tool-use, 5 6 results, 7 all-complete, 8 message, 9 enriched, 10 think, 11 output
	for name, order := range map[string][]int{
		"calls before their response":     {0, 1, 3, 2, 4, 5, 6, 7, 8, 9, 10, 11},
		"all-complete before its results": {0, 1, 2, 3, 4, 7, 8, 9, 5, 6, 10, 11},
		"output before the response":      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 10},
		"results before their calls":      {0, 1, 2, 5, 6, 3, 4, 7, 8, 9, 10, 11},
		"tool message before the calls":   {0, 1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11},
		"response before its step":        {0, 2, 3, 1, 4, 5, 6, 7, 8, 10, 9, 11},
		"step before its message":         {1, 2, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11},
	} {
		var w waiting
		var sent []rendered
		for _, i := range order {
			w.add(causal[i], noon)
			sent = append(sent, drain(&w, noon)...)
		}
		require.Equal(t, len(causal), len(sent), name)
		followsCauses(t, causal, sent)
	}
}

// A response whose message a worker has shortened waits only if no step is open.
func TestResponseWithAnotherMessageIsSentWithItsStep(t *testing.T) {
	all := turnRecords(1, 0, 0, false, nil)
	all[2].Value = []byte(`{"last_input_message":{"role":"user","timestamp":"another"},"end_turn":true}`)
	causal := renderedTurn(all)
	for _, order := range [][]int{{0, 1, 2, 3}, {0, 2, 3, 1}} {
		var w waiting
		var sent []rendered
		for _, i := range order {
			w.add(causal[i], noon)
			sent = append(sent, drain(&w, noon)...)
		}
		require.Len(t, sent, len(causal))
		followsCauses(t, causal, sent)
	}
}

// A tool in another language that fails writes its call to tool-use-dlq, with a reason. A call that no tool can be given is there without.
func TestFailedCallCompletesItsStep(t *testing.T) {
	reason := func(r *processors.Inbound) {
		r.Headers = append(r.Headers, processors.Header{Name: topics.HeaderErrorReason, Value: []byte("failed")})
	}
	complete := record("tool-use-all-complete", "s", 1, `{"results":[{"tool_use_id":"c1"},{"tool_use_id":"c2"}]}`, withID(turnOne+"/1/all-complete/0"))
	failed := record("tool-use-dlq", "s", 1, `{"tool_use_id":"c1"}`, reason)
	rejected := record("tool-use-dlq", "s", 2, `{"tool_use_id":"c2","name":""}`)
	call := record("tool-use", "s", 1, `{"tool_use_id":"c1"}`)
	var w waiting
	var sent []feed
	for _, r := range renderedTurn([]processors.Inbound{complete, failed, rejected, call}) {
		w.add(r, noon)
		for _, r := range drain(&w, noon) {
			sent = append(sent, r.feed)
		}
	}
	require.Equal(t, []feed{feedToolUse, feedToolUseDLQ, feedToolUseDLQ, feedAllComplete}, sent)
	require.NotContains(t, w.facts, fact{0, dispatched("c1")})
}

// A step whose results come from workers of FlightDeck, which write no IDs, waits for a call at most as long as for any cause.
func TestResultWithoutItsCallIsSentAfterAWhile(t *testing.T) {
	var w waiting
	for _, r := range renderedTurn([]processors.Inbound{record("tool-use-result", "s", 1, `{"tool_use_id":"late"}`)}) {
		w.add(r, noon)
	}
	require.Empty(t, drain(&w, noon.Add(causeWait-1)))
	require.Len(t, drain(&w, noon.Add(causeWait)), 1)
}

func TestErrorOutputDoesNotWaitForTheModel(t *testing.T) {
	var w waiting
	all := turnRecords(1, 0, 0, true, nil)
	failed := record("message-output", "s", 1, `{"content":"","error":{"code":"timeout"}}`, withID(fmt.Sprintf("%032x/0/output/0", 1)))
	for _, r := range renderedTurn([]processors.Inbound{all[0], all[1], failed}) {
		w.add(r, noon)
	}
	require.Len(t, drain(&w, noon), 3)
}

// A record written again after a crash does not wait for facts that its turn has left behind.
func TestRepeatedRecordDoesNotWait(t *testing.T) {
	for _, own := range []bool{true, false} {
		all := renderedTurn(turnRecords(1, 1, 1, own, func(int, int) string { return "toolu_1" }))
		for n := range all {
			var w waiting
			for _, r := range all[:n+1] {
				w.add(r, noon)
			}
			require.Equal(t, n+1, len(drain(&w, noon)))
			facts := slices.Clone(w.facts)
			repeats := 0
			for _, r := range all[:n+1] {
				if r.cause.turn != 0 {
					w.add(r, noon)
					repeats++
				}
			}
			require.Equal(t, repeats, len(drain(&w, noon)), "repeats after record %d", n)
			require.Equal(t, facts, w.facts, "a repeat opens nothing for the next step, which may use its tool_use_id")
		}
	}
}

func TestWaitingRecordsAreBounded(t *testing.T) {
	var w waiting
	sent := 0
	add := func(value string) {
		for _, r := range renderedTurn([]processors.Inbound{
			record("tool-use-all-complete", "s", 1, value, withID(fmt.Sprintf("%032x/1/all-complete/0", sent+w.count))),
		}) {
			w.add(r, noon)
		}
		sent += len(drain(&w, noon))
	}
	for range 100 {
		add(`{"results":[{"tool_use_id":"never"}]}`)
		require.LessOrEqual(t, w.count, waitingLimits.Frames)
	}
	require.Equal(t, 100-waitingLimits.Frames, sent)
	add(fmt.Sprintf(`{"results":[{"tool_use_id":"never"}],"x":%q}`, make([]byte, 1<<20)))
	require.LessOrEqual(t, w.bytes, waitingLimits.Bytes)
	for i := range 1000 {
		w.take(func() feed {
			w.add(rendered{feed: feedThink, cause: causality{turn: name(i + 1), gives: []name{name(i + 1)}}}, noon)
			return feedThink
		}())
	}
	require.Len(t, w.facts, maxFacts)
}

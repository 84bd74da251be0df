package turn

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/topics"
)

// compactor has a compactor and room for four exchanges, of which one stays after a summary.
func compactor(r *rules) {
	r.HistoryLimit.Messages = 8
	r.Compaction = &Compaction{Timeout: time.Minute, Keep: 1}
}

// overLimit is a session whose next turn asks the compactor.
func overLimit(t tb, change ...func(*rules)) *play {
	p := newPlay(t, append([]func(*rules){compactor}, change...)...)
	for n := range 5 {
		p.exchange("q"+strconv.Itoa(n), "a"+strconv.Itoa(n))
	}
	return p
}

func summarized(r compactionRequested, more string) string {
	return fmt.Sprintf(`{"session_id":"s1","compaction_id":%q,%s}`, r.CompactionID, more)
}

// continues checks that the prompt of the open turn is before, followed by the two newest messages.
func continues(t *testing.T, es effects, before string) enriched {
	t.Helper()
	asked := the[enriched](t, es)
	require.True(t, strings.HasPrefix(string(asked.History), before), "%s", asked.History)
	require.Contains(t, string(asked.History), `"a4"`)
	require.NotContains(t, string(asked.History), `"a3"`)
	require.Contains(t, string(asked.LatestInput), `"now"`)
	return asked
}

const summaryFront = `[{"session_id":"s1","user_id":"mira","role":"assistant","content":"[Conversation Summary]\nThe story.",`

func TestATurnOverTheLimitContinuesWithASummary(t *testing.T) {
	p := overLimit(t)
	es := p.send("message-input", message("now"))
	require.Empty(t, emitted[enriched](es), "the model is not asked yet")
	request := the[compactionRequested](t, es)
	require.EqualValues(t, 8, messages(request.Messages))
	require.Contains(t, string(request.Messages), `"q0"`)
	require.NotContains(t, string(request.Messages), `"q4"`)
	require.Equal(t, []string{request.CompactionID}, es.ids())
	require.Equal(t, p.now.Add(time.Minute).UnixMilli(), es[0].(emit).DeadlineMS)
	require.Contains(t, describe(p.state()), "waits for the compactor")

	es = p.send("compaction-result", summarized(request, `"summary":"The story.","cost":0.25`))

	asked := continues(t, es, summaryFront)
	require.Equal(t, 0.75, *asked.Cost)
	require.Equal(t, []Hidden{{Bytes: hiddenIn(es)[0].Bytes, Messages: 8, Summarized: true}}, hiddenIn(es))
	require.Len(t, p.hiddenMessages(), 8)
	requirePaired(t, asked.History, asked.LatestInput)
	require.Nil(t, the[answered](t, p.respond(asked, saying("done"))).Error)
	require.Contains(t, string(p.ask("next").History), "The story.", "the history has the summary")
}

func TestWithoutASummaryTheOldestExchangesAreHidden(t *testing.T) {
	for name, result := range map[string]string{
		"error":          `"error":"upstream 529"`,
		"error and text": `"error":"upstream 529","summary":"The story."`,
		"blank":          `"summary":" \n"`,
		"null":           `"summary":null`,
	} {
		t.Run(name, func(t *testing.T) {
			p := overLimit(t)
			request := the[compactionRequested](t, p.send("message-input", message("now")))
			es := p.send("compaction-result", summarized(request, result))
			asked := the[enriched](t, es)
			require.NotContains(t, string(asked.History), "Summary")
			require.EqualValues(t, 4, messages(asked.History), "half of the limit")
			require.False(t, hiddenIn(es)[0].Summarized)
			require.Nil(t, the[answered](t, p.respond(asked, saying("done"))).Error)
		})
	}
}

func TestASummaryThatIsTooLongIsNotUsed(t *testing.T) {
	p := overLimit(t, func(r *rules) { r.HistoryLimit.Bytes = 10 << 10 })
	request := the[compactionRequested](t, p.send("message-input", message("now")))
	asked := the[enriched](t, p.send("compaction-result", summarized(request, `"summary":"`+strings.Repeat("s", 10<<10)+`"`)))
	require.NotContains(t, string(asked.History), "Summary")
}

func TestASilentCompactorDelaysATurnByItsTimeout(t *testing.T) {
	p := overLimit(t)
	request := the[compactionRequested](t, p.send("message-input", message("now")))
	require.Empty(t, p.wait(time.Minute-time.Millisecond))
	asked := the[enriched](t, p.wait(time.Millisecond))
	require.EqualValues(t, 4, messages(asked.History))

	late := p.send("compaction-result", summarized(request, `"summary":"The story.","cost":9`))
	require.Equal(t, []string{reasonNoCompaction}, late.letters())
	require.Nil(t, the[answered](t, p.respond(asked, saying("done"))).Error)
}

func TestASummaryCountsOnceAndForItsTurnOnly(t *testing.T) {
	p := overLimit(t)
	request := the[compactionRequested](t, p.send("message-input", message("now")))
	foreign := request
	foreign.CompactionID = strings.Repeat("0", 32) + "/0/compaction/0"
	require.Equal(t, []string{reasonNoCompaction}, p.send("compaction-result", summarized(foreign, `"summary":"Lies."`)).letters())
	require.Equal(t, []string{reasonTombstone}, p.tombstone("compaction-result").letters())

	result := summarized(request, `"summary":"The story.","cost":1`)
	e, ok := p.event("compaction-result", []byte(result))
	require.True(t, ok)
	asked := continues(t, p.apply(e), summaryFront)
	require.Empty(t, p.repeat(e), "a redelivery")
	require.Equal(t, []string{reasonNoCompaction}, p.send("compaction-result", result).letters(), "a second summary")
	require.Nil(t, the[answered](t, p.respond(asked, saying("done"))).Error)
}

func TestATurnThatWaitsForASummaryCanBeCancelled(t *testing.T) {
	for _, action := range []string{"cancel", "purge"} {
		p := overLimit(t)
		request := the[compactionRequested](t, p.send("message-input", message("now")))
		es := p.send("session-control", `{"action":"`+action+`"}`)
		require.Equal(t, topics.CodeCancelled, the[answered](t, es).Error.Code)
		require.Equal(t, []string{reasonNoCompaction},
			p.send("compaction-result", summarized(request, `"summary":"The story."`)).letters())
	}
}

func TestAClearedConversationNeedsNoSummary(t *testing.T) {
	p := overLimit(t)
	request := the[compactionRequested](t, p.send("message-input", message("now")))
	asked := the[enriched](t, p.tombstone("think-request-response"))
	require.Empty(t, asked.History)
	require.Equal(t, []string{reasonNoCompaction},
		p.send("compaction-result", summarized(request, `"summary":"The story."`)).letters())
}

func TestASummaryThatReachesTheCostLimitEndsTheTurn(t *testing.T) {
	p := overLimit(t, func(r *rules) { r.MaxCost = 1 })
	request := the[compactionRequested](t, p.send("message-input", message("now")))
	es := p.send("compaction-result", summarized(request, `"summary":"The story.","cost":0.5`))
	require.Equal(t, topics.CodeOverBudget, the[answered](t, es).Error.Code)
}

func TestMessagesWaitWhileTheCompactorWorks(t *testing.T) {
	p := overLimit(t)
	request := the[compactionRequested](t, p.send("message-input", message("now")))
	require.Empty(t, p.send("message-input", message("later")))
	asked := continues(t, p.send("compaction-result", summarized(request, `"summary":"The story."`)), summaryFront)
	next := the[enriched](t, p.respond(asked, saying("done")))
	require.Contains(t, string(next.LatestInput), `"later"`)
}

func TestAnOlderSummaryIsSummarizedAgain(t *testing.T) {
	p := overLimit(t)
	request := the[compactionRequested](t, p.send("message-input", message("now")))
	p.respond(continues(t, p.send("compaction-result", summarized(request, `"summary":"The story."`)), summaryFront), saying("a5"))
	for n := range 2 {
		p.exchange("more", strconv.Itoa(n))
	}
	request = the[compactionRequested](t, p.send("message-input", message("again")))
	require.True(t, strings.HasPrefix(string(request.Messages), summaryFront))
}

// A compactor that is switched off while a turn waits for it does not hold the turn up.
func TestATurnEndsItsWaitWithoutTheOption(t *testing.T) {
	p := overLimit(t)
	the[compactionRequested](t, p.send("message-input", message("now")))
	p.rules.Compaction = nil
	p.restart()
	require.Len(t, emitted[enriched](p.wait(time.Minute)), 1)
}

// Whatever a compactor does, every message ends, and every prompt is one that providers accept.
func TestNoCompactorHangsOrCorruptsASession(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlay(t, smallRow, func(r *rules) {
			compactor(r)
			r.Compaction.Keep = rapid.IntRange(1, 5).Draw(t, "keep")
			r.HistoryLimit.Messages = rapid.IntRange(1, 10).Draw(t, "messages")
		})
		size := rapid.SampledFrom([]int{5, 3000, 15 << 10})
		var requests []compactionRequested
		summary := func() string {
			return summarized(rapid.SampledFrom(requests).Draw(t, "request"), rapid.SampledFrom([]string{
				`"summary":"The story."`, `"error":"no"`, `"summary":""`, `"summary":"` + strings.Repeat("s", 20<<10) + `"`,
			}).Draw(t, "result"))
		}
		for turn := range rapid.IntRange(1, 15).Draw(t, "turns") {
			es := p.send("message-input", message(fmt.Sprint("q", turn, strings.Repeat("q", size.Draw(t, "question")))))
			if asked := emitted[compactionRequested](es); len(asked) > 0 {
				requests = append(requests, asked[0])
				requirePaired(t, asked[0].Messages, nil)
				if rapid.Bool().Draw(t, "restarts") {
					p.restart()
				}
				for rapid.IntRange(0, 2).Draw(t, "answers") > 0 {
					es = append(es, p.send("compaction-result", summary())...)
				}
				es = append(es, p.wait(p.rules.Compaction.Timeout)...)
			}
			asked := emitted[enriched](es)
			if len(asked) == 0 {
				require.Len(t, emitted[answered](es), 1)
				continue
			}
			require.Len(t, asked, 1)
			requirePaired(t, asked[0].History, asked[0].LatestInput)
			if len(requests) > 0 && rapid.Bool().Draw(t, "late") {
				p.send("compaction-result", summary())
			}
			require.Len(t, emitted[answered](p.respond(asked[0], saying(strings.Repeat("a", size.Draw(t, "answer"))))), 1)
		}
	})
}

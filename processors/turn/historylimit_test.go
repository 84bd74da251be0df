package turn

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// exchange is a turn of a user's message and its answer.
func (p *play) exchange(question, answer string) {
	p.tb.Helper()
	require.Nil(p.tb, the[answered](p.tb, p.respond(p.ask(question), saying(answer))).Error)
}

func hiddenIn(es effects) (list []Hidden) {
	for _, e := range es {
		if h, ok := e.(Hidden); ok {
			list = append(list, h)
		}
	}
	return list
}

// hiddenMessages are the contents of the hidden messages of the row.
func (p *play) hiddenMessages() (contents []string) {
	p.tb.Helper()
	list, err := topics.Elements(topics.Raw("[" + strings.TrimSuffix(string(p.state().Hidden), ",") + "]"))
	require.NoError(p.tb, err)
	for _, raw := range list {
		m, err := topics.DecodeMessage(raw)
		require.NoError(p.tb, err)
		contents = append(contents, topics.Text(m.Content))
	}
	return contents
}

func TestOldestExchangesAreHiddenAtTheLimit(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.HistoryLimit.Messages = 4 })
	for _, n := range []string{"1", "2", "3"} {
		p.exchange("q"+n, "a"+n)
	}
	es := p.send("message-input", message("q4"))

	asked := the[enriched](t, es)
	require.EqualValues(t, 2, messages(asked.History), "half of the limit")
	require.Contains(t, string(asked.History), `"q3"`)
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, p.hiddenMessages())
	require.Len(t, hiddenIn(es), 1)
	require.Equal(t, 4, hiddenIn(es)[0].Messages)
	require.Positive(t, hiddenIn(es)[0].Bytes)

	p.respond(asked, saying("a4"))
	asked = p.ask("q5")
	require.EqualValues(t, 4, messages(asked.History), "nothing more is hidden until the limit is reached again")
	p.respond(asked, saying("a5"))
	require.EqualValues(t, 2, messages(p.ask("q6").History))
	require.Equal(t, []string{"q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"}, p.hiddenMessages())
}

func TestALimitInBytesHidesToHalfOfIt(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.HistoryLimit.Bytes = 10 << 10 })
	for n := range 100 {
		asked := p.ask("q" + strconv.Itoa(n))
		require.LessOrEqual(t, len(asked.History), 10<<10)
		p.respond(asked, saying(strings.Repeat("a", 1000)))
	}
	require.Greater(t, len(p.hiddenMessages()), 150)
}

func TestNothingIsHiddenWhileATurnRuns(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.HistoryLimit.Messages = 2 })
	p.exchange("q1", "a1")
	asked := p.ask("q2")
	for n := range 5 {
		id := strconv.Itoa(n)
		p.respond(asked, calling(id))
		asked = the[enriched](t, p.result(id, "N4"))
		require.Contains(t, string(asked.History), `"q1"`)
	}
}

func TestTheNewestExchangeStaysEvenOverTheLimit(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.HistoryLimit.Bytes = 1 << 10 })
	p.exchange("q1", "a1")
	p.exchange("q2", strings.Repeat("a", 5<<10))
	require.EqualValues(t, 2, messages(p.ask("q3").History))
	require.Equal(t, []string{"q1", "a1"}, p.hiddenMessages())
}

func TestHiddenExchangesGoWithTheConversation(t *testing.T) {
	long := func() *play {
		p := newPlay(t, func(r *rules) { r.HistoryLimit.Messages = 2 })
		for n := range 20 {
			p.exchange("q"+strconv.Itoa(n), strings.Repeat("a", 500))
		}
		row, err := turnrow.Table.Unmarshal(p.row)
		require.NoError(t, err)
		require.NotEmpty(t, row.HiddenParts)
		require.EqualValues(t, rowHidden, row.Version)
		return p
	}
	p := long()
	p.tombstone("think-request-response")
	require.Empty(t, p.state().Hidden) // and the row names every part that is left

	p = long()
	p.send("session-control", `{"action":"purge"}`)
	require.Empty(t, p.state().Hidden)
}

func TestDescribeStatesTheSizeOfHiddenExchanges(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.HistoryLimit.Messages = 2 })
	p.exchange("q1", "a1")
	p.exchange("q2", "a2")
	p.ask("q3")
	require.Contains(t, describe(p.state()), "hidden: "+strconv.Itoa(len(p.state().Hidden))+" bytes")
}

// The references to the parts are written with every event.
func TestHiddenExchangesHaveABoundedNumberOfParts(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.HistoryLimit.Messages = 1 })
	for n := range 300 {
		p.exchange("q"+strconv.Itoa(n), strings.Repeat("a", 3000))
	}
	row, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(t, err)
	require.Len(t, row.HiddenParts, maxHiddenParts)
	require.Less(t, len(p.parts), maxHiddenParts+10, "the others are deleted")
}

// A result that has no room beside the history shortens the history, not itself.
func TestHistoryYieldsToTheResultsOfTools(t *testing.T) {
	p := newPlay(t)
	for n := range 4 {
		p.exchange("q"+strconv.Itoa(n), strings.Repeat("a", 110<<10))
	}
	asked := p.ask("q4")
	require.Greater(t, len(asked.History), 440<<10)
	p.respond(asked, calling("t1"))
	es := p.result("t1", strings.Repeat("r", 700<<10))
	asked = the[enriched](t, es)
	require.Contains(t, string(asked.LatestInput), "rrr")
	require.Less(t, len(asked.History), 300<<10)
	requirePaired(t, asked.History, nil)
	require.NotEmpty(t, hiddenIn(es))
	require.Nil(t, the[answered](t, p.respond(asked, saying("done"))).Error)
}

// A turn that fails after its history was shortened leaves the shortened history.
func TestAFailedTurnLeavesTheShortenedHistory(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.HistoryLimit.Messages = 2 })
	p.exchange("q1", "a1")
	p.exchange("q2", "a2")
	asked := p.ask("q3")
	p.send("think-dlq", `{"latest_input":`+string(asked.LatestInput)+`}`)
	require.Equal(t, string(asked.History), string(p.state().History))
	require.Equal(t, []string{"q1", "a1"}, p.hiddenMessages())
}

// A session never ends in too_large because of its length, whatever its limits are. TURNTABLE_TURNS is how many turns it
// has, with the default limits; by default it has fewer, with small limits.
func TestALongSessionIsNeverTooLarge(t *testing.T) {
	t.Parallel()
	turns, full := 1500, false
	if text := os.Getenv("TURNTABLE_TURNS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		turns, full = n, true
	}
	p := newPlay(t, func(r *rules) {
		if !full {
			smallRow(r)
		}
	})
	text := strings.Repeat("x", 1<<10)
	most, purged, began := 0, false, time.Now()
	for n := range turns {
		p.now, p.past = p.now.Add(time.Second), nil
		clear(p.partsOf)
		es := p.send("message-input", message(text, fmt.Sprintf(`{"n":%d}`, n)))
		asked := the[enriched](t, es)
		es = p.respond(asked, saying(text))
		require.Nil(t, the[answered](t, es).Error, "turn %d", n)
		before := most
		most = max(most, p.size())
		purged = purged || before == most && most > p.rules.RowLimit/2
	}
	t.Logf("%d turns in %s, the largest row has %d bytes", turns, time.Since(began), most)
	require.LessOrEqual(t, most, p.rules.RowLimit)
	require.True(t, purged)
	require.Less(t, len(p.parts), 40)
}

// In every prompt each call has its result and each result its call, and it begins with a user's message: whatever the
// limits and the sizes are.
func TestEveryPromptIsPaired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlay(t, smallRow, func(r *rules) {
			if rapid.Bool().Draw(t, "few messages") {
				r.HistoryLimit.Messages = rapid.IntRange(1, 12).Draw(t, "messages")
			}
			if rapid.Bool().Draw(t, "few bytes") {
				r.HistoryLimit.Bytes = rapid.IntRange(minHistory, 8<<10).Draw(t, "bytes")
			}
		})
		size := rapid.SampledFrom([]int{5, 500, 3000, 20 << 10})
		calls := 0
		for turn := range rapid.IntRange(1, 12).Draw(t, "turns") {
			es := p.send("message-input", message(fmt.Sprint("q", turn, strings.Repeat("q", size.Draw(t, "question")))))
			for step := rapid.IntRange(0, 4).Draw(t, "steps"); ; step-- {
				list := emitted[enriched](es)
				if len(list) == 0 {
					break // it is too large
				}
				asked := list[0]
				requirePaired(t, asked.History, asked.LatestInput)
				if step == 0 {
					p.respond(asked, saying(strings.Repeat("a", size.Draw(t, "answer"))))
					break
				}
				var ids []string
				for range rapid.IntRange(1, 3).Draw(t, "calls") {
					calls++
					ids = append(ids, strconv.Itoa(calls%rapid.SampledFrom([]int{5, 1000}).Draw(t, "ids")))
				}
				es = p.respond(asked, callingAloud(ids...))
				for _, id := range ids {
					if p.state().Turn.GetCalls() != nil {
						es = p.result(id, strings.Repeat("r", size.Draw(t, "result")))
					}
				}
			}
			if s := p.state(); s.Turn != nil {
				p.send("session-control", `{"action":"cancel"}`)
			}
		}
	})
}

// callingAloud is calling with the calls in the conversation, as model workers write them.
func callingAloud(ids ...string) string {
	blocks := make([]string, len(ids))
	for i, id := range ids {
		blocks[i] = fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"look","input":{}}`, id)
	}
	return strings.Replace(calling(ids...), `"content":[]`, `"content":[`+strings.Join(blocks, ",")+`]`, 1)
}

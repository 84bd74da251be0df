package turn

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/topics"
)

func bothSpellings(r *rules) { r.BothSpellings = true }

// recordForModel returns the members of the record of enriched-message-input among the effects, as it is written.
func (p *play) recordForModel(es effects) map[string]json.RawMessage {
	p.tb.Helper()
	for _, r := range p.encode(es) {
		if string(r.stream) == p.topics.EnrichedMessageInput.Name() {
			members := map[string]json.RawMessage{}
			require.NoError(p.tb, json.Unmarshal(r.raw, &members))
			return members
		}
	}
	require.Fail(p.tb, "no record for the model")
	return nil
}

// spelledBoth maps the names that the Java worker reads to those that the SDKs read.
var spelledBoth = map[string]string{"latest_input": "latestInput", "user_id": "userId", "memoir_context": "memoirContext"}

func TestRecordsForTheModelHaveBothSpellings(t *testing.T) {
	p := newPlay(t, bothSpellings)
	record := p.recordForModel(p.send("message-input", message("hi")))
	require.Len(t, record, 10)
	for java, sdk := range spelledBoth {
		require.Contains(t, record, sdk)
		require.Equal(t, string(record[java]), string(record[sdk]))
	}
}

// A copy for some workers is no reason to fail a message.
func TestSecondSpellingIsLeftOutWhereTheRecordWouldNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		both bool
	}{"fits": {300 << 10, true}, "fits once": {700 << 10, false}} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, bothSpellings)
			es := p.send("message-input", message(strings.Repeat("x", c.size)))
			record := p.recordForModel(es)
			require.Greater(t, len(record["latest_input"]), c.size)
			_, both := record["latestInput"]
			require.Equal(t, c.both, both)
			fits(t, p, es)
		})
	}
}

func TestRecordsForTheModelHaveOneSpellingByDefault(t *testing.T) {
	p := newPlay(t)
	record := p.recordForModel(p.send("message-input", message("hi")))
	require.Len(t, record, 7)
	for java, sdk := range spelledBoth {
		require.Contains(t, record, java)
		require.NotContains(t, record, sdk)
	}
}

func TestResultsAreRepeatedAsTextForSDKs(t *testing.T) {
	for name, c := range map[string]struct{ result, content string }{
		"object": {`{"berth":"N4", "free":true}`, `{"berth":"N4", "free":true}`},
		"text":   {`"Berth \"N4\""`, `{"result":"Berth \"N4\""}`},
		"null":   {`null`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, bothSpellings)
			p.respond(p.ask("hi"), calling("t1"))
			m := the[toolMessage](t, p.send("tool-use-result", `{"tool_use_id":"t1","name":"look","status":"success","result":`+c.result+`}`))
			var entries []struct {
				ToolUseID string `json:"tool_use_id"`
				Content   string
			}
			require.NoError(t, json.Unmarshal(m.Content, &entries))
			require.Len(t, entries, 1)
			require.Equal(t, "t1", entries[0].ToolUseID)
			require.Equal(t, c.content, entries[0].Content)
		})
	}
}

func TestResultsAreNotRepeatedAsTextByDefault(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("hi"), calling("t1"))
	require.Equal(t, `[{"tool_use_id":"t1","name":"look","result":{"said":"N4"},"status":"success"}]`,
		string(the[toolMessage](t, p.result("t1", "N4")).Content))
}

// The step of a tool message is recognized by the value of its input, as a worker echoes it: with its members in any order.
func TestEchoOfATextResultNamesItsStep(t *testing.T) {
	p := newPlay(t, bothSpellings)
	first := p.ask("hi")
	p.respond(first, calling("t1"))
	asked := the[enriched](t, p.result("t1", `say "N4"`))
	var input map[string]any
	require.NoError(t, json.Unmarshal(asked.LatestInput, &input))
	echo, err := json.Marshal(input)
	require.NoError(t, err)
	require.NotEqual(t, string(asked.LatestInput), string(echo))
	require.True(t, p.knowsInput(echo))
	asked.LatestInput = echo
	require.Equal(t, "N4 it is", the[answered](t, p.respond(asked, saying("N4 it is"))).Content)
}

// knowsInput reports whether an echo has the digest of the open step's input.
func (p *play) knowsInput(echo topics.Raw) bool {
	s := p.state()
	m, err := topics.DecodeMessage(echo)
	require.NoError(p.tb, err)
	d := inputDigest(m)
	return string(d[:]) == string(s.Turn.Input)
}

// Whatever the sizes of the results and of the conversation, no record exceeds its limit, every call has one result, and the
// model is asked again with results that are the same in both spellings.
func TestResultsInBothSpellingsFitIntoRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlay(t, bothSpellings, func(r *rules) {
			r.RecordLimit, r.RowLimit = minRecord, minRecord-rowMargin
			if rapid.Bool().Draw(t, "large row") {
				r.RowLimit = minRecord
			}
		})
		text := func(most int) string {
			unit := rapid.SampledFrom([]string{"x", `"`, "\n", "\x01", `\`, "ä"}).Draw(t, "unit")
			return strings.Repeat(unit, rapid.IntRange(0, most/len(unit)).Draw(t, "size"))
		}
		quote := func(text string) string {
			q, err := json.Marshal(text)
			require.NoError(t, err)
			return string(q)
		}
		p.respond(p.ask("one"), `"last_input_response":[{"role":"assistant","content":`+quote(text(20_000))+`}],"end_turn":true`)
		es := p.send("message-input", strings.Replace(message("two"), `"two"`, quote(text(30_000)), 1))
		fits(t, p, es)
		asked := emitted[enriched](es)
		if len(asked) == 0 {
			require.Equal(t, topics.CodeTooLarge, the[answered](t, es).Error.Code)
			return
		}
		var ids []string
		for i := range rapid.IntRange(1, 4).Draw(t, "calls") {
			ids = append(ids, fmt.Sprint("t", i))
		}
		es = p.respond(asked[0], calling(ids...))
		if ended := emitted[answered](es); len(ended) > 0 { // the row has no room for a message that fits in one spelling only
			require.Equal(t, topics.CodeTooLarge, ended[0].Error.Code)
			require.False(t, asked[0].BothSpellings)
			return
		}
		for _, id := range ids {
			require.Empty(t, emitted[enriched](es))
			es = p.send("tool-use-result", fmt.Sprintf(
				`{"tool_use_id":%q,"name":"look","status":"success","result":{"said":%s}}`, id, quote(text(50_000))))
		}
		fits(t, p, es)
		require.Len(t, emitted[completed](es), 1)
		again := emitted[enriched](es)
		if len(again) == 0 {
			require.Equal(t, topics.CodeTooLarge, the[answered](t, es).Error.Code)
			return
		}
		var entries []struct {
			Result  json.RawMessage
			Content string
		}
		require.NoError(t, json.Unmarshal(the[toolMessage](t, es).Content, &entries))
		require.Len(t, entries, len(ids))
		for _, e := range entries {
			if again[0].BothSpellings {
				require.Equal(t, string(e.Result), e.Content)
			}
		}
		require.True(t, p.knowsInput(again[0].LatestInput))
	})
}

// A result is not replaced by an error as long as copies of it can be left out instead: first those in the metadata, then
// those of the second spelling.
func TestResultThatFitsWithoutItsCopiesReachesTheModel(t *testing.T) {
	for name, c := range map[string]struct {
		size  int
		rules []func(*rules)
		want  string
		both  bool
	}{
		"fits in both spellings":          {240 << 10, []func(*rules){bothSpellings}, "xxx", true}, // four times in the record for the model
		"fits in one spelling":            {270 << 10, []func(*rules){bothSpellings}, "xxx", false},
		"fits once":                       {940 << 10, []func(*rules){bothSpellings}, "xxx", false},
		"fits once, with one spelling":    {940 << 10, nil, "xxx", false},
		"does not fit":                    {1000 << 10, []func(*rules){bothSpellings}, "too_large", true}, // the errors fit in both
		"does not fit, with one spelling": {1000 << 10, nil, "too_large", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, c.rules...)
			p.respond(p.ask("hi"), calling("t1", "t2"))
			p.result("t1", "small")
			out := p.result("t2", strings.Repeat("x", c.size))
			content := string(the[toolMessage](t, out).Content)
			has(t, content, c.want)
			has(t, content, "small")
			require.Equal(t, c.both, the[enriched](t, out).BothSpellings)
			require.Len(t, emitted[completed](out), 1)
			fits(t, p, out)
		})
	}
}

// A turn that ends keeps the results that fit without their copies.
func TestResultOfEndingTurnFitsWithoutItsText(t *testing.T) {
	p := newPlay(t, bothSpellings)
	p.respond(p.ask("hi"), calling("t1", "t2"))
	p.result("t1", strings.Repeat("x", 600<<10))
	out := p.send("session-control", `{"action":"cancel"}`)
	has(t, string(the[toolMessage](t, out).Content), "xxx")
	fits(t, p, out)
}

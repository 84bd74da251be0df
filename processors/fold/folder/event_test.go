package folder

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestEventsKeepTheirBytes(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"done","data":{ "stopReason" : 1.50 }}`: "",
		`{"data":{},"type":"usage","x":1}`:               "",
		`{"type":"usage", "input":1e2}`:                  `{"type":"usage","data":{"type":"usage", "input":1e2}}`,
		`{"type":"tool_result","output":"o","data":{"id":1}}`: `{"type":"tool_result","data":{"type":"tool_result",` +
			`"output":"o","data":{"id":1}}}`,
		`{"type":"data","name":"n","data":1}`:    `{"type":"data","data":{"type":"data","name":"n","data":1}}`,
		`{"type":"data","data":{"name":"n"}}`:    "",
		`{"type":"data","data":[1]}`:             `{"type":"data","data":{"type":"data","data":[1]}}`,
		`{"type":"tool_result","data":[{}]}`:     `{"type":"tool_result","data":{"type":"tool_result","data":[{}]}}`,
		`{"type":"tool_result","data":null}`:     `{"type":"tool_result","data":{"type":"tool_result","data":null}}`,
		`{"type":"tool_result","data":{"id":1}}`: "",
		`{"type":"interaction_request"}`:         "",
		`{"type":5,"x":1}`:                       `{"type":"5","data":{"type":5,"x":1}}`,
		`{"type":true}`:                          `{"type":"True","data":{"type":true}}`,
		`{"type":1.0}`:                           `{"type":"1.0","data":{"type":1.0}}`,
		`{"type":1e16}`:                          `{"type":"1e+16","data":{"type":1e16}}`,
		`{"type":1e400}`:                         `{"type":"inf","data":{"type":1e400}}`,
		`{"type":[1]}`:                           `{"type":"[1]","data":{"type":[1]}}`,
		`{"type":"message_delta","id":"a","delta":"\ud83d","x":"\ud83d"}`: `{"type":"message_delta",` +
			`"data":{"type":"message_delta","id":"a","delta":"\ud83d","x":"\ufffd"}}`,
		`{"type":"message","data":{"text":"\ud83d\ude42\udc00"}}`: `{"type":"message",` +
			`"data":{"text":"\ud83d\ude42\ufffd"}}`,
	} {
		e, err := DecodeEvent(topics.Raw(" " + raw + "\n"))
		require.NoError(t, err)
		if want == "" {
			want = raw
		}
		require.Equal(t, want, string(e.Wrapped()))
	}
}

func TestEventWithoutATypeHasAnEmptyType(t *testing.T) {
	for _, kind := range []string{`0`, `-0.0`, `false`, `null`, `""`, `[]`, `{ }`} {
		e, err := DecodeEvent(topics.Raw(`{"type":` + kind + `,"text":"x"}`))
		require.NoError(t, err)
		require.Empty(t, e.Type)
	}
}

func TestInvalidEventFailsWithItsError(t *testing.T) {
	for raw, want := range map[string]error{
		``: ErrSyntax, `{`: ErrSyntax, `{"type":NaN}`: ErrSyntax, `{} {}`: ErrSyntax, "{\"type\":\"\xff\"}": ErrSyntax,
		`null`: ErrMalformed, `[]`: ErrMalformed, `"message"`: ErrMalformed,
		`{"type":"x","data":` + strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1) + `}`: ErrDepth,
		strings.Repeat("[", 1<<20): ErrDepth,
	} {
		_, err := DecodeEvent(topics.Raw(raw))
		require.ErrorIs(t, err, want)
	}
	nested := strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1)
	for _, raw := range []string{`{"type":"x","data":{"v":` + nested + `}}`, `{"type":"x","v":` + nested + `}`} {
		_, err := DecodeEvent(topics.Raw(raw))
		require.NoError(t, err)
		_, err = DecodeEvent(topics.Raw(strings.Replace(raw, "[]", "[[]]", 1)))
		require.ErrorIs(t, err, ErrDepth)
	}
}

func TestDoneEventHasOnlyAStopReason(t *testing.T) {
	require.Equal(t, `{"type":"done","data":{"stopReason":"end_turn"}}`,
		string(Done(topics.Raw(`"end_turn"`)).Wrapped()))
	require.Equal(t, `{"type":"done","data":{"stopReason":null}}`, string(Done(nil).Wrapped()))
	require.Equal(t, `{"type":"done","data":{}}`, string(Done(topics.Raw(`}`)).Wrapped()))
}

func TestFieldReadsTheData(t *testing.T) {
	e, err := DecodeEvent(topics.Raw(`{"type":"x","id":"outer","data":{"id":null,"v":1}}`))
	require.NoError(t, err)
	id, ok := e.Field("id")
	require.True(t, ok)
	require.Equal(t, "null", string(id))
	_, ok = e.Field("type")
	require.False(t, ok)
	require.False(t, e.Flat())
	e, err = NewEvent("x", topics.Raw(`[1]`))
	require.NoError(t, err)
	_, ok = e.Field("id")
	require.False(t, ok)
	_, err = NewEvent("x", topics.Raw(`{},"type":"y"`))
	require.NoError(t, err)
}

func TestSurrogateJoinerJoinsSplitPairs(t *testing.T) {
	var m SurrogateJoiner
	sent := func(raw string) (texts []string) {
		e, err := DecodeEvent(topics.Raw(raw))
		require.NoError(t, err)
		for _, e := range m.Append(nil, e) {
			texts = append(texts, string(e.Wrapped()))
		}
		return texts
	}
	require.Equal(t, []string{`{"type":"message_delta","data":{"delta":"hi ","id":"a","x":1}}`},
		sent(`{"type":"message_delta","data":{"delta":"hi \ud83d","id":"a","x":1}}`))
	require.Empty(t, sent(`{"type":"message_delta","data":{"id":"b","delta":"\ud83d"}}`))
	require.Equal(t, []string{`{"type":"done","data":{}}`}, sent(`{"type":"done","data":{}}`))
	require.Equal(t, []string{`{"type":"message_delta","data":{"type":"message_delta","id":"a",` +
		`"delta":"\ud83d\ude42!\ufffd"}}`},
		sent(`{"type":"message_delta","id":"a","delta":"\ude42!\ude42"}`))
	require.Equal(t, []string{
		`{"type":"message_delta","data":{"id":"b","delta":"\ufffd"}}`, `{"type":"message_end","data":{"id":"b"}}`,
	}, sent(`{"type":"message_end","data":{"id":"b"}}`))
	require.Equal(t, []string{`{"type":"message_delta","data":{"id":"a","delta":"\\ud83d"}}`},
		sent(`{"type":"message_delta","data":{"id":"a","delta":"\\ud83d"}}`))
	require.Empty(t, sent(`{"type":"message_delta","data":{"id":"a","delta":"\uDBFF"}}`))
	require.Len(t, m.Flush(nil), 1)
	require.Empty(t, m.Flush(nil))

	var events []Event
	for i := range 3 * maxHeld {
		e := mustEvent(t, "message_delta", fmt.Sprintf(`{"id":%d,"delta":"\ud83d"}`, i))
		events = m.Append(events, e)
		require.LessOrEqual(t, len(m.held), maxHeld)
	}
	require.Len(t, m.Flush(events), 3*maxHeld)
}

func TestDamagedLogFails(t *testing.T) {
	for _, l := range []string{
		"z", "s", "s\xff", "s\x05\"a\"", "s\x04a\"b", "d\x04\"a\"\x02\"", "c\x03[]\x00\x00", "m\x03\"\xff",
	} {
		require.ErrorIs(t, NewFolder().AddLog(Log(l)), ErrLog, "%q", l)
	}
	e, err := DecodeEvent(topics.Raw(`{"type":"done"}`))
	require.NoError(t, err)
	require.ErrorIs(t, NewFolder().AddLog(Log("z").Append(e)), ErrLog)
}

func TestLogIsSmallerThanItsEvents(t *testing.T) {
	var events []Event
	for _, raw := range deltas(10_000, "word ") {
		e, err := DecodeEvent(raw)
		require.NoError(t, err)
		events = append(events, e)
	}
	require.Less(t, len(Compact(events...)), 10_000*5+64)

	thought, err := DecodeEvent(topics.Raw(`{"type":"thought_delta","id":"r","delta":"hm"}`))
	require.NoError(t, err)
	require.Empty(t, Compact(thought))
	var l Log
	for _, n := range []string{"1", "2", "3"} {
		call, err := NewEvent("tool_call", topics.Raw(`{"id":"t","name":"n","input":`+n+`}`))
		require.NoError(t, err)
		l = l.Append(call)
	}
	require.Equal(t, Compact(mustEvent(t, "tool_call", `{"id":"t","name":"n","input":3}`)), l)
}

func mustEvent(t *testing.T, kind, data string) Event {
	t.Helper()
	e, err := NewEvent(kind, topics.Raw(data))
	require.NoError(t, err)
	return e
}

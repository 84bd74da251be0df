package websocket

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSubscriptionIsParsed(t *testing.T) {
	for frame, want := range map[string]subscription{
		`{"type":"subscribe","session_id":"s"}`:                            {"s", ""},
		` {"session_id":" s ","type":"subscribe","x":[{}]} `:               {" s ", ""},
		`{"type":"subscribe","session_id":"s","last_event_id":"e"}`:        {"s", "e"},
		`{"type":"subscribe","session_id":"s","last_event_id":7}`:          {"s", ""},
		`{"type":"subscribe","session_id":"a","session_id":"b"}`:           {"b", ""},
		`{"type":"subscribe","session_id":7}`:                              {"7", ""},
		`{"type":"subscribe","session_id":true}`:                           {"true", ""},
		`{"type":"subscribe","session_id":"s","last_event_id":null} trail`: {"s", ""},
	} {
		got, ok := parseSubscription([]byte(frame))
		require.True(t, ok, frame)
		require.Equal(t, want, got, frame)
	}
	for _, frame := range []string{
		``, `{`, `null`, `[]`, `"subscribe"`, `{"type":"subscribe"}`, `{"type":"subscribe","session_id":""}`,
		`{"type":"subscribe","session_id":" "}`, `{"type":"subscribe","session_id":null}`,
		`{"type":"subscribe","session_id":[7]}`, `{"type":"subscribe","session_id":{"a":1}}`,
		`{"type":"unsubscribe","session_id":"s"}`, `{"session_id":"s"}`, `{"Type":"subscribe","session_id":"s"}`,
		`{"type":"subscribe","session_id":"s","x":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`,
		"{\"type\":\"subscribe\",\"session_id\":\"\xff\"}",
	} {
		_, ok := parseSubscription([]byte(frame))
		require.False(t, ok, frame)
	}
}

func TestEventIDIsParsed(t *testing.T) {
	full := eventID{
		feed: feedOutput, partition: math.MaxInt32, offset: math.MaxInt64, kind: kindChat,
		session: math.MaxUint32, born: maxMS, at: maxMS,
	}
	for f := range full.marks {
		full.marks[f] = mark{math.MaxInt32, math.MaxInt64}
	}
	for _, id := range []eventID{{kind: kindEvent}, full, {
		feed: feedThink, offset: 35, kind: kindEvent, born: 1, marks: marks{feedThink: {2, 36}},
	}} {
		require.LessOrEqual(t, len(id.String()), maxEventID)
		got, ok := parseEventID(id.String())
		require.True(t, ok, id.String())
		require.Equal(t, id, got)
	}
	require.Equal(t, "3/0/z/e~0.1.0.3:2:10", eventID{
		feed: feedThink, offset: 35, kind: kindEvent, born: 1, marks: marks{feedThink: {2, 36}},
	}.String())
	for _, text := range []string{
		"", "~", "3/0/z/e", "3/0/z/e~0.1", "3/0/z/e~0.1.0.3:2", "3/0/z/e~0.1.0.a:2:10", "3/0/z/e~0.1.0.3:2:0",
		"03/0/z/e~0.1.0", "3/0/-z/e~0.1.0", "3/0/Z/e~0.1.0", "a/0/z/e~0.1.0", "3/0/z/ee~0.1.0", "3/0/zzzzzzzzzzzzzz/e~0.1.0",
		"3/0/z/e~0.1.0.3:2:10.3:2:10", "3/0/z/e~0.1.0.4:2:10.3:2:10", "3/0/z/e~0.1.0" + strings.Repeat(".3:2:10", 99),
	} {
		_, ok := parseEventID(text)
		require.False(t, ok, text)
	}
}

func FuzzSubscribe(f *testing.F) {
	for _, seed := range []string{
		`{"type":"subscribe","session_id":"s"}`,
		`{"type":"subscribe","session_id":"s","last_event_id":"3/0/z/e~0.1.0.3:2:10"}`,
		`{"type":"subscribe","session_id":"\ud83d"}`, `[[[[`, `{"type":"subscribe","session_id":"a","session_id":"b"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		s, ok := parseSubscription(frame)
		if !ok {
			return
		}
		require.NotEmpty(t, strings.TrimSpace(s.session))
		if id, ok := parseEventID(s.last); ok {
			require.Equal(t, s.last, id.String())
		}
		again := string(quote([]byte(`{"type":"subscribe","session_id":`), s.session)) + `}`
		same, ok := parseSubscription([]byte(again))
		require.True(t, ok)
		require.Equal(t, s.session, same.session)
	})
}

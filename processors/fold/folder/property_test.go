package folder

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/topics"
)

// pick draws one of the values.
func pick(t *rapid.T, label string, values ...string) string {
	return rapid.SampledFrom(values).Draw(t, label)
}

// drawEvent draws an event, well-formed or not, from a vocabulary small enough that ids meet.
func drawEvent(t *rapid.T) topics.Raw {
	id := func() string {
		return pick(t, "id", `"a"`, `"a"`, `"a"`, `"b"`, `"b"`, `1`, `1.0`, `true`, `null`, `"\u0061"`, `[1]`, `{}`)
	}
	text := func() string {
		return pick(t, "text", `"x"`, `"y z"`, `""`, `"\ud83d"`, `"\ude42"`, `"é\n"`, `null`, `5`, `{"k":[1.0]}`)
	}
	var kind, members string
	switch kind = pick(t, "type", "message_delta", "message_delta", "message_delta", "message_start", "message_end",
		"message", "tool_call", "tool_call", "tool_result", "interaction_request", "interaction_response", "usage",
		"error", "done", "thought_delta", "unknown"); kind {
	case "message_delta":
		members = `"id":` + id() + `,"delta":` + text()
	case "message":
		members = `"text":` + text()
	case "tool_call":
		members = `"id":` + id() + `,"name":` + text() + `,"input":` + text() +
			pick(t, "raw", ``, `,"rawInput":null`, `,"rawInput":{}`)
	case "tool_result":
		members = pick(t, "own", ``, ``, ``, `"data":[{}]`, `"data":5`)
		if members != "" {
			break
		}
		members = `"id":` + id() + `,"output":` + text() +
			pick(t, "more", ``, `,"isError":true`, `,"denied":true`, `,"data":{"rows":1}`, `,"render":{"kind":"connect"}`)
	case "interaction_request":
		members = `"id":` + id() + `,"payload":{"toolCallId":` + id() + `,"toolName":` + text() + `}`
	case "usage":
		members = `"input":` + pick(t, "tokens", "1", "2", "null")
	case "error":
		members = `"message":` + text()
	case "done":
		members = `"stopReason":` + pick(t, "stop", `"paused"`, `"cancelled"`, `null`, `["paused"]`)
	default:
		members = `"id":` + id()
	}
	switch pick(t, "form", "wrapped", "wrapped", "flat", "data") {
	case "flat":
		return topics.Raw(`{"type":"` + kind + `",` + members + `}`)
	case "data":
		return topics.Raw(`{"type":"` + kind + `","data":` +
			pick(t, "data", `null`, `5`, `""`, `"x"`, `[]`, `{}`) + `}`)
	}
	return topics.Raw(`{"type": "` + kind + `", "data": {"type":"` + kind + `",` + members + `}}`)
}

// drawFlat draws an event as a runner writes it, with fields that its type has, and some that it has not.
func drawFlat(t *rapid.T) (kind string, flat topics.Raw) {
	kind = pick(t, "type", "message", "message_start", "message_delta", "tool_call", "tool_result", "tool_result", "data", "done")
	members := `"type":"` + kind + `"`
	for _, m := range [][]string{
		{"id", `"a"`, `1`, `null`},
		{"text", `"x"`, `null`},
		{"delta", `"x"`},
		{"output", `"o"`, `{"k":1}`},
		{"isError", `true`, `false`},
		{"name", `"n"`},
		{"input", `{}`, `{"k":1}`},
		{"stopReason", `"paused"`},
	} {
		if rapid.Bool().Draw(t, m[0]) {
			members += `,"` + m[0] + `":` + pick(t, m[0], m[1:]...)
		}
	}
	if (kind == "tool_result" || kind == "data") && rapid.Bool().Draw(t, "own data") {
		members += `,"data":` + pick(t, "data", `[{}]`, `[]`, `5`, `0`, `"x"`, `""`, `true`, `false`, `null`)
	}
	return kind, topics.Raw(`{` + members + `}`)
}

// The reference folds the events of a runner after its handler has wrapped each one as the data of its type.
func TestFlatEventsFoldAsTheirHandlerWrapsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flat, wrapped := NewFolder(), NewFolder()
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			kind, raw := drawFlat(t)
			e, err := DecodeEvent(raw)
			require.NoError(t, err)
			require.NoError(t, flat.Add(e))
			e, err = NewEvent(kind, raw)
			require.NoError(t, err)
			require.NoError(t, wrapped.Add(e))
		}
		require.Equal(t, whole(t, wrapped, End{}), whole(t, flat, End{}))
	})
}

func drawEvents(t *rapid.T) []Event {
	var events []Event
	for _, raw := range rapid.SliceOfN(rapid.Custom(drawEvent), 0, 40).Draw(t, "events") {
		e, err := DecodeEvent(raw)
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}

// whole returns all fields of a batch for comparison.
func whole(t require.TestingT, f *Folder, end End) string {
	b, err := f.Batch(end)
	require.NoError(t, err)
	text, err := f.AssistantText()
	require.NoError(t, err)
	return fmt.Sprintf("%s %d %q", b.AppendRecord(nil), f.Size(), text)
}

func folded1(t require.TestingT, events []Event) *Folder {
	f := NewFolder()
	for _, e := range events {
		require.NoError(t, f.Add(e))
	}
	return f
}

func TestSplitsAndSnapshotsGiveTheSameBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		want := whole(t, folded1(t, events), End{})
		for split := range len(events) + 1 {
			snapshot := folded1(t, events[:split]).Snapshot()
			f, err := Resume(snapshot)
			require.NoError(t, err)
			require.Equal(t, string(snapshot), string(f.Snapshot()))
			for _, e := range events[split:] {
				require.NoError(t, f.Add(e))
			}
			require.Equal(t, want, whole(t, f, End{}))
		}
	})
}

func TestIncrementalFoldEqualsFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		f := NewFolder()
		for n := range len(events) + 1 {
			require.Equal(t, whole(t, folded1(t, events[:n]), End{}), whole(t, f, End{}))
			one, err := Fold(events[:n])
			require.NoError(t, err)
			b, err := f.Batch(End{})
			require.NoError(t, err)
			require.Equal(t, one, b)
			if n < len(events) {
				require.NoError(t, f.Add(events[n]))
			}
		}
	})
}

func TestLogFoldsLikeItsEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		want := whole(t, folded1(t, events), End{})
		var logs []Log
		var tail Log
		for _, e := range events {
			before := slices.Clone(tail)
			next := tail.Append(e)
			require.Equal(t, before, slices.Clone(tail))
			tail = next
			if len(tail) > rapid.IntRange(0, 100).Draw(t, "limit") {
				logs, tail = append(logs, tail), nil
			}
		}
		logs = append(logs, tail)

		apart := NewFolder()
		for _, l := range logs {
			require.NoError(t, apart.AddLog(l))
		}
		require.Equal(t, want, whole(t, apart, End{}))
		joined, err := Resume(slices.Concat(logs...))
		require.NoError(t, err)
		require.Equal(t, want, whole(t, joined, End{}))
		compact, err := Resume(Compact(events...))
		require.NoError(t, err)
		require.Equal(t, want, whole(t, compact, End{}))
	})
}

func TestStrictLogFailsLikeItsEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		f := NewFolder(Strict())
		var err error
		for _, e := range events {
			if err = f.Add(e); err != nil {
				break
			}
		}
		resumed, logErr := Resume(Compact(events...), Strict())
		require.Equal(t, err == nil, logErr == nil)
		if err != nil {
			require.ErrorIs(t, logErr, ErrMalformed)
			return
		}
		_, err = f.Batch(End{})
		_, logErr = resumed.Batch(End{})
		require.Equal(t, err, logErr)
	})
}

func TestTrimReturnsASuffix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := Fold(drawEvents(t))
		require.NoError(t, err)
		trimmed := Trim(b.Messages)
		require.Equal(t, b.Messages[len(b.Messages)-len(trimmed):], trimmed)
		require.Equal(t, trimmed, Trim(trimmed))
		require.Equal(t, len(b.Messages) == 0, len(trimmed) == 0)
	})
}

func TestWrappedAndFlatEventsGiveTheSameBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		again := NewFolder()
		for _, e := range events {
			c, err := DecodeEvent(e.Wrapped())
			require.NoError(t, err)
			require.Equal(t, e.Type, c.Type)
			require.Equal(t, string(e.Data()), string(c.Data()))
			require.NoError(t, again.Add(c))
		}
		require.Equal(t, whole(t, folded1(t, events), End{}), whole(t, again, End{}))
	})
}

// TestRestoredOrderGivesTheSameBatch folds a shuffled stream with repeats through a reader that drops duplicates and waits for
// missing events: the batch equals that of the ordered stream, or a gap stays open.
func TestRestoredOrderGivesTheSameBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		var order []int
		for i := range events {
			order = append(order, i)
			if rapid.Bool().Draw(t, "repeat") {
				order = append(order, i)
			}
		}
		order = rapid.Permutation(order).Draw(t, "order")
		if len(order) > 0 && rapid.Bool().Draw(t, "lose one") {
			order = order[1:]
		}
		f, next, held := NewFolder(), 0, map[int]bool{}
		for _, i := range order {
			held[i] = true
			for ; held[next]; next++ {
				require.NoError(t, f.Add(events[next]))
			}
		}
		require.Equal(t, whole(t, folded1(t, events[:next]), End{}), whole(t, f, End{}))
		if next < len(events) {
			require.NotContains(t, order, next)
		}
	})
}

// readDelta and decodeAny must return the same event.
func TestDeltaFastPathAgreesWithTheDecoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		member := func(name string) string {
			return pick(t, "name", `"`+name+`"`, `"`+name+`" `, ` "id"`, `"delta"`, `"data"`, `"typ\u0065"`) + ":" +
				pick(t, "value", `"message_delta"`, `"a"`, `"\ud83d"`, `"\x"`, "\"\xff\"", `"é"`, "\"\n\"", `1`, `{}`, `" `)
		}
		data := `{` + member("id") + pick(t, "comma", `,`, ` , `, ``) + member("delta") + `}`
		raw := topics.Raw(`{"type":"message_delta"` + pick(t, "outer", `,`+member("x"), ``) +
			pick(t, "inner", `,"data":`+data, ``) + pick(t, "end", `}`, `} `, `}x`, ``))
		quick, ok := readDelta(raw)
		if !ok {
			return
		}
		slow, err := decodeAny(raw, false)
		require.NoError(t, err)
		require.Equal(t, slow, quick)
	})
}

func TestJoinedStreamGivesTheSameBatchWithoutLoneSurrogates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		var m SurrogateJoiner
		var sent []Event
		for _, e := range events {
			sent = m.Append(sent, e)
		}
		sent = m.Flush(sent)
		for _, e := range sent {
			require.True(t, jsontext.Value(e.Wrapped()).IsValid(), "%s", e.Wrapped())
		}
		want, err := Fold(events)
		require.NoError(t, err)
		got, err := Fold(sent)
		require.NoError(t, err)
		require.Equal(t, string(want.AppendRecord(nil)), string(got.AppendRecord(nil)))
	})
}

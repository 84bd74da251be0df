package folder

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func foldOf(t *testing.T, events ...string) *Folder {
	t.Helper()
	f := NewFolder()
	for _, raw := range events {
		e, err := DecodeEvent(topics.Raw(raw))
		require.NoError(t, err)
		require.NoError(t, f.Add(e))
	}
	return f
}

func TestStateIsDerivedFromEventsUnlessGiven(t *testing.T) {
	const done, failure = `{"type":"done","data":{}}`, `{"type":"error","data":{"message":"overloaded"}}`
	for name, c := range map[string]struct {
		events []string
		end    End
		want   State
	}{
		"no events":              {nil, End{}, Open},
		"done":                   {[]string{done}, End{}, Complete},
		"terminal reason":        {nil, End{StopReason: topics.Raw(`"end_turn"`)}, Complete},
		"null terminal reason":   {nil, End{StopReason: topics.Raw("null")}, Open},
		"cancelled by done":      {[]string{`{"type":"done","stopReason":"cancelled"}`}, End{}, Cancelled},
		"cancelled by result":    {[]string{done}, End{StopReason: topics.Raw(`"cancelled"`)}, Cancelled},
		"error":                  {[]string{failure}, End{}, Failed},
		"error and done":         {[]string{failure, done}, End{}, Failed},
		"error of the result":    {nil, End{Error: "gone"}, Failed},
		"error that is no text":  {[]string{`{"type":"error","data":7}`}, End{}, Failed},
		"given":                  {[]string{failure}, End{State: Expired}, Expired},
		"open though it is done": {[]string{done}, End{State: Open}, Open},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := foldOf(t, c.events...).Batch(c.end)
			require.NoError(t, err)
			require.Equal(t, c.want, b.State)
		})
	}
}

func TestPendingAreAllUnansweredRequests(t *testing.T) {
	f := foldOf(t,
		`{"type":"interaction_request","data":{"id":"r1","payload":{"toolCallId":"t1","toolName":"a"}}}`,
		`{"type":"interaction_request","data":{"id":"r2","payload":{"toolCallId":"t2","toolCall":{"title":"b"}}}}`,
		`{"type":"interaction_request","data":{"id":"r3","payload":{"toolCallId":"t3"}}}`,
		`{"type":"interaction_request","data":{"id":null}}`,
		`{"type":"interaction_response","data":{"id":"r1","payload":{"approved":true}}}`,
		`{"type":"interaction_response","data":{"id":null}}`,
		`{"type":"tool_result","data":{"id":"t3","output":""}}`,
	)
	b, err := f.Batch(End{})
	require.NoError(t, err)
	require.Nil(t, b.PendingInteraction)
	require.Equal(t, `[{"id":"r2","payload":{"toolCallId":"t2","toolCall":{"title":"b"}},"tool":"b"},{"id":null,`+
		`"tool":null}]`,
		string(AppendMessages(nil, b.Pending)))
}

func TestRecordHasTheFieldsThatMessagesLack(t *testing.T) {
	f := foldOf(t,
		`{"type":"tool_result","data":{"id":"a","output":"plain","isError":false}}`,
		`{"type":"tool_result","data":{"id":"b","output":"no","isError":true,"denied":true}}`,
		`{"type":"tool_result","data":{"id":"c","data":{"rows":[1.0]},"render":{"kind":"connect"},"denied":false}}`,
		`{"type":"usage","data":{"input":1,"output":2,"total":3}}`,
		`{"type":"usage","data":{"type":"usage","input":10,"output":0,"total":null,"cost":0.010}}`,
		`{"type":"error","data":{"message":"first"}}`,
		`{"type":"error","data":{"message":"second"}}`,
		`{"type":"message","data":7}`,
	)
	b, err := f.Batch(End{})
	require.NoError(t, err)
	require.Equal(t, `{"messages":[`+
		`{"role":"tool","content":"plain","tool_call_id":"a","is_error":false},`+
		`{"role":"tool","content":"no","tool_call_id":"b","is_error":true},`+
		`{"role":"tool","content":"","tool_call_id":"c","is_error":null}],`+
		`"stop_reason":null,"pending_interaction":null,"state":"failed","pending_interactions":[],"tool_results":[`+
		`{"message":1,"denied":true,"data":null,"render":null},`+
		`{"message":2,"denied":false,"data":{"rows":[1.0]},"render":{"kind":"connect"}}],`+
		`"error":"second","usage":{"input":10,"output":0,"cost":0.010},"malformed_events":1}`,
		string(b.AppendRecord(nil)))
}

func TestEnvelopeOmitsNulls(t *testing.T) {
	b, err := foldOf(t, `{"type":"message","text":"hi"}`).Batch(End{})
	require.NoError(t, err)
	require.Equal(t, `{"messages":[{"role":"assistant","content":"hi"}]}`, string(b.AppendEnvelope(nil)))

	f := foldOf(t, `{"type":"interaction_request","id":"r"}`)
	b, err = f.Batch(End{StopReason: topics.Raw(` "paused" `)})
	require.NoError(t, err)
	require.Equal(t, `{"messages":[],"stop_reason":"paused","pending_interaction":`+
		`{"type":"interaction_request","id":"r","tool":null}}`, string(b.AppendEnvelope(nil)))
}

func TestTerminalStopReasonIsAString(t *testing.T) {
	for _, stop := range []string{`5`, `["paused"]`, `{}`, `false`, `"`, `"a" "b"`, "\"\xff\""} {
		_, err := foldOf(t).Batch(End{StopReason: topics.Raw(stop)})
		require.ErrorIs(t, err, ErrStopReason, stop)
	}
}

func TestBatchIsNotChangedByLaterEvents(t *testing.T) {
	f := foldOf(t, `{"type":"message_start","id":"a"}`, `{"type":"message_delta","id":"a","delta":"x"}`,
		`{"type":"tool_call","id":"t","input":"before"}`)
	b, err := f.Batch(End{})
	require.NoError(t, err)
	before := string(b.AppendRecord(nil))
	for _, raw := range []string{
		`{"type":"message_delta","id":"a","delta":"y"}`, `{"type":"tool_call","id":"t","input":"later!"}`,
		`{"type":"done","stopReason":"end_turn"}`,
	} {
		e, err := DecodeEvent(topics.Raw(raw))
		require.NoError(t, err)
		require.NoError(t, f.Add(e))
	}
	require.Equal(t, before, string(b.AppendRecord(nil)))
}

func TestFolderCopiesItsInput(t *testing.T) {
	raw := []byte(`[{"type":"message_start","id":"a"},{"type":"message_delta","id":"a","delta":"x"},` +
		`{"type":"tool_call","id":"t","name":"n","input":{"k":1}},{"type":"interaction_request","id":"r"},` +
		`{"type":"tool_result","id":"t","output":"o","data":{}},{"type":"usage","input":1},{"type":"error",` +
		`"message":"m"},` +
		`{"type":"done","stopReason":"paused"}]`)
	f := NewFolder()
	require.NoError(t, f.AddJSON(raw))
	b, err := f.Batch(End{})
	require.NoError(t, err)
	want := string(b.AppendRecord(nil))
	clear(raw)
	b, err = f.Batch(End{})
	require.NoError(t, err)
	require.Equal(t, want, string(b.AppendRecord(nil)))
}

func TestTrimAcceptsAnyMessages(t *testing.T) {
	for in, want := range map[string]string{
		`[]`: `[]`, `[{"role":"user"}]`: `[{"role":"user"}]`,
		`[{"role":"user"},{"role":"tool"},{"role":"tool"}]`:      `[{"role":"user"},{"role":"tool"},{"role":"tool"}]`,
		`[{"role":"assistant"},{"role":"user"}]`:                 `[{"role":"user"}]`,
		`[{"role":"tool"},{}]`:                                   `[{}]`,
		`[1,{"role":"tool","role":"assistant"},{"role":"tool"}]`: `[{"role":"tool","role":"assistant"},{"role":"tool"}]`,
		`[{"role":"to\u006fl"},null]`:                            `[null]`,
		`[7,{"role":"to\u006fl"}]`:                               `[7,{"role":"to\u006fl"}]`,
	} {
		var messages []topics.Raw
		for m := range elements(topics.Raw(in)) {
			messages = append(messages, m)
		}
		require.Equal(t, want, string(AppendMessages(nil, Trim(messages))))
	}
	require.NotNil(t, Trim(nil))
}

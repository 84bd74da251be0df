package topics

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDoublesAreWrittenInJavasFormat(t *testing.T) {
	for want, v := range map[string]float64{
		"0.0": 0, "-0.0": math.Copysign(0, -1), "1.0": 1, "0.062": 0.062, "1.2E-4": 0.00012, "1.0E7": 1e7, "0.001": 1e-3,
		"9.99E-4": 0.000999, "9999999.0": 9999999, "9999999.5": 9999999.5, "1.23456789E8": 123456789, "-1.0E7": -1e7,
		"1.0E-10": 1e-10, "1.7976931348623157E308": math.MaxFloat64, "0.1": 0.1, "100000.0": 1e5,
		"1.0E100": 1e100, "-2.5E-5": -0.000025, "null": math.NaN(),
	} {
		require.Equal(t, want, string(appendDouble(nil, v)))
	}
	require.Equal(t, "null", string(appendDouble(nil, math.Inf(-1))))
}

func TestDoublesRoundTrip(t *testing.T) {
	c := harbor(t).EnrichedMessageInput.Codec()
	rapid.Check(t, func(r *rapid.T) {
		v := rapid.Float64().Draw(r, "cost")
		record, err := c.Marshal(EnrichedMessage{Cost: &v})
		require.NoError(r, err)
		d := c.Unmarshal(record)
		require.NoError(r, d.Err)
		require.Equal(r, v, *d.Value.Cost)
	})
}

func TestAbsentFieldsAreWrittenAsNull(t *testing.T) {
	c := harbor(t)
	written := func(record []byte, err error) string {
		t.Helper()
		require.NoError(t, err)
		return string(record)
	}
	require.Equal(t, `{"session_id":null,"user_id":null,"role":null,"content":null,"timestamp":null,"metadata":null}`,
		written(c.MessageInput.Codec().Marshal(Message{})))
	require.Equal(t, `{"session_id":null,"user_id":null,"cost":null,"history":[],"latest_input":null,`+
		`"memoir_context":null,"timestamp":null}`, written(c.EnrichedMessageInput.Codec().Marshal(EnrichedMessage{})))
	require.Equal(t, `{"session_id":null,"user_id":null,"total_session_cost":null,"previous_session_cost":null,`+
		`"think_cost":null,"think_input_tokens":0,"think_output_tokens":0,"previous_messages":null,`+
		`"last_input_message":null,"last_input_response":null,"tool_uses":null,"end_turn":false,"compaction":false,`+
		`"compaction_input_tokens":0,"compaction_output_tokens":0,"compaction_cost":0.0,"timestamp":null}`,
		written(c.ThinkRequestResponse.Codec().Marshal(ThinkResponse{})))
	require.Equal(t, `{"tool_use_id":null,"tool_id":null,"name":null,"input":null,"session_id":null,"total_tools":0,`+
		`"timestamp":null}`, written(c.ToolUse.Codec().Marshal(ToolUseItem{})))
	require.Equal(t, `{"session_id":null,"tool_use_id":null,"tool_id":null,"name":null,"result":null,"latency_ms":0,`+
		`"status":null,"total_tools":0,"timestamp":null}`, written(c.ToolUseResult.Codec().Marshal(ToolUseResult{})))
	require.Equal(t, `{"session_id":null,"user_id":null,"expected_count":0,"results":[],"expected":[],"deadline_ms":0,`+
		`"emitted":false,"timestamp":null,"complete":false}`,
		written(c.ToolUseAllComplete.Codec().Marshal(ToolResults{})))
	require.Equal(t, `{"session_id":null,"user_id":null,"memoir_context":"","think_response":null,"timestamp":null}`,
		written(c.MemoirContextSessionEnd.Codec().Marshal(MemoirSnapshot{})))
	require.Contains(t, written(c.ThinkRequestResponse.Codec().Marshal(ThinkResponse{ToolUses: []ToolUseItem{}})),
		`"tool_uses":[]`)
}

func TestOutputOmitsNullFields(t *testing.T) {
	c := harbor(t).MessageOutput.Codec()
	record, err := c.Marshal(Output{})
	require.NoError(t, err)
	require.Equal(t, `{"content":"","input_tokens":0,"output_tokens":0,"source_agent":"","timestamp":""}`, string(record))

	record, err = c.Marshal(Output{
		SessionID: ptr("s"), UserID: ptr("u"), Content: "late", Cost: ptr(0.0), SourceAgent: "agent-1",
		ReplyTo: Raw(`{"bearerToken":null}`), Timestamp: "t", RequestID: ptr("r"), Status: ptr("error"),
		Error: &OutputError{Code: CodeThinkTimeout, Message: "late"},
	})
	require.NoError(t, err)
	require.Equal(t, `{"session_id":"s","user_id":"u","content":"late","input_tokens":0,"output_tokens":0,"cost":0.0,`+
		`"source_agent":"agent-1","reply_to":{"bearerToken":null},"timestamp":"t","request_id":"r","status":"error",`+
		`"error":{"code":"think_timeout","message":"late"}}`, string(record), "nulls inside the descriptor stay")
}

func TestOnlyRequiredEscapesAreWritten(t *testing.T) {
	require.Equal(t, "\"<>&é\u2028/\\\"\\\\\\n\\u0001\"", string(appendText(nil, "<>&é\u2028/\"\\\n\x01")))
	require.Equal(t, "\"a\ufffdb\"", string(appendText(nil, "a\xffb")), "invalid UTF-8 is replaced")
}

func TestWritingManyResultsNeedsLinearMemory(t *testing.T) {
	results := make([]ToolUseResult, 1000)
	for i := range results {
		results[i].Result = Raw(`{"a":"` + strings.Repeat("x", 1000) + `"}`)
	}
	var w writer
	writeToolResults(&w, ToolResults{Results: results})
	require.Less(t, cap(w.b), 3*len(w.b))
}

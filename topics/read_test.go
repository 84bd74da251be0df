package topics

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
)

func ptr[T any](v T) *T { return &v }

func good[T any](t *testing.T, c codec.Codec[T], record string) T {
	t.Helper()
	d := c.Unmarshal([]byte(record))
	require.NoError(t, d.Err, "%s", record)
	return d.Value
}

func TestAbsentAndNullFieldsAreZero(t *testing.T) {
	c := harbor(t)
	for _, record := range []string{
		`{"timestamp":"t"}`,
		`{"session_id":null,"total_session_cost":null,"think_input_tokens":null,"previous_messages":null,` +
			`"last_input_message":null,"tool_uses":null,"end_turn":null,"compaction_cost":null,"timestamp":"t"}`,
	} {
		v := good(t, c.ThinkRequestResponse.Codec(), record)
		v.Known = 0
		require.Equal(t, ThinkResponse{Timestamp: ptr("t")}, v)
	}
}

func TestScalarsAreConverted(t *testing.T) {
	c := harbor(t).ThinkRequestResponse.Codec()
	for record, want := range map[string]ThinkResponse{
		`{"think_input_tokens":"5"}`:                   {ThinkInputTokens: 5},
		`{"think_input_tokens":" 5 "}`:                 {ThinkInputTokens: 5},
		`{"think_input_tokens":3.7}`:                   {ThinkInputTokens: 3},
		`{"think_input_tokens":-3.7}`:                  {ThinkInputTokens: -3},
		`{"think_input_tokens":1e3}`:                   {ThinkInputTokens: 1000},
		`{"think_input_tokens":""}`:                    {},
		`{"think_input_tokens":2147483647}`:            {ThinkInputTokens: 2147483647},
		`{"session_id":5}`:                             {SessionID: ptr("5")},
		`{"session_id":1.10}`:                          {SessionID: ptr("1.10")},
		`{"session_id":true}`:                          {SessionID: ptr("true")},
		`{"session_id":""}`:                            {SessionID: ptr("")},
		`{"end_turn":"true"}`:                          {EndTurn: true},
		`{"end_turn":"False"}`:                         {},
		`{"end_turn":""}`:                              {},
		`{"end_turn":2}`:                               {EndTurn: true},
		`{"end_turn":0}`:                               {},
		`{"total_session_cost":""}`:                    {},
		`{"total_session_cost":" "}`:                   {},
		`{"total_session_cost":0}`:                     {TotalSessionCost: ptr(0.0)},
		`{"total_session_cost":"1.5"}`:                 {TotalSessionCost: ptr(1.5)},
		`{"total_session_cost":1e5}`:                   {TotalSessionCost: ptr(1e5)},
		`{"total_session_cost":"NaN"}`:                 {},
		`{"total_session_cost":1e999}`:                 {},
		`{"compaction_cost":"0.25"}`:                   {CompactionCost: 0.25},
		`{"compaction_cost":1,"compaction_cost":null}`: {},
	} {
		v := good(t, c, record)
		require.Positive(t, v.Known)
		v.Known = 0
		require.Equal(t, want, v, "%s", record)
	}
}

func TestWrongTypesArePoison(t *testing.T) {
	c := harbor(t)
	for _, record := range []string{
		`{"session_id":{}}`, `{"session_id":[]}`, `{"think_input_tokens":true}`, `{"think_input_tokens":"five"}`,
		`{"think_input_tokens":"3.7"}`, `{"think_input_tokens":2147483648}`, `{"think_input_tokens":1e300}`,
		`{"think_input_tokens":{}}`, `{"total_session_cost":true}`, `{"total_session_cost":"0x1p4"}`,
		`{"total_session_cost":"many"}`, `{"total_session_cost":[]}`, `{"end_turn":"yes"}`, `{"end_turn":{}}`,
		`{"previous_messages":{}}`, `{"previous_messages":""}`, `{"previous_messages":["text"]}`,
		`{"last_input_message":"text"}`, `{"last_input_message":[]}`, `{"tool_uses":{}}`, `{"tool_uses":[5]}`,
		`{"tool_uses":[{"input":[]}]}`, `[]`, `"text"`, `5`, `true`,
	} {
		poison(t, c.ThinkRequestResponse.Codec(), record, ErrType)
	}
	for _, field := range []string{`"text"`, `""`, `5`, `true`, `[]`} {
		poison(t, c.MessageInput.Codec(), `{"metadata":`+field+`}`, ErrType)
		poison(t, c.ToolUse.Codec(), `{"input":`+field+`}`, ErrType)
		poison(t, c.MessageOutput.Codec(), `{"reply_to":`+field+`}`, ErrType)
		poison(t, c.ReplyTo.Codec(), field, ErrType)
	}
	poison(t, c.EnrichedMessageInput.Codec(), `{"history":[1]}`, ErrType)
	poison(t, c.ToolUseResult.Codec(), `{"latency_ms":9223372036854775808}`, ErrType)
	poison(t, c.ToolUseAllComplete.Codec(), `{"results":[[]]}`, ErrType)
	poison(t, c.MessageOutput.Codec(), `{"error":"text"}`, ErrType)
	poison(t, c.ReplyTo.Codec(), `{"callbackService":{}}`, ErrType)
}

func TestValuesThatAreNotRecordsArePoison(t *testing.T) {
	c := harbor(t).MessageInput.Codec()
	poison(t, c, ``, ErrEmpty)
	poison(t, c, `null`, ErrNull)
	poison(t, c, ` null `, ErrNull)
	for _, record := range []string{
		` `, `{`, `{"role"`, `{"role":`, `{"role":"user"`, `{"role":"user",}`, `{role:"user"}`, `nul`, `{"content":[1,]}`,
		`{"content":01}`, `{"content":"\x"}`, "{\"content\":\"a\nb\"}", `{"a":1]`, "\ufeff{}", `{"content":}`,
	} {
		poison(t, c, record, ErrSyntax)
	}
	for _, record := range []string{
		"{\"role\":\"\xff\"}", "{\"unknown\":\"\xc3\"}", "{\"content\":[\"\xed\xa0\x80\"]}", "\xff",
	} {
		poison(t, c, record, ErrUTF8)
	}
	require.True(t, c.Unmarshal(nil).Tombstone())
}

func TestTextAfterTheFirstValueIsIgnored(t *testing.T) {
	c := harbor(t)
	for _, rest := range []string{" ", "\n{}", " }", "trailing", "\xff"} {
		require.Equal(t, Message{Role: ptr("user")}, good(t, c.MessageInput.Codec(), `{"role":"user"}`+rest))
		require.Equal(t, `{"a":1}`, string(good(t, c.ReplyTo.Codec(), ` {"a":1}`+rest).Raw))
	}
}

func TestFieldNamesAreCaseSensitiveAndUnknownFieldsSkipped(t *testing.T) {
	c := harbor(t).MessageInput.Codec()
	require.Equal(t, Message{}, good(t, c, `{"Session_ID":"s","sessionId":"s","SESSION_ID":5,"other":{"role":"x"}}`))
	require.Equal(t, Message{SessionID: ptr("s")}, good(t, c, `{"session\u005fid":"s"}`), "escaped names are names")
	require.Equal(t, Message{SessionID: ptr("b")}, good(t, c, `{"session_id":"a","session_id":"b"}`))
}

func TestLegacyNamesAreReadAndTheLaterOneCounts(t *testing.T) {
	c := harbor(t).ThinkRequestResponse.Codec()
	v := good(t, c, `{"cost":1,"prev_session_cost":2,"input_tokens":3,"output_tokens":4,"messages":[{"role":"user"}]}`)
	require.Equal(t, ThinkResponse{
		TotalSessionCost: ptr(1.0), PreviousSessionCost: ptr(2.0), ThinkInputTokens: 3, ThinkOutputTokens: 4,
		LastInputResponse: Raw(`[{"role":"user"}]`), OldMessages: true, Known: 5,
	}, v)
	require.Equal(t, 2.0, *good(t, c, `{"cost":1,"total_session_cost":2}`).TotalSessionCost)
	require.Equal(t, 1.0, *good(t, c, `{"total_session_cost":2,"cost":1}`).TotalSessionCost)
	require.Nil(t, good(t, c, `{"last_input_response":[],"messages":null}`).LastInputResponse)
}

func TestCostOfACamelCaseStepIsAddedToThePreviousCost(t *testing.T) {
	c := harbor(t).ThinkRequestResponse.Codec()
	for record, want := range map[string]*float64{
		`{"cost":0.5,"prevSessionCost":0.25}`:                          ptr(0.75),
		`{"prevSessionCost":0.25,"cost":0.5}`:                          ptr(0.75),
		`{"cost":0.5,"prevSessionCost":null}`:                          ptr(0.5),
		`{"cost":null,"prevSessionCost":0.25}`:                         ptr(0.25),
		`{"cost":null,"prevSessionCost":null}`:                         nil,
		`{"prevSessionCost":0.25}`:                                     ptr(0.25),
		`{"cost":0.5,"prev_session_cost":0.25}`:                        ptr(0.5),
		`{"cost":0.5,"total_session_cost":0.5,"prevSessionCost":0.25}`: ptr(0.5),
		`{"total_session_cost":0.5,"previous_session_cost":0.25}`:      ptr(0.5),
	} {
		require.Equal(t, want, good(t, c, record).TotalSessionCost, record)
	}
}

func TestCamelCaseThinkResponsesAreRead(t *testing.T) {
	v := good(t, harbor(t).ThinkRequestResponse.Codec(), `{"sessionId":"s","userId":"u","cost":0.5,`+
		`"prevSessionCost":0.25,"inputTokens":7,"outputTokens":8,"previousMessages":[],`+
		`"lastInputMessage":{"sessionId":"s","role":"user"},`+
		`"lastInputResponse":[{"sessionId":"s","userId":"u","role":"assistant","content":"hi","timestamp":"t"}],`+
		`"toolUses":[{"toolUseId":"1","toolId":"2","name":"n","input":{},"sessionId":"s","totalTools":1,"timestamp":"t"}],`+
		`"endTurn":true,"timestamp":"t"}`)
	require.Equal(t, ThinkResponse{
		SessionID: ptr("s"), UserID: ptr("u"), TotalSessionCost: ptr(0.75), PreviousSessionCost: ptr(0.25),
		ThinkInputTokens: 7, ThinkOutputTokens: 8, PreviousMessages: Raw(`[]`),
		LastInputMessage:  Raw(`{"sessionId":"s","role":"user"}`),
		LastInputResponse: Raw(`[{"sessionId":"s","userId":"u","role":"assistant","content":"hi","timestamp":"t"}]`),
		ToolUses: []ToolUseItem{{
			ToolUseID: ptr("1"), ToolID: ptr("2"), Name: ptr("n"), Input: Raw(`{}`), SessionID: ptr("s"), TotalTools: 1,
			Timestamp: ptr("t"),
		}},
		EndTurn: true, Timestamp: ptr("t"), Known: 12,
	}, v)
	elements, err := Elements(v.LastInputResponse)
	require.NoError(t, err)
	m, err := DecodeMessage(elements[0])
	require.NoError(t, err)
	require.Equal(t, Message{
		SessionID: ptr("s"), UserID: ptr("u"), Role: ptr("assistant"), Content: Raw(`"hi"`), Timestamp: ptr("t"),
	}, m)
}

func TestThinkResponseWithoutKnownFieldsIsPoison(t *testing.T) {
	c := harbor(t).ThinkRequestResponse.Codec()
	poison(t, c, `{}`, ErrUnknown)
	poison(t, c, `{"answer":"42","Timestamp":"t"}`, ErrUnknown)
}

func TestNullToolUsesAreOmittedAndTheirIndexesKept(t *testing.T) {
	c := harbor(t).ThinkRequestResponse.Codec()
	v := good(t, c, `{"tool_uses":[null,{"name":"a"},null,null,{"name":"b"}]}`)
	require.Equal(t, []ToolUseItem{{Name: ptr("a")}, {Name: ptr("b")}}, v.ToolUses)
	require.Equal(t, []int{0, 2, 3}, v.NullToolUses)
	v = good(t, c, `{"tool_uses":[null]}`)
	require.Equal(t, []ToolUseItem{}, v.ToolUses)
	require.Equal(t, []int{0}, v.NullToolUses)
	require.Nil(t, good(t, c, `{"tool_uses":null}`).ToolUses)
}

func TestToolResultThatIsNotAnObjectIsWrapped(t *testing.T) {
	c := harbor(t).ToolUseResult.Codec()
	for in, want := range map[string]string{
		`"text"`: `{"result":"text"}`, `5`: `{"result":5}`, `[1, 2]`: `{"result":[1, 2]}`, `true`: `{"result":true}`,
		`{"a":1}`: `{"a":1}`, `{}`: `{}`,
	} {
		require.Equal(t, want, string(good(t, c, `{"result":`+in+`}`).Result))
	}
	require.Nil(t, good(t, c, `{"result":null}`).Result)
	require.Nil(t, good(t, c, `{}`).Result)
}

func TestFreeFormValuesPassByteForByte(t *testing.T) {
	c := harbor(t).MessageInput.Codec()
	for _, content := range []string{
		`1.10`, `1e5`, `123456789012345678901234567890`, `"\u00e9<>&\/é"`, `{ "b" : 1,"a":[ ] , "b":2}`, `"\ud800"`,
		`[null]`,
		`false`,
	} {
		record := `{"session_id":null,"user_id":null,"role":null,"content":` + content + `,"timestamp":null,"metadata":null}`
		m := good(t, c, record)
		require.Equal(t, content, string(m.Content))
		again, err := c.Marshal(m)
		require.NoError(t, err)
		require.Equal(t, record, string(again))
	}
}

func TestRecordsNestedTooDeepArePoison(t *testing.T) {
	nested := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	c := harbor(t)
	poison(t, c.MessageInput.Codec(), `{"content":`+nested(MaxValueDepth)+`}`, ErrDepth)
	poison(t, c.MessageInput.Codec(), `{"unknown":`+nested(10_000)+`}`, ErrDepth)
	poison(t, c.ToolUseResult.Codec(), `{"result":`+nested(MaxValueDepth)+`}`, ErrDepth)
	poison(t, c.ThinkRequestResponse.Codec(), `{"timestamp":"t","x":`+nested(MaxDepth)+`}`, ErrDepth)
	good(t, c.ThinkRequestResponse.Codec(), `{"timestamp":"t","x":`+nested(MaxDepth-1)+`}`)
	good(t, c.MessageInput.Codec(), `{"content":"`+nested(10_000)+`\"`+nested(10_000)+`"}`)
	good(t, c.MessageInput.Codec(), `{"content":[`+strings.Repeat("[],", 5_000)+`[]]}`)
}

func TestDeepestToolResultStaysReadableInOuterRecords(t *testing.T) {
	c := harbor(t)
	levels := MaxValueDepth - 1
	deepest := `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	result := good(t, c.ToolUseResult.Codec(), `{"result":`+deepest+`}`)
	message := Message{
		Content:  Raw(`[{"result":` + string(result.Result) + `}]`),
		Metadata: Raw(`{"tool_results":[` + string(EncodeToolResult(result)) + `]}`),
	}
	enriched, err := c.EnrichedMessageInput.Codec().Marshal(EnrichedMessage{
		History: Splice(EncodeMessage(message)), LatestInput: EncodeMessage(message),
	})
	require.NoError(t, err)
	good(t, c.EnrichedMessageInput.Codec(), string(enriched))
	think, err := c.ThinkRequestResponse.Codec().Marshal(ThinkResponse{PreviousMessages: Splice(EncodeMessage(message))})
	require.NoError(t, err)
	good(t, c.ThinkRequestResponse.Codec(), string(think))
}

func TestErrorsNameFieldsAndDoNotQuoteTheRecord(t *testing.T) {
	c := harbor(t)
	d := c.ThinkRequestResponse.Codec().Unmarshal([]byte(`{"tool_uses":[{},{"tool_use_id":{"secret":"secret"}}]}`))
	require.EqualError(t, d.Err,
		"field tool_uses: element 1: field tool_use_id: topics: wrong type: got object, want string")
	for _, record := range []string{
		`{"secret":{"secret":[secret]}}`, `{"role":"secret`, `secret`, `{"session_id":["secret"]}`,
		`{"metadata":"secret"}`, `"secret"`, `{"secret":secret}`, `{"metadata":{"secret":1`,
	} {
		d := c.MessageInput.Codec().Unmarshal([]byte(record))
		require.Error(t, d.Err)
		require.NotContains(t, d.Err.Error(), "secret")
	}
	for _, record := range []string{
		`{"total_session_cost":"secret"}`, `{"end_turn":"secret"}`, `{"think_input_tokens":"secret"}`,
	} {
		d := c.ThinkRequestResponse.Codec().Unmarshal([]byte(record))
		require.ErrorIs(t, d.Err, ErrType)
		require.NotContains(t, d.Err.Error(), "secret")
	}
}

func TestControlWithAnUnknownActionIsPoison(t *testing.T) {
	c := harbor(t).SessionControl.Codec()
	require.Equal(t, Control{Action: ActionCancel, RequestID: ptr("7")}, good(t, c, `{"action":"cancel","request_id":7}`))
	for _, record := range []string{`{}`, `{"action":null}`, `{"action":"Cancel"}`, `{"action":"stop"}`} {
		poison(t, c, record, ErrType)
	}
}

func TestThinkFailureIsReadInBothShapes(t *testing.T) {
	c := harbor(t).ThinkDLQ.Codec()
	for record, want := range map[string]ThinkFailure{
		`{"session_id":"s","history":[],"latest_input":{"role":"user"}}`: {LatestInput: Raw(`{"role":"user"}`)},
		`{"originalValue":"{\"latest_input\":{\"role\":\"user\"}}","error":"upstream 529"}`: {
			LatestInput: Raw(`{"role":"user"}`), Reason: ptr("upstream 529"),
		},
		`{"originalValue":null,"error":"e"}`:                   {Reason: ptr("e")},
		`{"originalValue":"no JSON","error":"e"}`:              {Reason: ptr("e")},
		`{"originalValue":"{\"latest_input\":5}","error":"e"}`: {Reason: ptr("e")},
		`{"originalValue":"{\"latest_input\":{}","error":"e"}`: {Reason: ptr("e")},
		string(records(t, "think-dlq")[0]):                     {Reason: ptr("upstream 529")},
		`{"other":1}`:                                          {},
	} {
		require.Equal(t, want, good(t, c, record), "%s", record)
	}
	written, err := c.Marshal(ThinkFailure{LatestInput: Raw(`{"role":"user"}`), Reason: ptr("e")})
	require.NoError(t, err)
	require.Equal(t, ThinkFailure{LatestInput: Raw(`{"role":"user"}`), Reason: ptr("e")}, good(t, c, string(written)))
}

func TestRouteIsWrittenWithTheBytesItWasReadFrom(t *testing.T) {
	c := harbor(t).ReplyTo.Codec()
	record := ` { "other" : 1.10, "callbackService":"harbor","request_id":"r"} `
	r := good(t, c, record)
	require.Equal(t, Route{
		CallbackService: ptr("harbor"), RequestID: ptr("r"), Raw: Raw(strings.TrimSpace(record)),
	}, r)
	again, err := c.Marshal(r)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(record), string(again))
	require.Equal(t, Route{Raw: Raw(`{}`)}, good(t, c, `{}`))
	built, err := c.Marshal(Route{CallbackService: ptr("harbor")})
	require.NoError(t, err)
	require.Equal(t, `{"callbackService":"harbor"}`, string(built))
}

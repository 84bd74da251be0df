package crew_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/processors/crew/internal/transcript"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

const agentID = "a1"

// session has a transcript that is encoded and decoded between two updates, as in a row.
type session struct {
	t   require.TestingT
	row []byte
}

func (s *session) do(apply func(*transcript.Transcript) []transcript.Change) []transcript.Change {
	tr := s.transcript()
	changes := apply(tr)
	for _, c := range changes { // every event can be written
		_, err := json.Marshal(c.Fields)
		require.NoError(s.t, err)
	}
	var err error
	s.row, err = proto.MarshalOptions{Deterministic: true}.Marshal(tr)
	require.NoError(s.t, err)
	return changes
}

func (s *session) transcript() *transcript.Transcript {
	tr := &transcript.Transcript{}
	require.NoError(s.t, proto.Unmarshal(s.row, tr))
	return tr
}

func (s *session) apply(updates ...string) []transcript.Change { return s.updates(false, updates...) }

func (s *session) updates(replay bool, updates ...string) []transcript.Change {
	raw := make([]topics.Raw, len(updates))
	for i, u := range updates {
		raw[i] = topics.Raw(u)
	}
	return s.do(func(tr *transcript.Transcript) []transcript.Change { return tr.ApplyAll(agentID, raw, replay) })
}

func said(text string) string {
	raw, _ := json.Marshal(map[string]any{
		"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": text},
	}, json.Deterministic(true))
	return string(raw)
}

func content(block string) string {
	return `{"sessionUpdate":"agent_message_chunk","content":` + block + `}`
}

func toolCalls(changes []transcript.Change) (list []view.ToolCall) {
	for _, c := range changes {
		if call, ok := c.Fields.(transcript.Call); ok {
			list = append(list, call.ToolCall)
		}
	}
	return list
}

func TestA03_The11KindsRoundTripAndUnknownKindsAreKeptRaw(t *testing.T) {
	plan := `[{"content":"test","priority":"high","status":"pending"}]`
	for _, c := range []struct {
		update string
		event  string // empty for none
		fields string // of the event; empty for the raw update
		row    *transcript.Transcript
	}{
		// The choice for user_message_chunk: it is decoded and has no effect. Agents repeat the prompt with it, or the prompts of a
		// session that they load, which clients know from the events of the crew.
		{`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hi"}}`, "", "", &transcript.Transcript{}},
		{`{"sessionUpdate":"user_message_chunk","messageId":"m1","content":{"type":"image","data":"aaaa"}}`, "", "", &transcript.Transcript{}},
		{said("hi"), "agent:text", `{"agentId":"a1","text":"hi"}`, &transcript.Transcript{}},
		{
			`{"sessionUpdate":"agent_thought_chunk","messageId":"m1","content":{"type":"text","text":"hm"}}`,
			"agent:thinking", `{"agentId":"a1","text":"hm","messageId":"m1"}`, &transcript.Transcript{},
		},
		{
			`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Read","kind":"read","status":"in_progress","rawInput":{"a":1}}`,
			"agent:tool_call",
			`{"agentId":"a1","toolCall":{"toolCallId":"c1","title":"Read","kind":"read","status":"in_progress","rawInput":{"a":1}}}`,
			&transcript.Transcript{Calls: []*transcript.ToolCall{
				{Id: "c1", Title: "Read", Kind: "read", Status: "in_progress", RawInput: []byte(`{"a":1}`)},
			}},
		},
		{
			`{"sessionUpdate":"tool_call_update","toolCallId":"c1","rawOutput":"ok","locations":[{"path":"/a","line":3}]}`,
			"agent:tool_call",
			`{"agentId":"a1","toolCall":{"toolCallId":"c1","title":"","kind":"other","status":"pending","locations":[{"path":"/a","line":3}],"rawOutput":"ok"}}`,
			&transcript.Transcript{Calls: []*transcript.ToolCall{{
				Id: "c1", Kind: "other", Status: "pending", RawOutput: []byte(`"ok"`), Locations: []byte(`[{"path":"/a","line":3}]`),
			}}},
		},
		{
			`{"sessionUpdate":"plan","entries":` + plan + `}`, "agent:plan", `{"agentId":"a1","plan":` + plan + `}`,
			&transcript.Transcript{Plan: []byte(plan)},
		},
		{
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"x","description":"y"}]}`, "agent:update", "",
			&transcript.Transcript{Commands: []byte(`[{"name":"x","description":"y"}]`)},
		},
		{
			`{"sessionUpdate":"current_mode_update","currentModeId":"ask"}`, "agent:update", "",
			&transcript.Transcript{CurrentMode: "ask"},
		},
		{
			`{"sessionUpdate":"config_option_update","configOptions":[{"id":"model"}]}`, "agent:update", "",
			&transcript.Transcript{Options: []byte(`[{"id":"model"}]`)},
		},
		{`{"sessionUpdate":"session_info_update","title":"Work"}`, "agent:update", "", &transcript.Transcript{Title: "Work"}},
		{
			`{"sessionUpdate":"usage_update","used":5,"size":100}`, "agent:usage",
			`{"agentId":"a1","inputTokens":0,"outputTokens":0,"contextWindowUsed":5,"contextWindowSize":100}`,
			&transcript.Transcript{Used: 5, Size: 100},
		},
		{`{"sessionUpdate":"notice","severity":"warn","title":"Slow"}`, "agent:update", "", &transcript.Transcript{}},
		{`{"sessionUpdate":7}`, "agent:update", "", &transcript.Transcript{}},
	} {
		s := &session{t: t}
		changes := s.apply(c.update)
		require.True(t, proto.Equal(c.row, s.transcript()), "%s: %v", c.update, s.transcript())
		if c.event == "" {
			require.Empty(t, changes, c.update)
			continue
		}
		require.Len(t, changes, 1, c.update)
		require.Equal(t, c.event, changes[0].Event)
		if c.fields == "" {
			c.fields = `{"agentId":"a1","update":` + c.update + `}`
		}
		fields, err := json.Marshal(changes[0].Fields)
		require.NoError(t, err)
		require.JSONEq(t, c.fields, string(fields))
	}
	s := &session{t: t}
	require.Empty(t, s.apply("", "{", `{"sessionUpdate":`), "bytes that are no JSON")
}

// A resource link is content of its own. An earlier crew server showed it as the text "[resource_link content]".
func TestA04_TextChunksConcatenateInOrderAndOtherContentIsAnEvent(t *testing.T) {
	s := &session{t: t}
	changes := s.apply(
		said("Hel"), said("lo "), said("world"),
		content(`{"type":"image","data":"aaaa"}`),
		content(`{"type":"audio","data":"bbbb","mimeType":"audio/ogg"}`),
		content(`{"type":"resource","resource":{"uri":"file:///a","text":"T","mimeType":"text/plain"}}`),
		content(`{"type":"resource","resource":{"uri":"file:///b","blob":"cccc"}}`),
		content(`{"type":"resource_link","uri":"file:///c","name":"c","mimeType":"text/x-go"}`),
		said("bye"), content(`{"type":"hologram"}`),
		`{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"new message"}}`,
	)
	block := func(b transcript.Block) transcript.Change {
		return transcript.Change{Event: "agent:content", Fields: transcript.Content{AgentID: agentID, Content: b}}
	}
	text := func(text, messageID string) transcript.Change {
		return transcript.Change{
			Event: "agent:text", Fields: transcript.Text{AgentID: agentID, Text: text, MessageID: messageID},
		}
	}
	require.Equal(t, []transcript.Change{
		text("Hello world", ""),
		block(transcript.Block{Type: "image", Data: "aaaa", MimeType: "image/png"}),
		block(transcript.Block{Type: "audio", Data: "bbbb", MimeType: "audio/ogg"}),
		block(transcript.Block{Type: "resource", Text: "T", URI: "file:///a", MimeType: "text/plain"}),
		block(transcript.Block{Type: "resource", URI: "file:///b"}),
		block(transcript.Block{Type: "resource_link", URI: "file:///c", Name: "c", MimeType: "text/x-go"}),
		text("bye\n[hologram content]\n", ""),
		text("new message", "m2"),
	}, changes)
}

func TestA05_ToolCallUpdateWithOnlyStatusKeepsTheRest(t *testing.T) {
	s := &session{t: t}
	s.apply(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Run","kind":"execute","rawInput":{"command":"ls"},
		"content":[{"type":"content","content":{"type":"text","text":"out"}}],"locations":[{"path":"/a"}]}`)
	want := view.ToolCall{
		ToolCallID: "c1", Title: "Run", Kind: "execute", Status: "completed", Content: "out",
		Locations: topics.Raw(`[{"path":"/a"}]`), RawInput: topics.Raw(`{"command":"ls"}`),
	}
	for _, update := range []string{
		`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":null,"title":null,"content":null,"kind":null}`,
	} {
		require.Equal(t, []view.ToolCall{want}, toolCalls(s.apply(update)))
	}
	// All other members count too.
	want.Title, want.Kind = "Look", "read"
	require.Equal(t, []view.ToolCall{want}, toolCalls(s.apply(
		`{"sessionUpdate":"tool_call_update","toolCallId":"c1","title":"Look","kind":"read"}`)))
	require.Equal(t, []view.ToolCall{want}, s.transcript().ToolCalls())
}

func TestA06_ContentOfAnUpdateReplacesAndAnUnknownIDIsAPartialEntry(t *testing.T) {
	s := &session{t: t}
	update := func(id, content string) view.ToolCall {
		calls := toolCalls(s.apply(`{"sessionUpdate":"tool_call_update","toolCallId":"` + id + `","content":` + content + `}`))
		require.Len(t, calls, 1)
		return calls[0]
	}
	s.apply(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Run","content":[{"type":"content","content":{"type":"text","text":"one"}}]}`)
	require.Equal(t, "two\nthree", update("c1",
		`[{"type":"content","content":{"type":"text","text":"two"}},{"type":"content","content":{"type":"text","text":"three"}}]`).Content)
	require.Empty(t, update("c1", `[]`).Content)

	require.Equal(t, view.ToolCall{ToolCallID: "c2", Kind: "other", Status: "pending", Content: "late"},
		update("c2", `[{"type":"content","content":{"type":"text","text":"late"}}]`))
	require.Len(t, s.transcript().ToolCalls(), 2)
	require.Empty(t, s.apply(`{"sessionUpdate":"tool_call_update","status":"completed"}`), "an update of no call")
}

func TestA07_AnEmptyPlanClears(t *testing.T) {
	s := &session{t: t}
	first := `[{"content":"a","priority":"low","status":"pending"},{"content":"b","priority":"low","status":"pending"}]`
	s.apply(`{"sessionUpdate":"plan","entries":` + first + `}`)
	require.JSONEq(t, first, string(s.transcript().GetPlan()))
	second := `[{"content":"c","priority":"high","status":"completed"}]`
	s.apply(`{"sessionUpdate":"plan","entries":` + second + `}`)
	require.JSONEq(t, second, string(s.transcript().GetPlan()), "the whole plan")
	changes := s.apply(`{"sessionUpdate":"plan","entries":[]}`)
	require.Equal(t, []transcript.Change{
		{Event: "agent:plan", Fields: transcript.Plan{AgentID: agentID, Plan: topics.Raw("[]")}},
	}, changes)
	require.Nil(t, s.transcript().GetPlan())
}

func TestA08_ACompactionIsRaisedOnceBelow70Percent(t *testing.T) {
	used := func(s *session, used int) []transcript.Change {
		return s.apply(fmt.Sprintf(`{"sessionUpdate":"usage_update","used":%d,"size":200000}`, used))
	}
	for _, c := range []struct {
		before, after int
		percent       int64 // 0 for no compaction
	}{
		{20_000, 13_999, 30},
		{20_000, 14_000, 0},
		{10_001, 7_000, 30},
		{10_000, 1_000, 0},
		{9_000, 1_000, 0},
		{150_000, 20_000, 87},
		{20_000, 30_000, 0},
		{20_000, 0, 100},
	} {
		s := &session{t: t}
		require.Len(t, used(s, c.before), 1)
		changes := used(s, c.after)
		require.Equal(t, "agent:usage", changes[0].Event)
		require.EqualValues(t, c.after, changes[0].Fields.(transcript.Usage).ContextWindowUsed)
		require.EqualValues(t, 200_000, changes[0].Fields.(transcript.Usage).ContextWindowSize)
		if c.percent == 0 {
			require.Len(t, changes, 1, c)
			continue
		}
		require.Equal(t, []transcript.Change{{Event: "agent:context_compacted", Fields: transcript.Compacted{
			AgentID: agentID, PreviousUsed: int64(c.before), CurrentUsed: int64(c.after), PercentDrop: c.percent,
		}}}, changes[1:], c)
		require.Len(t, used(s, c.after), 1, "once")
	}
}

func TestA09_CostIsNullOrAnAmountInACurrency(t *testing.T) {
	s := &session{t: t}
	usage := func(cost string) transcript.Usage {
		return s.apply(`{"sessionUpdate":"usage_update","used":1,"size":2` + cost + `}`)[0].Fields.(transcript.Usage)
	}
	require.Nil(t, usage(``).Cost)
	require.Nil(t, usage(`,"cost":null`).Cost)
	dollars := usage(`,"cost":{"amount":0.10,"currency":"USD"}`)
	require.JSONEq(t, `{"amount":0.10,"currency":"USD"}`, string(dollars.Cost))
	require.Equal(t, topics.Raw("0.10"), dollars.CostUSD)
	require.Equal(t, dollars, usage(``), "absent means unchanged")
	euros := usage(`,"cost":{"amount":2,"currency":"EUR"}`)
	require.JSONEq(t, `{"amount":2,"currency":"EUR"}`, string(euros.Cost))
	require.Nil(t, euros.CostUSD)
	require.Nil(t, usage(`,"cost":{"amount":"2","currency":"EUR"}`).Cost, "no number")
	require.Nil(t, usage(`,"cost":null`).Cost)
}

func TestTokensOfAnAnswerReplaceThoseBefore(t *testing.T) {
	s := &session{t: t}
	spent := func(usage string) []transcript.Change {
		return s.do(func(tr *transcript.Transcript) []transcript.Change { return tr.Spent(agentID, topics.Raw(usage)) })
	}
	require.Empty(t, spent(""))
	require.Empty(t, spent("null"))
	spent(`{"inputTokens":10,"outputTokens":5,"totalTokens":15,"cachedReadTokens":3}`)
	require.Equal(t, transcript.Usage{AgentID: agentID, InputTokens: 20, OutputTokens: 8, CacheReadTokens: 3},
		spent(`{"inputTokens":20,"outputTokens":8,"totalTokens":28}`)[0].Fields)
}

func TestAReplayHasNoEventsAndOnlyStateCounts(t *testing.T) {
	s := &session{t: t}
	require.Empty(t, s.updates(true,
		said("⟦⟦ BROADCAST {} ⟧⟧"), content(`{"type":"image","data":"a"}`),
		`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Run"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}`,
		`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"low","status":"pending"}]}`,
		`{"sessionUpdate":"usage_update","used":20000,"size":200000}`,
		`{"sessionUpdate":"usage_update","used":1000,"size":200000}`,
		`{"sessionUpdate":"current_mode_update","currentModeId":"ask"}`,
		`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"x","description":"y"}]}`,
		`{"sessionUpdate":"later"}`,
	))
	tr := s.transcript()
	require.Empty(t, tr.ToolCalls())
	require.NotNil(t, tr.GetPlan())
	require.EqualValues(t, 1000, tr.Used)
	require.Equal(t, "ask", tr.CurrentMode)
	require.NotEmpty(t, tr.Commands)
}

func TestTheEndOfATurnClosesOpenCalls(t *testing.T) {
	s := &session{t: t}
	s.apply(
		`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"a","status":"in_progress"}`,
		`{"sessionUpdate":"tool_call","toolCallId":"c2","title":"b","status":"completed"}`,
		`{"sessionUpdate":"tool_call","toolCallId":"c3","title":"c"}`,
	)
	end := func() []transcript.Change {
		return s.do(func(tr *transcript.Transcript) []transcript.Change { return tr.EndTurn(agentID) })
	}
	closed := toolCalls(end())
	require.Len(t, closed, 2)
	require.Equal(t, "c1", closed[0].ToolCallID)
	require.Equal(t, "failed", closed[0].Status)
	require.Equal(t, "c3", closed[1].ToolCallID)
	require.Empty(t, end())
}

// Some agents send no tool_call before they ask for permission.
func TestAPermissionRequestAddsItsCall(t *testing.T) {
	s := &session{t: t}
	asked := func(call string) []transcript.Change {
		return s.do(func(tr *transcript.Transcript) []transcript.Change { return tr.Asked(agentID, topics.Raw(call)) })
	}
	require.Empty(t, asked(""))
	require.Equal(t, []view.ToolCall{{ToolCallID: "c1", Title: "Run ls", Kind: "execute", Status: "pending"}},
		toolCalls(asked(`{"toolCallId":"c1","title":"Run ls","kind":"execute"}`)))
	s.apply(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"ls","kind":"execute","status":"in_progress"}`)
	require.Equal(t, []view.ToolCall{{ToolCallID: "c1", Title: "ls", Kind: "execute", Status: "in_progress"}}, s.transcript().ToolCalls())
}

func TestCallsOfAnEarlierSessionDoNotChange(t *testing.T) {
	s := &session{t: t}
	s.apply(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"old","status":"completed"}`,
		`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"low","status":"pending"}]}`)
	s.do(func(tr *transcript.Transcript) []transcript.Change {
		tr.NewSession()
		tr.SessionReady(topics.Raw(`{"currentModeId":"code","availableModes":[{"id":"code","name":"Code"}]}`), topics.Raw(`[{"id":"m"}]`))
		return nil
	})
	require.Nil(t, s.transcript().GetPlan())
	require.Equal(t, "code", s.transcript().CurrentMode)
	require.JSONEq(t, `[{"id":"code","name":"Code"}]`, string(s.transcript().Modes))
	require.JSONEq(t, `[{"id":"m"}]`, string(s.transcript().Options))
	s.apply(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"new"}`)
	calls := s.transcript().ToolCalls()
	require.Len(t, calls, 2)
	require.Equal(t, "old", calls[0].Title)
	require.Equal(t, "new", calls[1].Title)
}

func TestUpdatesOfACallInABatchAreOneEventPerStatus(t *testing.T) {
	s := &session{t: t}
	update := `{"sessionUpdate":"tool_call_update","toolCallId":"c1","title":"%d"}`
	changes := s.apply(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"0"}`, fmt.Sprintf(update, 1), fmt.Sprintf(update, 2),
		`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"in_progress"}`, said("x"), fmt.Sprintf(update, 3))
	calls := toolCalls(changes)
	require.Len(t, calls, 3)
	require.Equal(t, []string{"2", "2", "3"}, []string{calls[0].Title, calls[1].Title, calls[2].Title})
}

func TestContentIsFlattenedAndCut(t *testing.T) {
	for content, text := range map[string]string{
		`[{"type":"content","content":{"type":"text","text":"a"}},{"type":"content","content":{"type":"text","text":"b"}}]`: "a\nb",
		`[{"type":"content","content":{"type":"resource","resource":{"uri":"file:///a","text":"T"}}}]`:                      "📎 file:///a\nT",
		`[{"type":"content","content":{"type":"resource","resource":{"uri":"file:///a","blob":"aa"}}}]`:                     "📎 file:///a",
		`[{"type":"content","content":{"type":"resource_link","uri":"file:///a","name":"a"}}]`:                              "📎 file:///a",
		`[{"type":"content","content":{"type":"image","data":"aaaa","mimeType":"image/png"}}]`:                              "[image content]",
		`[{"type":"diff","path":"/a","newText":"b"}]`:                                                                       `{"type":"diff","path":"/a","newText":"b"}`,
		`[{"type":"terminal","terminalId":"t1"}]`:                                                                           `{"type":"terminal","terminalId":"t1"}`,
		`["plain"]`: "plain", `"plain"`: "plain", `{"type":"text","text":"a"}`: "a", `[]`: "", ``: "", `[null]`: "",
	} {
		require.Equal(t, text, transcript.Flatten(topics.Raw(content)), content)
	}
	long := transcript.Flatten(topics.Raw(`["` + strings.Repeat("é", 5000) + `"]`))
	require.LessOrEqual(t, len(long), 4<<10)
	require.True(t, strings.HasSuffix(long, "é…"))
}

package invoke

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// testdata/parts.jsonl lists the parts of each event.
func TestEventsBecomeParts(t *testing.T) {
	for _, c := range table(t, "testdata/parts.jsonl") {
		t.Run(textAt(t, c, "name"), func(t *testing.T) {
			p := newProjection()
			parts := []topics.Raw{}
			for _, raw := range elementsOf(at(t, c, "events")) {
				e, err := folder.DecodeEvent(raw)
				require.NoError(t, err)
				for _, part := range p.event(e) {
					parts = append(parts, bytes.Clone(part))
				}
			}
			require.Equal(t, compacted(at(t, c, "parts")), compacted(array(parts)))
		})
	}
}

// table returns the lines of a file with one JSON object per line.
func table(t *testing.T, name string) []string {
	t.Helper()
	file, err := os.ReadFile(name)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(file)), "\n")
}

func TestStreamEndHasStateUsageAndReason(t *testing.T) {
	for name, c := range map[string]struct{ events, want string }{
		"nothing": {"", `{"type":"finish-step"}
			{"type":"data-agent-error","data":{"code":"no_output","errorText":"The agent produced no output."}}
			{"type":"error","errorText":"The agent produced no output."}
			{"type":"finish","messageMetadata":{"traceId":"t"}}`},
		"reasoning and a passing status are no output": {
			`{"type":"thought","data":{"text":"hm"}}
			{"type":"data","data":{"name":"s","data":1,"transient":true}}
			{"type":"file","data":{"url":"u"}}`,
			`{"type":"finish-step"}
			{"type":"data-agent-error","data":{"code":"no_output","errorText":"The agent produced no output."}}
			{"type":"error","errorText":"The agent produced no output."}
			{"type":"finish","messageMetadata":{"traceId":"t"}}`,
		},
		"a failure is shown once": {
			`{"type":"error","data":{"message":"m"}}
			{"type":"done","data":{}}`,
			`{"type":"finish-step"}
			{"type":"finish","messageMetadata":{"traceId":"t"}}`,
		},
		"the last reason and the last totals": {
			`{"type":"message","data":{"text":"a"}}
			{"type":"usage","data":{"input":1,"cost":0.5}}
			{"type":"usage","data":{"input":0,"output":7,"total":null}}
			{"type":"done","data":{"stopReason":" Paused "}}
			{"type":"done","data":{}}`,
			`{"type":"finish-step"}
			{"type":"finish","finishReason":"other","messageMetadata":{"usage":{"input":0,"output":7},"traceId":"t"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProjection()
			for _, e := range scripted(t, c.events).events {
				p.event(e)
			}
			var list []string
			for _, part := range p.end(outcome{}, "t") {
				list = append(list, string(part))
			}
			require.Equal(t, strings.ReplaceAll(c.want, "\t", ""), strings.Join(list, "\n"))
		})
	}
}

func TestStopReasonBecomesAFinishReason(t *testing.T) {
	for in, want := range map[string]string{
		"stop": "stop", "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool-calls",
		"function_call": "tool-calls", "refusal": "content-filter", "paused": "other", "cancelled": "other", "": "other",
		" END_TURN ": "stop", "whatever": "other", "error": "error", "content-filter": "content-filter",
	} {
		require.Equal(t, want, finishReason(in), in)
	}
}

func TestLastAssistantMessageIsContinued(t *testing.T) {
	s := newSite(t, scripted(t, hello))
	for messages, want := range map[string]string{
		`[{"id":"m-7","role":"assistant","parts":[]}]`:                          "m-7",
		`[{"id":"m-7","role":"assistant","parts":[]},{"id":"u","role":"user"}]`: "msg-" + traceID,
		`[{"id":"","role":"assistant"}]`:                                        "msg-" + traceID,
		`[{"id":7,"role":"assistant"}]`:                                         "msg-" + traceID,
		`[]`:                                                                    "msg-" + traceID,
		`["x"]`:                                                                 "msg-" + traceID,
	} {
		body := `{"data":{"inputs":{"messages":` + messages + `}}}`
		a := s.invoke(body, "Accept", "text/event-stream", HeaderFormat, "vercel")
		require.Contains(t, a.body, `"messageId": "`+want+`"`, messages)
	}
	b := s.invoke(`{"data":{"inputs":{"messages":[{"id":"m-7","role":"assistant","parts":[]}]}}}`, HeaderFormat, "vercel")
	require.Equal(t, `[{"id":"m-7","role":"assistant","parts":[{"type":"text","text":"Hello, wörld"}]}]`,
		string(at(t, b.body, "data", "outputs", "messages")))
	require.Equal(t, "vercel", b.header.Get(HeaderFormat))
	require.Equal(t, "v1", b.header.Get(headerFormatVersion))
	require.Equal(t, http.StatusOK, b.status)
}

func TestBatchBecomesUIMessages(t *testing.T) {
	messages := elementsOf(topics.Raw(`[{"role":"assistant","content":""},
		{"role":"tool","content":"","tool_call_id":"t1","tool_name":"search","input":{"q":1}},
		{"role":"tool","content":"","tool_call_id":null,"tool_name":null,"input":null},
		{"role":"tool","content":{"n":1},"tool_call_id":"t1","is_error":null},
		{"role":"tool","content":"no","tool_call_id":"t9","is_error":true},
		{"role":"assistant","content":null},{"role":"assistant","content":[1]},{"role":"user","content":"x"}]`))
	var list []string
	for _, m := range uiMessages(messages, "t", "m-7") {
		list = append(list, string(respace(nil, m, false)))
	}
	require.Equal(t, []string{
		`{"id":"msg-t-1","role":"assistant","parts":[]}`,
		`{"id":"msg-t-2","role":"assistant","parts":[{"type":"dynamic-tool","toolName":"search","toolCallId":"t1",` +
			`"state":"output-available","input":{"q":1},"output":{"n":1}}]}`,
		`{"id":"msg-t-3","role":"assistant","parts":[{"type":"dynamic-tool","toolName":"unknown_tool","toolCallId":"",` +
			`"state":"input-available","input":null}]}`,
		`{"id":"msg-t-4","role":"assistant","parts":[{"type":"dynamic-tool","toolName":"unknown_tool","toolCallId":"t9",` +
			`"state":"output-error","input":null,"errorText":"no"}]}`,
		`{"id":"msg-t-5","role":"assistant","parts":[]}`,
		`{"id":"m-7","role":"assistant","parts":[{"type":"text","text":"[1]"}]}`,
		`{"id":"msg-t-7","role":"user","parts":[{"type":"text","text":"x"}]}`,
	}, list)
}

// testdata/messages.jsonl lists messages in the Vercel form and their canonical form; empty for a message that is dropped.
func TestVercelMessagesBecomeCanonical(t *testing.T) {
	for _, c := range table(t, "testdata/messages.jsonl") {
		sent, want := string(at(t, c, "sent")), string(at(t, c, "canonical"))
		r := canonical(Request{Data: topics.Raw(`{"parameters":{"a" : 1},"inputs":{"x":1,"messages":[` + sent + `]}}`)})
		require.Equal(t, `{"parameters":{"a" : 1},"inputs":{"x":1,"messages":`+want+`}}`, string(r.Data), sent)
	}
	r := canonical(Request{Data: topics.Raw(`{"inputs":{"messages":7}}`)})
	require.Equal(t, `{"inputs":{"messages":7}}`, string(r.Data))
}

// Every part of every corpus turn has the strings that the ai package's schema requires.
func TestPartsConformToTheSchema(t *testing.T) {
	required := map[string][]string{
		"text-start": {"id"}, "text-delta": {"id", "delta"}, "text-end": {"id"},
		"reasoning-start": {"id"}, "reasoning-delta": {"id", "delta"}, "reasoning-end": {"id"},
		"tool-input-start": {"toolCallId", "toolName"}, "tool-input-available": {"toolCallId", "toolName"},
		"tool-output-available": {"toolCallId"}, "tool-output-error": {"toolCallId", "errorText"},
		"tool-output-denied": {"toolCallId"}, "tool-approval-request": {"approvalId", "toolCallId"},
		"file": {"url", "mediaType"}, "error": {"errorText"}, "finish": nil, "finish-step": nil, "start-step": nil,
	}
	for _, g := range corpus(t) {
		p := newProjection()
		all := []topics.Raw{}
		for _, e := range g.script().events {
			for _, part := range p.event(e) {
				all = append(all, bytes.Clone(part))
			}
		}
		all = append(all, p.end(outcome{end: folder.End{}}, "t")...)
		for _, part := range all {
			kind, _ := text(member(part, "type"))
			names, known := required[kind]
			require.True(t, known || strings.HasPrefix(kind, "data-"), "%s: %s", g.ID, part)
			for _, name := range names {
				require.Equal(t, jsontext.KindString, kindOf(member(part, name)), "%s: %s", g.ID, part)
			}
		}
	}
}

func TestCallsWithEqualIDsAreOneCall(t *testing.T) {
	for value, want := range map[string]string{
		`"a"`: "a", `""`: "", "1": "1", "1.0": "1", "true": "1", "10e-1": "1", "0": "0", "-0.0": "0",
		"false": "0", "1.50": "1.5",
		"9007199254740993": "9007199254740993", "9007199254740993.0": "9007199254740992", "1e400": "+Inf",
	} {
		got, ok := idOf(topics.Raw(value))
		require.True(t, ok)
		require.Equal(t, ident{want, value[0] != '"'}, got, value)
	}
	for _, value := range []string{"", "null", "{}", "[]"} {
		_, ok := idOf(topics.Raw(value))
		require.False(t, ok, value)
	}
}

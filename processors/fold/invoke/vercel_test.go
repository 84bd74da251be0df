package invoke

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold"
)

// parts are those that events become, one a line, without the end's.
func parts(t *testing.T, events string) []string {
	t.Helper()
	p := newProjection()
	var list []string
	for _, e := range scripted(t, events).events {
		for _, part := range p.event(e) {
			list = append(list, string(respace(nil, part, false)))
		}
	}
	return list
}

// Contract 4.2 to 4.6: what each event becomes.
func TestEventsBecomeParts(t *testing.T) {
	for name, c := range map[string]struct{ events, want string }{
		"whole message": {
			`{"type":"message","data":{"text":"a"}}
			{"type":"message","data":{"text":null}}`,
			`{"type":"text-start","id":"text-1"}
			{"type":"text-delta","id":"text-1","delta":"a"}
			{"type":"text-end","id":"text-1"}
			{"type":"text-start","id":"text-2"}
			{"type":"text-delta","id":"text-2","delta":""}
			{"type":"text-end","id":"text-2"}`,
		},
		"orphans and what is no text are dropped, as by fold": {
			`{"type":"message_delta","data":{"id":"x","delta":"a"}}
			{"type":"message_end","data":{"id":"x"}}
			{"type":"message_start","data":{}}
			{"type":"message_delta","data":{"id":null,"delta":"a"}}
			{"type":"message_delta","data":{"delta":7}}
			{"type":"message_delta","data":"x"}`,
			`{"type":"text-start","id":"block"}
			{"type":"text-delta","id":"block","delta":"a"}`,
		},
		"reasoning": {
			`{"type":"thought","data":{"text":"hm"}}
			{"type":"thought_start","data":{"id":"reason-0"}}
			{"type":"thought_delta","data":{"id":"reason-0","delta":"h"}}
			{"type":"thought_end","data":{"id":"reason-0"}}`,
			`{"type":"reasoning-start","id":"reasoning-1"}
			{"type":"reasoning-delta","id":"reasoning-1","delta":"hm"}
			{"type":"reasoning-end","id":"reasoning-1"}
			{"type":"reasoning-start","id":"reason-0"}
			{"type":"reasoning-delta","id":"reason-0","delta":"h"}
			{"type":"reasoning-end","id":"reason-0"}`,
		},
		"a call, its refresh, its result": {
			`{"type":"tool_call","data":{"id":"t1","name":"search","input":{},"render":{"kind":"spec"}}}
			{"type":"tool_call","data":{"id":"t1","name":"other","rawInput":{"q":1},"render":{"kind":"spec"}}}
			{"type":"tool_result","data":{"id":"t1","output":"r","data":{"n":1},"render":{"kind":"connect"}}}`,
			`{"type":"tool-input-start","toolCallId":"t1","toolName":"search"}
			{"type":"tool-input-available","toolCallId":"t1","toolName":"search","input":{}}
			{"type":"data-render","data":{"toolCallId":"t1","render":{"kind":"spec"}}}
			{"type":"tool-input-available","toolCallId":"t1","toolName":"search","input":{"q":1}}
			{"type":"tool-output-available","toolCallId":"t1","output":{"n":1}}
			{"type":"data-render","data":{"toolCallId":"t1","render":{"kind":"connect"}}}`,
		},
		"calls without id or name, orphan results": {
			`{"type":"tool_call","data":{"id":null,"name":"x"}}
			{"type":"tool_call","data":{"id":"t1"}}
			{"type":"tool_result","data":{"id":"t2","output":"r"}}
			{"type":"tool_result","data":{"id":"t1"}}`,
			`{"type":"tool-input-start","toolCallId":"t1","toolName":"unknown_tool"}
			{"type":"tool-input-available","toolCallId":"t1","toolName":"unknown_tool","input":null}
			{"type":"tool-output-available","toolCallId":"t1","output":null}`,
		},
		"denied before failed": {
			`{"type":"tool_call","data":{"id":"t1","name":"x"}}
			{"type":"tool_result","data":{"id":"t1","isError":true,"denied":true,"output":"no"}}
			{"type":"tool_call","data":{"id":"t2","name":"x"}}
			{"type":"tool_result","data":{"id":"t2","isError":true,"output":{"a":1}}}
			{"type":"tool_call","data":{"id":"t3","name":"x"}}
			{"type":"tool_result","data":{"id":"t3","isError":true,"output":null}}`,
			`{"type":"tool-input-start","toolCallId":"t1","toolName":"x"}
			{"type":"tool-input-available","toolCallId":"t1","toolName":"x","input":null}
			{"type":"tool-output-denied","toolCallId":"t1"}
			{"type":"tool-input-start","toolCallId":"t2","toolName":"x"}
			{"type":"tool-input-available","toolCallId":"t2","toolName":"x","input":null}
			{"type":"tool-output-error","toolCallId":"t2","errorText":"{\"a\":1}"}
			{"type":"tool-input-start","toolCallId":"t3","toolName":"x"}
			{"type":"tool-input-available","toolCallId":"t3","toolName":"x","input":null}
			{"type":"tool-output-error","toolCallId":"t3","errorText":""}`,
		},
		"envelopes": {
			`{"type":"tool_call","data":{"id":"1","name":"x","input":{"tool":"t","arguments":{"a":1}}}}
			{"type":"tool_call","data":{"id":"1","input":{"arguments":{"a":1}}}}
			{"type":"tool_call","data":{"id":"1","input":{"arguments":{"a":1},"q":"t"}}}
			{"type":"tool_call","data":{"id":"1","input":{"arguments":{"a":1},"tool":7}}}`,
			`{"type":"tool-input-start","toolCallId":"1","toolName":"x"}
			{"type":"tool-input-available","toolCallId":"1","toolName":"x","input":{"a":1}}
			{"type":"tool-input-available","toolCallId":"1","toolName":"x","input":{"arguments":{"a":1}}}
			{"type":"tool-input-available","toolCallId":"1","toolName":"x","input":{"arguments":{"a":1},"q":"t"}}
			{"type":"tool-input-available","toolCallId":"1","toolName":"x","input":{"arguments":{"a":1},"tool":7}}`,
		},
		"a gate refreshes its call and fixes its name": {
			`{"type":"tool_call","data":{"id":"t1","name":"Run a command","input":{}}}
			{"type":"interaction_request","data":{"id":"r1","kind":"user_approval","payload":{"toolCallId":"t1","manifest":{"m":1},"toolCall":{"title":"Title","resolvedName":"bash","spec":{"name":"shell"},"rawInput":{"tool":"bash","arguments":{"c":"ls"}}}}}}
			{"type":"tool_call","data":{"id":"t1","name":"Drifted","input":{"c":"ls"}}}`,
			`{"type":"tool-input-start","toolCallId":"t1","toolName":"Run a command"}
			{"type":"tool-input-available","toolCallId":"t1","toolName":"Run a command","input":{}}
			{"type":"tool-input-available","toolCallId":"t1","toolName":"bash","input":{"c":"ls"}}
			{"type":"data-approval-manifest","id":"t1","data":{"toolCallId":"t1","approvalId":"r1","manifest":{"m":1}}}
			{"type":"tool-approval-request","approvalId":"r1","toolCallId":"t1"}
			{"type":"tool-input-available","toolCallId":"t1","toolName":"bash","input":{"c":"ls"}}`,
		},
		"a gate without its call shows one; a late call cannot rename it": {
			`{"type":"interaction_request","data":{"id":"r1","kind":"user_approval","payload":{"toolCall":{"id":"t1","spec":{"name":"shell"},"title":"T"}}}}
			{"type":"interaction_request","data":{"id":"","kind":"user_approval","payload":{"toolCallId":"t2"}}}
			{"type":"tool_call","data":{"id":"t1","name":"Drifted"}}
			{"type":"interaction_request","data":{"id":"r3","kind":"user_approval"}}`,
			`{"type":"tool-input-start","toolCallId":"t1","toolName":"shell"}
			{"type":"tool-input-available","toolCallId":"t1","toolName":"shell","input":null}
			{"type":"tool-approval-request","approvalId":"r1","toolCallId":"t1"}
			{"type":"tool-input-start","toolCallId":"t2","toolName":"unknown_tool"}
			{"type":"tool-input-available","toolCallId":"t2","toolName":"unknown_tool","input":null}
			{"type":"tool-approval-request","approvalId":"t2","toolCallId":"t2"}
			{"type":"tool-input-available","toolCallId":"t1","toolName":"shell","input":null}`,
		},
		"other interactions": {
			`{"type":"interaction_request","data":{"id":"r1","kind":"user_input","payload":{"q":1}}}
			{"type":"interaction_request","data":{"id":"r2","kind":"client_tool","payload":{"toolCallId":"t1","toolName":"pick","input":{"a":1},"render":{"kind":"connect"}}}}
			{"type":"interaction_request","data":{"id":"r3","kind":"client_tool","payload":{"toolName":"pick"}}}
			{"type":"interaction_request","data":{"id":"r4","kind":"strange"}}
			{"type":"interaction_response","data":{"id":"r1","kind":"user_approval"}}`,
			`{"type":"data-input-request","id":"r1","data":{"q":1}}
			{"type":"tool-input-start","toolCallId":"t1","toolName":"pick"}
			{"type":"tool-input-available","toolCallId":"t1","toolName":"pick","input":{"a":1}}
			{"type":"data-render","data":{"toolCallId":"t1","render":{"kind":"connect"}}}
			{"type":"data-interaction","id":"r4","data":{"kind":"strange","payload":null}}`,
		},
		"the rest": {
			`{"type":"data","data":{"name":"agent-status","data":{"phase":"x"},"transient":true}}
			{"type":"data","data":{"data":[1]}}
			{"type":"file","data":{"url":"u","mediaType":"image/png"}}
			{"type":"file","data":{"url":"","mediaType":"image/png"}}
			{"type":"attachment_delivery","data":{"attachmentId":"a","outcome":"native","reasonCode":"c","workingPath":null}}
			{"type":"error","data":{"message":"m"}}
			{"type":"unheard_of","data":{"a":1}}`,
			`{"type":"data-agent-status","data":{"phase":"x"},"transient":true}
			{"type":"data-data","data":[1]}
			{"type":"file","url":"u","mediaType":"image/png"}
			{"type":"data-attachment-delivery","data":{"attachmentId":"a","outcome":"native","reasonCode":"c"}}
			{"type":"data-agent-error","data":{"code":"runner_error","errorText":"m"}}
			{"type":"error","errorText":"m"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, strings.ReplaceAll(c.want, "\t", ""), strings.Join(parts(t, c.events), "\n"))
		})
	}
}

func TestStreamEndsWithWhatIsKnown(t *testing.T) {
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

func TestFinishReasons(t *testing.T) {
	for in, want := range map[string]string{
		"stop": "stop", "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool-calls",
		"function_call": "tool-calls", "refusal": "content-filter", "paused": "other", "cancelled": "other", "": "other",
		" END_TURN ": "stop", "whatever": "other", "error": "error", "content-filter": "content-filter",
	} {
		require.Equal(t, want, finishReason(in), in)
	}
}

// Contract 5.9, 146 to 148.
func TestContinuations(t *testing.T) {
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
	messages := elementsOf(jsontext.Value(`[{"role":"assistant","content":""},
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

// Contract 4.7: what a Vercel client sends becomes canonical.
func TestUIMessagesBecomeCanonical(t *testing.T) {
	for in, want := range map[string]string{
		`{"role":"user","parts":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"id":"x"}`: `{"role":"user","content":"ab"}`,
		`{"role":"user","parts":[]}`:          `{"role":"user","content":""}`,
		`{"role":"user","content":"c","x":1}`: `{"role":"user","content":"c","x":1}`,
		`{"parts":[]}`:                        ``,
		`7`:                                   ``,
		`{"role":"user","parts":[{"type":"text","text":"a"},{"type":"file","url":"u","mediaType":"image/png"}]}`: `{"role":"user",` +
			`"content":[{"type":"text","text":"a"},{"type":"image","uri":"u","mimeType":"image/png"}]}`,
		`{"role":"user","parts":[{"type":"file","url":"u","mediaType":"text/csv","providerMetadata":{"agenta":{"attachmentId":` +
			`"0c0d0e0f-0000-4000-8000-000000000001","size":7}}},{"type":"file","url":"u"}]}`: `{"role":"user","content":[` +
			`{"type":"attachment","attachmentId":"0c0d0e0f-0000-4000-8000-000000000001","mimeType":"text/csv","size":7},` +
			`{"type":"resource","uri":"u"}]}`,
		`{"role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"x"},{"type":"data-x","data":1}]}`: `{"role":"assistant","content":""}`,
		`{"role":"assistant","parts":[{"type":"tool-search","toolCallId":"t","state":"input-available","input":{"q":1}}]}`: `{"role":"assistant",` +
			`"content":[{"type":"tool_call","toolCallId":"t","toolName":"search","input":{"q":1}}]}`,
		`{"role":"assistant","parts":[{"type":"dynamic-tool","toolName":"s","toolCallId":"t","state":"output-available","input":1,"output":null}]}`: `{"role":"assistant",` +
			`"content":[{"type":"tool_call","toolCallId":"t","toolName":"s","input":1},{"type":"tool_result","toolCallId":"t","toolName":"s","output":null,"isError":false}]}`,
		`{"role":"assistant","parts":[{"type":"tool-s","toolCallId":"t","state":"output-error","errorText":"e","output":"o"}]}`: `{"role":"assistant",` +
			`"content":[{"type":"tool_call","toolCallId":"t","toolName":"s"},{"type":"tool_result","toolCallId":"t","toolName":"s","output":"e","isError":true}]}`,
		`{"role":"assistant","parts":[{"type":"tool-s","toolCallId":"t","state":"approval-responded","approval":{"id":"r","approved":true}}]}`: `{"role":"assistant",` +
			`"content":[{"type":"tool_call","toolCallId":"t","toolName":"s"},{"type":"tool_result","toolCallId":"t","toolName":"s","output":{"approved":true,"interactionToken":"r"}}]}`,
		`{"role":"assistant","parts":[{"type":"tool-s","toolCallId":"t","state":"output-denied"}]}`: `{"role":"assistant",` +
			`"content":[{"type":"tool_call","toolCallId":"t","toolName":"s"},{"type":"tool_result","toolCallId":"t","toolName":"s","output":{"approved":false}}]}`,
		`{"role":"assistant","parts":[{"type":"tool-s","toolCallId":"t","state":"approval-requested","approval":{"id":"r"}}]}`: `{"role":"assistant",` +
			`"content":[{"type":"tool_call","toolCallId":"t","toolName":"s"}]}`,
		`{"role":"user","parts":[{"type":"TOOL_OUTPUT_AVAILABLE","toolCallId":"t","output":1},{"type":"tool-output-error","toolCallId":"t","errorText":"e"}]}`: `{"role":"user",` +
			`"content":[{"type":"tool_result","toolCallId":"t","output":1,"isError":false},{"type":"tool_result","toolCallId":"t","output":"e","isError":true}]}`,
		`{"role":"user","parts":[{"type":"tool-approval-request","approvalId":"r"},{"type":"tool-approval-response","approvalId":"r","approved":false},` +
			`{"type":"tool-approval-response","toolCallId":"t","reason":"late"}]}`: `{"role":"user",` +
			`"content":[{"type":"tool_result","toolCallId":"r","output":{"approved":false,"interactionToken":"r"}},{"type":"tool_result","toolCallId":"t","output":"late"}]}`,
	} {
		r := canonical(Request{Data: jsontext.Value(`{"parameters":{"a" : 1},"inputs":{"x":1,"messages":[` + in + `]}}`)})
		require.Equal(t, `{"parameters":{"a" : 1},"inputs":{"x":1,"messages":[`+want+`]}}`, string(r.Data), in)
	}
	r := canonical(Request{Data: jsontext.Value(`{"inputs":{"messages":7}}`)})
	require.Equal(t, `{"inputs":{"messages":7}}`, string(r.Data))
}

// Every part of every corpus turn has the strings that the ai package's schema requires.
func TestPartsConform(t *testing.T) {
	required := map[string][]string{
		"text-start": {"id"}, "text-delta": {"id", "delta"}, "text-end": {"id"},
		"reasoning-start": {"id"}, "reasoning-delta": {"id", "delta"}, "reasoning-end": {"id"},
		"tool-input-start": {"toolCallId", "toolName"}, "tool-input-available": {"toolCallId", "toolName"},
		"tool-output-available": {"toolCallId"}, "tool-output-error": {"toolCallId", "errorText"},
		"tool-output-denied": {"toolCallId"}, "tool-approval-request": {"approvalId", "toolCallId"},
		"file": {"url", "mediaType"}, "error": {"errorText"}, "finish": nil, "finish-step": nil,
	}
	for _, g := range corpus(t) {
		p := newProjection()
		all := []jsontext.Value{}
		for _, e := range g.script().events {
			for _, part := range p.event(e) {
				all = append(all, part.Clone())
			}
		}
		all = append(all, p.end(outcome{end: fold.End{}}, "t")...)
		for _, part := range all {
			kind, _ := text(member(part, "type"))
			names, known := required[kind]
			require.True(t, known || strings.HasPrefix(kind, "data-"), "%s: %s", g.ID, part)
			for _, name := range names {
				require.Equal(t, jsontext.KindString, member(part, name).Kind(), "%s: %s", g.ID, part)
			}
		}
	}
}

func TestIDsThatFoldTakesForEqualAreOne(t *testing.T) {
	for value, want := range map[string]string{
		`"a"`: "a", `""`: "", "1": "1", "1.0": "1", "true": "1", "10e-1": "1", "0": "0", "-0.0": "0", "false": "0", "1.50": "1.5",
		"9007199254740993": "9007199254740993", "9007199254740993.0": "9007199254740992", "1e400": "+Inf",
	} {
		got, ok := idOf(jsontext.Value(value))
		require.True(t, ok)
		require.Equal(t, ident{want, value[0] != '"'}, got, value)
	}
	for _, value := range []string{"", "null", "{}", "[]"} {
		_, ok := idOf(jsontext.Value(value))
		require.False(t, ok, value)
	}
}

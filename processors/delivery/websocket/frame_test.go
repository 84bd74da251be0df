package websocket

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
)

const at = `"timestamp":"2026-09-21T14:13:20.120Z","partition":3,"offset":7`

func event(suffix, rest string) string {
	return `{"topic":"pilot-` + suffix + `","sessionId":"s",` + at + rest + `}`
}

func TestFramesEqualFlightDecks(t *testing.T) {
	const chat = `{"id":"1dd31dd0-0000-8000-8000-000000000000","role":"assistant",`
	for name, c := range map[string]struct {
		suffix, value string
		change        func(*processors.Inbound)
		events        []string
		chats         []string
	}{
		"message":    {"message-input", `{"a" : 1}`, nil, []string{event("message-input", `,"value":{"a" : 1}`)}, nil},
		"enriched":   {"enriched-message-input", `[1]`, nil, []string{event("enriched-message-input", `,"value":[1]`)}, nil},
		"context":    {"session-context", `null`, nil, []string{event("session-context", `,"value":null`)}, nil},
		"tool use":   {"tool-use", `"x"`, nil, []string{event("tool-use", `,"value":"x"`)}, nil},
		"refused":    {"tool-use-dlq", `7`, nil, []string{event("tool-use-dlq", `,"value":7`)}, nil},
		"complete":   {"tool-use-all-complete", `{}`, nil, []string{event("tool-use-all-complete", `,"value":{}`)}, nil},
		"no JSON":    {"tool-use", `{"a"`, nil, []string{event("tool-use", `,"rawValue":"{\"a\""`)}, nil},
		"empty":      {"tool-use", ``, nil, []string{event("tool-use", `,"rawValue":""`)}, nil},
		"not UTF-8":  {"tool-use", "\"\xff\"", nil, []string{event("tool-use", `,"rawValue":"\"`+"\uFFFD"+`\""`)}, nil},
		"null":       {"tool-use", ``, null, []string{event("tool-use", `,"rawValue":"null"`)}, nil},
		"text after": {"tool-use", `{} and so on`, nil, []string{event("tool-use", `,"value":{}`)}, nil},
		"result": {
			"tool-use-result", `{"latency_ms":212}`, nil,
			[]string{event("tool-use-result", `,"value":{"latency_ms":212},"latencyMs":212`)},
			nil,
		},
		"result without latency": {
			"tool-use-result", `{"latency_ms":null}`, nil,
			[]string{event("tool-use-result", `,"value":{"latency_ms":null}`)},
			nil,
		},
		"latency of another topic": {
			"tool-use", `{"latency_ms":212}`, nil, []string{event("tool-use", `,"value":{"latency_ms":212}`)}, nil,
		},
		"think": {
			"think-request-response", `{"end_turn":false}`, nil,
			[]string{event("think-request-response", `,"value":{"end_turn":false},"cost":{"endTurn":false}`)},
			nil,
		},
		"think of an older FlightDeck": {
			"think-request-response", `{"input_tokens":1,"output_tokens":2,"cost":0.5,"end_turn":true,"think_cost":9}`, nil,
			[]string{event("think-request-response", `,"value":{"input_tokens":1,"output_tokens":2,"cost":0.5,"end_turn":true,`+
				`"think_cost":9},"cost":{"inputTokens":1,"outputTokens":2,"dollars":0.5,"endTurn":true}`)},
			nil,
		},
		"think of the current FlightDeck": {
			"think-request-response", `{"think_input_tokens":1,"think_output_tokens":2,"think_cost":0.5}`, nil,
			[]string{event("think-request-response", `,"value":{"think_input_tokens":1,"think_output_tokens":2,`+
				`"think_cost":0.5},"cost":{"inputTokens":1,"outputTokens":2,"dollars":0.5}`)},
			nil,
		},
		"think without cost": {
			"think-request-response", `{"cost":"a"}`, nil,
			[]string{event("think-request-response", `,"value":{"cost":"a"}`)},
			nil,
		},
		"output": {
			"message-output", `{"content":"N4 \"now\"","cost":0.0022,"timestamp":"t"}`, nil,
			[]string{event("message-output", `,"value":{"content":"N4 \"now\"","cost":0.0022,"timestamp":"t"}`)},
			[]string{chat + `"content":"N4 \"now\"","timestamp":"t","cost":0.0022}`},
		},
		"output with nothing": {
			"message-output", `{"cost":null}`, nil,
			[]string{event("message-output", `,"value":{"cost":null}`)},
			[]string{chat + `"content":"","timestamp":""}`},
		},
		"output of blocks": {
			"message-output", `{"content":[{"type":"text","text":"N4"}],"reply_to":"x"}`, nil,
			[]string{event("message-output", `,"value":{"content":[{"type":"text","text":"N4"}],"reply_to":"x"}`)},
			[]string{chat + `"content":"N4","timestamp":""}`},
		},
		"output with a blank service": {
			"message-output", `{"reply_to":{"callbackService":" "}}`, nil,
			[]string{event("message-output", `,"value":{"reply_to":{"callbackService":" "}}`)},
			[]string{chat + `"content":"","timestamp":""}`},
		},
		"output that is the sink's": {
			"message-output", `{"content":"x","reply_to":{"callbackService":"harbor"}}`, nil,
			[]string{event("message-output", `,"value":{"content":"x","reply_to":{"callbackService":"harbor"}}`)},
			nil,
		},
		"output that is no object": {"message-output", `[]`, nil, []string{event("message-output", `,"value":[]`)}, nil},
		"latency, keyed by its tool": {
			"tool-use-latency", `{"session_id":"s"}`, func(r *processors.Inbound) { r.Key = []byte("berth_lookup") },
			[]string{`{"topic":"pilot-tool-use-latency","sessionId":"berth_lookup",` + at + `,"value":{"session_id":"s"}}`},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			b := s.open().subscribe("s")
			change := []func(*processors.Inbound){}
			if c.change != nil {
				change = append(change, c.change)
			}
			s.take(c.suffix, "s", 7, c.value, change...)
			for _, want := range c.events {
				g := b.next()
				require.Equal(t, "pipeline_event", g.kind)
				require.Equal(t, want, g.data)
				require.True(t, strings.HasPrefix(g.text, `{"type":"pipeline_event","data":{"topic":`), g.text)
				require.True(t, strings.HasSuffix(g.text, `,"event_id":"`+g.id+`","session_id":"s"}`), g.text)
			}
			for _, want := range c.chats {
				g := b.next()
				require.Equal(t, "chat_response", g.kind)
				require.Len(t, g.data[7:43], 36)
				require.Equal(t, want[43:], g.data[43:])
				require.Equal(t, want[:7], g.data[:7])
			}
			b.none("s")
		})
	}
}

func TestOtherTopicsAndRecordsWithoutAKeyAreNotShown(t *testing.T) {
	s := newFixture(t)
	b, unknown := s.open().subscribe("s"), s.open().subscribe("unknown")
	for _, suffix := range []string{"reply-to", "session-end", "deliveries", "think-dlq", "memoir-context"} {
		s.take(suffix, "s", 1, `{}`)
	}
	s.take("message-input", "s", 1, `{}`, func(r *processors.Inbound) { r.Key = nil })
	b.none("s")
	unknown.none("unknown")
}

func TestRepeatedOutputIsShownAsOneAnswer(t *testing.T) {
	s := newFixture(t)
	b := s.open().subscribe("s")
	s.take("message-output", "s", 1, `{"content":"a"}`, withID("turn/0/output/0"))
	s.take("message-output", "s", 2, `{"content":"a"}`, withID("turn/0/output/0"))
	s.take("message-output", "s", 3, `{"content":"b"}`, withID("turn-2/0/output/0"))
	var kinds []string
	for range 5 {
		kinds = append(kinds, b.next().kind)
	}
	const event, chat = "pipeline_event", "chat_response"
	require.Equal(t, []string{event, chat, event, event, chat}, kinds)
}

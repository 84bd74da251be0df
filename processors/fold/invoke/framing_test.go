package invoke

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold/folder"
)

const id = traceID + ".1."

func TestBatchResponseHasTheExpectedBytes(t *testing.T) {
	a := newSite(t, scripted(t, hello), func(c *Config) { c.Version = "1.2" }).invoke(question)
	require.Equal(t, `{"version":"2025.07.14","trace_id":"`+traceID+`","span_id":"`+spanID+`","session_id":"s-1",`+
		`"status":{"code":200,"message":"Success"},`+
		`"data":{"outputs":{"messages":[{"role":"assistant","content":"Hello, wörld"}]}}}`, a.body)
	require.Equal(t, "1.2", a.header.Get(headerVersion))
	require.Empty(t, a.header.Get(HeaderTurn), "the agent does not name its turns")
	require.Empty(t, a.header.Get(HeaderFormat))
}

func TestNDJSONResponseHasTheExpectedBytes(t *testing.T) {
	a := newSite(t, scripted(t, hello)).invoke(question, "Accept", "application/jsonl")
	require.Equal(t, `{"type": "message_start", "data": {"type": "message_start", "id": "msg-0"}}
{"type": "message_delta", "data": {"type": "message_delta", "id": "msg-0", "delta": "Hel"}}
{"type": "message_delta", "data": {"type": "message_delta", "id": "msg-0", "delta": "lo, wörld"}}
{"type": "message_end", "data": {"type": "message_end", "id": "msg-0"}}
{"type": "done", "data": {"type": "done"}}
{"type": "stream_end", "data": {"state": "complete", "last_event_id": "`+id+`5"}}
`, a.body)
	require.Equal(t, "application/x-ndjson", a.header.Get("Content-Type"))
	require.Equal(t, "no-cache", a.header.Get("Cache-Control"))
	require.Equal(t, "s-1", a.header.Get(HeaderSession))
	require.Equal(t, "unknown", a.header.Get(headerVersion))
}

func TestSSEResponseHasTheExpectedBytes(t *testing.T) {
	agent := scripted(t, hello)
	agent.end.StopReason = []byte(`"end_turn"`)
	a := newSite(t, agent).invoke(question, "Accept", "text/event-stream")
	require.Equal(t, "id: "+id+`1
data: {"type": "message_start", "data": {"type": "message_start", "id": "msg-0"}}

id: `+id+`2
data: {"type": "message_delta", "data": {"type": "message_delta", "id": "msg-0", "delta": "Hel"}}

id: `+id+`3
data: {"type": "message_delta", "data": {"type": "message_delta", "id": "msg-0", "delta": "lo, wörld"}}

id: `+id+`4
data: {"type": "message_end", "data": {"type": "message_end", "id": "msg-0"}}

id: `+id+`5
data: {"type": "done", "data": {"type": "done"}}

id: `+id+`6
data: {"type": "done", "data": {"stopReason": "end_turn"}}

data: {"type": "stream_end", "data": {"state": "complete", "last_event_id": "`+id+`6"}}

`, a.body)
	require.Equal(t, "text/event-stream; charset=utf-8", a.header.Get("Content-Type"))
	require.Empty(t, a.header.Get(headerVercelStream))
}

func TestVercelResponseHasTheExpectedBytes(t *testing.T) {
	agent := scripted(t, hello)
	agent.end.StopReason = []byte(`"end_turn"`)
	a := newSite(t, agent).invoke(question, "Accept", "text/event-stream", HeaderFormat, "Vercel")
	require.Equal(t, `data: {"type": "start", "messageId": "msg-`+traceID+`", "messageMetadata": {"sessionId": "s-1"}}

data: {"type": "start-step"}

id: `+id+`1
data: {"type": "text-start", "id": "msg-0"}

id: `+id+`2
data: {"type": "text-delta", "id": "msg-0", "delta": "Hel"}

id: `+id+`3
data: {"type": "text-delta", "id": "msg-0", "delta": "lo, wörld"}

id: `+id+`4
data: {"type": "text-end", "id": "msg-0"}

data: {"type": "finish-step"}

data: {"type": "finish", "finishReason": "stop", "messageMetadata": {"traceId": "`+traceID+`"}}

data: [DONE]

`, a.body)
	require.Equal(t, "vercel", a.header.Get(HeaderFormat))
	require.Equal(t, "v1", a.header.Get(headerFormatVersion))
	require.Equal(t, "v1", a.header.Get(headerVercelStream))

	a = newSite(t, agent).invoke(question, "Accept", "application/x-ndjson", HeaderFormat, "vercel")
	require.Empty(t, a.header.Get(HeaderFormat), "lines are canonical")
	require.Contains(t, a.body, `"type": "message_delta"`)
}

func TestTokensPassByteForByte(t *testing.T) {
	agent := scripted(t, `{"type":"message" ,"data": {"text":"a\u00e9\/ : , \"{é\\","n":1e400,`+
		`"big":1000000000000000000000000000007,"x":[ ]}}`)
	a := newSite(t, agent).invoke(`{}`, "Accept", "application/x-ndjson")
	require.True(t, strings.HasPrefix(a.body,
		`{"type": "message", "data": {"text": "a\u00e9\/ : , \"{é\\", "n": 1e400, `+
			`"big": 1000000000000000000000000000007, "x": []}}`+"\n"),
		a.body)
}

func TestFailureBeforeTheStreamHasAStatus(t *testing.T) {
	for name, c := range map[string]struct {
		err          error
		status       int
		kind, told   string
		mustNotShow  string
		vercelHeader string
	}{
		"known": {
			&Error{Status: 400, Type: "https://x#template", Text: "bad template"}, 400, "https://x#template", "bad template",
			"", "vercel",
		},
		"foreign": {&Error{Status: 429, Text: "provider is busy"}, 424, TypeUnknown, "provider is busy", "", "vercel"},
		"unknown": {errors.New("dial tcp 10.0.0.7: secret"), 500, TypeUnknown, "Internal Server Error", "10.0.0.7", "vercel"},
		"stack":   {&Error{Text: "boom\n  at main.go:7\n"}, 500, TypeUnknown, "boom", "main.go", "vercel"},
		"frame":   {&Error{Text: "  at main.go:7"}, 500, TypeUnknown, "agent run failed", "main.go", "vercel"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, &script{refuses: c.err})
			for _, headers := range [][]string{nil, {"Accept", "text/event-stream"}} {
				a := s.invoke(question, headers...)
				require.Equal(t, c.status, a.status)
				require.Equal(t, c.kind, textAt(t, a.body, "status", "type"))
				require.Equal(t, c.told, textAt(t, a.body, "status", "message"))
				require.Equal(t, string(JSON), a.header.Get("Content-Type"))
				require.Equal(t, "s-1", a.header.Get(HeaderSession))
				require.NotContains(t, a.body, "stacktrace")
				if c.mustNotShow != "" {
					require.NotContains(t, a.body, c.mustNotShow)
				}
			}
			a := s.invoke(question, "Accept", "text/event-stream", HeaderFormat, "vercel")
			require.Equal(t, c.vercelHeader, a.header.Get(HeaderFormat))
			require.Empty(t, s.invoke(question, HeaderFormat, "vercel").header.Get(HeaderFormat))
		})
	}
}

func TestFailureInTheStreamIsAnEvent(t *testing.T) {
	const told = `{"type": "error", "data": {"message": "no credit"}}` + "\n"
	withError := hello + `
		{"type":"error","data":{"type":"error","message":"no credit"}}
		{"type":"done","data":{"type":"done"}}`
	for name, c := range map[string]struct {
		agent  *script
		events string
		end    string
		vercel string
	}{
		"the end says so": {
			&script{end: folder.End{State: folder.Failed, Error: "no credit\nat x"}}, told,
			`{"type": "stream_end", "data": {"state": "failed", "reason": "agent_run_failed"}}`, "agent_run_failed",
		},
		"the stream breaks off": {
			&script{err: &Error{Code: "gap", Text: "no credit"}}, told,
			`{"type": "stream_end", "data": {"state": "failed", "reason": "gap"}}`, "gap",
		},
		"an event told it": {
			&script{events: scripted(t, withError).events, end: folder.End{State: folder.Failed, Error: "no credit"}}, "",
			`{"type": "stream_end", "data": {"state": "failed", "reason": "agent_run_failed", "last_event_id": "` + id + `7"}}`,
			runnerError,
		},
		"nothing is told of what is not known": {
			&script{err: errors.New("dial tcp 10.0.0.7")}, `{"type": "error", "data": {"message": "agent run failed"}}` + "\n",
			`{"type": "stream_end", "data": {"state": "failed", "reason": "agent_run_failed"}}`, "agent_run_failed",
		},
		"expired": {
			&script{end: folder.End{State: folder.Expired}}, `{"type": "error", "data": {"message": "the turn expired"}}` + "\n",
			`{"type": "stream_end", "data": {"state": "expired", "reason": "expired"}}`, "expired",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, c.agent)
			a := s.invoke(question, "Accept", "application/x-ndjson")
			require.Equal(t, http.StatusOK, a.status)
			require.True(t, strings.HasSuffix(a.body, c.events+c.end+"\n"), a.body)
			require.LessOrEqual(t, strings.Count(a.body, `"type": "error"`), 2, "one event and its type inside")
			require.True(t, strings.HasSuffix(s.invoke(question, "Accept", "text/event-stream").body, "data: "+c.end+"\n\n"))

			v := s.invoke(question, "Accept", "text/event-stream", HeaderFormat, "vercel").body
			require.Equal(t, 1, strings.Count(v, `{"type": "error", "errorText": `), v)
			require.Contains(t, v, `"code": "`+c.vercel+`"`)
			require.True(t, strings.HasSuffix(v, "data: [DONE]\n\n"))
			require.Less(t, strings.Index(v, `{"type": "error"`), strings.Index(v, `{"type": "finish"`))

			b := s.invoke(question)
			require.Equal(t, http.StatusInternalServerError, b.status)
			require.Nil(t, at(t, b.body, "data"))
			require.NotContains(t, b.body, "10.0.0.7")
			require.Equal(t, 4, c.agent.closed, "every stream is closed")
		})
	}
}

// thrower is a stream that panics.
type thrower struct{ Stream }

func TestPanicFailsTheRequestOnly(t *testing.T) {
	invoking := AgentFunc(func(context.Context, Request) (Stream, error) { panic("secret") })
	a := newSite(t, invoking).invoke(`{}`)
	require.Equal(t, http.StatusInternalServerError, a.status)
	require.NotContains(t, a.body, "secret")

	reading := AgentFunc(func(context.Context, Request) (Stream, error) { return thrower{}, nil })
	s := newSite(t, reading)
	require.Equal(t, http.StatusInternalServerError, s.invoke(`{}`).status)
	a = s.invoke(`{}`, "Accept", "application/x-ndjson")
	require.Contains(t, a.body, `"state": "failed"`)
	require.NotContains(t, a.body, "secret")
}

func (thrower) Next(context.Context) (Item, error) { panic("secret") }
func (thrower) Close() error                       { return nil }

func TestStrictFoldFailsTheBatchOnly(t *testing.T) {
	agent := scripted(t, `
		{"type":"message_start","data":{"id":1}}
		{"type":"message_delta","data":{"id":1,"delta":null}}`)
	require.Equal(t, http.StatusOK, newSite(t, agent).invoke(`{}`).status)
	s := newSite(t, agent, func(c *Config) { c.StrictFold = true })
	require.Equal(t, http.StatusInternalServerError, s.invoke(`{}`).status)
	require.Equal(t, http.StatusOK, s.invoke(`{}`, "Accept", "application/x-ndjson").status)
}

func TestBatchIsBounded(t *testing.T) {
	agent := scripted(t, `{"type":"message","data":{"text":"`+strings.Repeat("x", 5000)+`"}}`)
	s := newSite(t, agent, func(c *Config) { c.BatchLimit = 1000 })
	a := s.invoke(`{}`)
	require.Equal(t, http.StatusInternalServerError, a.status)
	require.Equal(t, "the turn is too large for a batch", textAt(t, a.body, "status", "message"))
	require.Equal(t, http.StatusOK, s.invoke(`{}`, "Accept", "application/x-ndjson").status)
}

// A surrogate pair that a producer split is joined in every format; a lone half becomes U+FFFD.
func TestSplitSurrogatePairsAreJoined(t *testing.T) {
	s := newSite(t, newBuffered(t, scripted(t, `{"type":"message_start","data":{"id":"m"}}
		{"type":"message_delta","data":{"id":"m","delta":"a\ud83d"}}
		{"type":"message_delta","data":{"id":"m","delta":"\ude42b\ud83d"}}
		{"type":"message_end","data":{"id":"m"}}
		{"type":"message","data":{"text":"\ude42"}}`)))
	batch := s.invoke(question)
	require.Equal(t, "a🙂b\ufffd", said(t, batch.body))
	frames := s.invoke(question, "Accept", "text/event-stream")
	require.Contains(t, frames.body, `"delta": "\ud83d\ude42b"`)
	require.True(t, jsontext.Value(eventFrames(frames.body)[2]).IsValid(), "no reader is too strict for it")
	require.Equal(t, compacted(at(t, batch.body, "data", "outputs")),
		compacted(folded(t, eventFrames(frames.body)).AppendEnvelope(nil)))
	vercel := s.invoke(question, "Accept", "text/event-stream", HeaderFormat, "vercel")
	require.Contains(t, vercel.body, `"delta": "\ud83d\ude42b"`)
	for part := range strings.SplitSeq(vercel.body, "\n\n") {
		_, data, _ := strings.Cut(part, "data: ")
		if strings.HasPrefix(data, "{") {
			require.True(t, jsontext.Value(data).IsValid(), data)
		}
	}
}

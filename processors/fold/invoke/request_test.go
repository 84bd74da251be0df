package invoke

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
)

func TestSessionIDIsReadFromBodyHeaderOrBaggage(t *testing.T) {
	agent := scripted(t, hello)
	s := newSite(t, agent)
	for _, c := range []struct {
		body    string
		headers []string
		want    string
	}{
		{`{"session_id":"b-1"}`, []string{HeaderSession, "h-1", "Baggage", "ag.session.id=g-1"}, "b-1"},
		{`{"session_id":null}`, []string{HeaderSession, "h-1", "Baggage", "ag.session.id=g-1"}, "h-1"},
		{`{}`, []string{"Baggage", "a=b, ag.session.id=g%3A1;ttl=3 ,c=d"}, "g:1"},
		{`{}`, []string{"Baggage", "a=b", "Baggage", "ag.session.id=g-2"}, "g-2"},
		{`{}`, []string{"Baggage", "ag.session.id="}, "a0a1a2a3a4a546a7a8a9aaabacadaeaf"},
		{`{}`, nil, "a0a1a2a3a4a546a7a8a9aaabacadaeaf"},
		{`{"session_id":"` + strings.Repeat("x", 128) + `"}`, nil, strings.Repeat("x", 128)},
	} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			a := s.invoke(c.body, append([]string{"Accept", accept}, c.headers...)...)
			require.Equal(t, http.StatusOK, a.status)
			require.Equal(t, c.want, agent.requests[len(agent.requests)-1].SessionID)
			require.Equal(t, c.want, a.header.Get(HeaderSession))
			require.Equal(t, "ag.session.id="+c.want, a.header.Get("Baggage"))
			if accept == "application/json" {
				require.Equal(t, c.want, textAt(t, a.body, "session_id"))
			}
		}
	}
}

func TestInvalidSessionIDIsRejected(t *testing.T) {
	agent := scripted(t, hello)
	s := newSite(t, agent)
	for body, headers := range map[string][]string{
		`{"session_id":""}`:                                 nil,
		`{"session_id":"bad id!"}`:                          {HeaderSession, "good"},
		`{"session_id":"` + strings.Repeat("x", 129) + `"}`: nil,
		`{}`:                  {HeaderSession, "bad id!"},
		`{"session_id":null}`: {"Baggage", "ag.session.id=bad%20id"},
	} {
		a := s.invoke(body, append(headers, "Accept", "text/event-stream")...)
		require.Equal(t, http.StatusBadRequest, a.status, body)
		require.Equal(t, TypeInvalidSession, textAt(t, a.body, "status", "type"))
		require.Empty(t, a.header.Get(HeaderSession))
	}
	require.Empty(t, agent.requests)
	require.Equal(t, http.StatusUnprocessableEntity, s.invoke(`{"session_id":7}`).status)
}

func TestTraceContinuesTheCallersTrace(t *testing.T) {
	s := newSite(t, scripted(t, hello))
	const parent, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, headers := range [][]string{
		{"traceparent", "00-" + parent + "-" + span + "-01"},
		{HeaderTrace, parent, HeaderSpan, span},
		{"traceparent", "00-" + parent + "-" + span + "-01", HeaderTrace, strings.Repeat("1", 32), HeaderSpan, span},
	} {
		a := s.invoke(`{}`, headers...)
		require.Equal(t, parent, textAt(t, a.body, "trace_id"))
		require.Equal(t, parent, a.header.Get(HeaderTrace))
		require.Equal(t, spanID, a.header.Get(HeaderSpan))
		require.Equal(t, "00-"+parent+"-"+spanID+"-01", a.header.Get("Traceparent"))
	}
	for _, headers := range [][]string{
		nil,
		{HeaderTrace, parent},
		{"traceparent", "00-" + strings.Repeat("0", 32) + "-" + span + "-01"},
		{"traceparent", "00-x-" + span + "-01"},
		{"traceparent", "ff-" + parent + "-" + span + "-01"},
	} {
		require.Equal(t, traceID, textAt(t, s.invoke(`{}`, headers...).body, "trace_id"), headers)
	}
}

func TestInvalidBodyIsRejected(t *testing.T) {
	agent := scripted(t, hello)
	s := newSite(t, agent, func(c *Config) { c.BodyLimit = 64 << 10 })
	for body, status := range map[string]int{
		"":                             http.StatusUnprocessableEntity,
		"[]":                           http.StatusUnprocessableEntity,
		`{"a":NaN}`:                    http.StatusUnprocessableEntity,
		`{} {}`:                        http.StatusUnprocessableEntity,
		"{\"a\":\"\xff\"}":             http.StatusUnprocessableEntity,
		`{"flags":7}`:                  http.StatusUnprocessableEntity,
		`{"flags":{"stream":null}}`:    http.StatusUnprocessableEntity,
		`{"flags":{"trim":"perhaps"}}`: http.StatusUnprocessableEntity,
		`{"flags":{"force":{}}}`:       http.StatusUnprocessableEntity,
		`{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`: http.StatusUnprocessableEntity,
		`{"a":"` + strings.Repeat("x", 64<<10) + `"}`:                         http.StatusRequestEntityTooLarge,
	} {
		a := s.invoke(body, "Accept", "text/event-stream")
		require.Equal(t, status, a.status, body)
		require.NotNil(t, at(t, a.body, "detail"), a.body)
		require.NotContains(t, a.body, "xxx")
	}
	require.Equal(t, http.StatusUnsupportedMediaType, s.invoke(`{}`, "Content-Type", "text/plain").status)
	require.Equal(t, http.StatusOK,
		s.invoke(`{"a":"\ud83d","a":1}`, "Content-Type", "application/json; charset=utf-8").status)
	require.Equal(t, `{"detail":[{"loc":["body","flags","stream"],"msg":"want a boolean","type":"value_error"}]}`,
		s.invoke(`{"flags":{"trim":3,"resolve":3,"force":3,"stream":null}}`).body)

	get := read(t, s.send(http.MethodGet, "/invoke", ""))
	require.Equal(t, http.StatusMethodNotAllowed, get.status)
	require.Equal(t, "POST", get.header.Get("Allow"))
	require.Len(t, agent.requests, 1)
}

func TestAgentReceivesTheRequestUnchanged(t *testing.T) {
	agent := scripted(t, hello)
	s := newSite(t, agent)
	const data = `{"inputs":{"messages":[{"role":"user", "content":"é \u00e9"},null], ` +
		`"n":1000000000000000000000000000007}}`
	s.invoke(`{"data":`+data+`,"session_id":"s-1"}`, "Idempotency-Key", "k")
	r := agent.requests[0]
	require.Equal(t, data, string(r.Data))
	require.Equal(t, "k", r.IdempotencyKey)
	require.Len(t, r.Messages(), 2)
	require.Equal(t, `{"role":"user", "content":"é \u00e9"}`, string(r.Messages()[0]))
	s.invoke(`{}`)
	require.Nil(t, agent.requests[1].Data)
	require.Nil(t, agent.requests[1].Messages())
}

func TestCallerWithoutAccessIsRejected(t *testing.T) {
	agent := scripted(t, hello)
	s := newSite(t, agent, func(c *Config) {
		c.Authenticate = func(r *http.Request) (auth.Caller, error) {
			switch r.Header.Get("Authorization") {
			case "":
				return auth.Caller{}, http.ErrNoCookie
			case "slow":
				return auth.Caller{}, &Error{Status: http.StatusTooManyRequests, Text: "slower, please"}
			}
			return auth.Caller{UserID: "u", MayUse: func(session string) bool { return session == "mine" }}, nil
		}
	})
	require.Equal(t, got{401, `{"detail":"Unauthorized"}`, nil}, bare(s.invoke(`{}`)))
	require.Equal(t, got{429, `{"detail":"slower, please"}`, nil}, bare(s.invoke(`{}`, "Authorization", "slow")))
	forbidden := s.invoke(`{"session_id":"theirs"}`, "Authorization", "x", "Content-Type", "application/json")
	require.Equal(t, got{403, `{"detail":"Forbidden"}`, nil}, bare(forbidden))
	require.Empty(t, agent.requests)
	require.Equal(t, http.StatusOK,
		s.invoke(`{"session_id":"mine"}`, "Authorization", "x", "Content-Type", "application/json").status)
	require.Equal(t, "u", agent.requests[0].Caller.UserID)
}

func bare(g got) got {
	g.header = nil
	return g
}

func TestCORSIsDisabledByDefault(t *testing.T) {
	s := newSite(t, scripted(t, hello))
	require.Empty(t, s.invoke(`{}`).header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, http.StatusMethodNotAllowed, read(t, s.send(http.MethodOptions, "/invoke", "")).status)

	s = newSite(t, scripted(t, hello), func(c *Config) { c.Origins, c.Headers = []string{"https://chat.example"}, []string{"Authorization"} })
	a := read(t, s.send(http.MethodOptions, "/invoke", "", "Origin", "https://chat.example"))
	require.Equal(t, http.StatusNoContent, a.status)
	require.Equal(t, "https://chat.example", a.header.Get("Access-Control-Allow-Origin"))
	for _, name := range []string{"Authorization", headerIdempotency, HeaderTrace, HeaderSpan} {
		require.Contains(t, a.header.Get("Access-Control-Allow-Headers"), name)
	}
	require.Contains(t, s.invoke(`{}`, "Origin", "https://chat.example").header.Get("Access-Control-Expose-Headers"), HeaderTrace)
	require.Empty(t, s.invoke(`{}`, "Origin", "https://evil.example").header.Get("Access-Control-Allow-Origin"))
}

package turn_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
)

// said returns the message of a question as it is on the topic.
func said(session, user, content, more string) string {
	return `pilot-message-input ` + session + ` {"session_id":"` + session + `","user_id":"` + user +
		`","role":"user","content":"` + content + `","timestamp":"2026-09-21T14:13:20.120Z",` +
		`"metadata":{"locale":"en-US","client":"web"` + more + `}}`
}

// one returns a list with only that message.
func one(session, user, content, more string) []string {
	return []string{said(session, user, content, more)}
}

// with returns a valid body with additional members.
func with(more string) string { return `{"session_id":"s","content":"hi",` + more + `}` }

func TestChatAnswersAndWritesLikeFlightDeck(t *testing.T) {
	const ok = `{"status":"ok","session_id":"s"}`
	plain := one("s", "user_42", "hi", "")
	failed := func(text string) string { return `{"error":"` + text + `"}` }
	noSession, noContent := failed("Missing required field: session_id"), failed("Missing required field: content")
	noService, broken := failed("'reply' must include 'callbackService'"), failed("Internal server error")
	for name, c := range map[string]struct {
		method, body string
		status       int
		answer       string
		written      []string
	}{
		"options":               {"OPTIONS", `{"session_id":"s","content":"hi"}`, 204, "", nil},
		"options in lower case": {"options", "", 204, "", nil},
		"get":                   {"GET", "", 405, failed("Method not allowed"), nil},
		"put":                   {"PUT", `{"session_id":"s","content":"hi"}`, 405, failed("Method not allowed"), nil},
		"not JSON":              {"", "hi", 500, broken, nil},
		"open":                  {"", `{"session_id":"s"`, 500, broken, nil},
		"not UTF-8":             {"", "{\"session_id\":\"\xff\"}", 500, broken, nil},
		"nested too deep": {
			"", `{"session_id":"s","content":"hi","x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`,
			500, broken, nil,
		},
		"empty":          {"", "", 400, noSession, nil},
		"blank":          {"", " \n", 400, noSession, nil},
		"array":          {"", `["s"]`, 400, noSession, nil},
		"scalar":         {"", `7`, 400, noSession, nil},
		"null":           {"", `null`, 400, noSession, nil},
		"no session":     {"", `{"content":"hi"}`, 400, noSession, nil},
		"blank session":  {"", `{"session_id":" ","content":"hi"}`, 400, noSession, nil},
		"session object": {"", `{"session_id":{},"content":"hi"}`, 400, noSession, nil},
		"neither":        {"", `{}`, 400, noSession, nil},
		"no content":     {"", `{"session_id":"s"}`, 400, noContent, nil},
		"blank content":  {"", `{"session_id":"s","content":"\t"}`, 400, noContent, nil},
		"content array":  {"", `{"session_id":"s","content":["hi"]}`, 400, noContent, nil},
		"content first":  {"", `{"session_id":"s","reply":7}`, 400, noContent, nil},
		"other case":     {"", `{"SESSION_ID":"s","content":"hi"}`, 400, noSession, nil},
		"NUL in session": {
			"", `{"session_id":"s\u0000","content":"hi"}`, 400,
			failed("session id contains NUL"), nil,
		},
		"session long": {
			"", `{"session_id":"` + strings.Repeat("s", 1025) + `","content":"hi"}`, 400,
			failed("session id is longer than 1024 bytes"), nil,
		},
		"session reserved": {
			"", `{"session_id":"__offset","content":"hi"}`, 400, failed("session id is reserved"), nil,
		},
		"plain":          {"", `{"session_id":"s","content":"hi"}`, 200, ok, plain},
		"text after it":  {"", `{"session_id":"s","content":"hi"} and so on`, 200, ok, plain},
		"blanks before":  {"", "\n {\"session_id\" : \"s\", \"content\" : \"hi\"}", 200, ok, plain},
		"repeated field": {"", `{"session_id":"x","content":"hi","session_id":"s"}`, 200, ok, plain},
		"more fields":    {"", with(`"metadata":{"a":1},"role":"x"`), 200, ok, plain},
		"reply null":     {"", with(`"reply":null`), 200, ok, plain},
		"user":           {"", with(`"user_id":"u"`), 200, ok, one("s", "u", "hi", "")},
		"blank user":     {"", with(`"user_id":" "`), 200, ok, one("s", " ", "hi", "")},
		"null user":      {"", with(`"user_id":null`), 200, ok, one("s", "null", "hi", "")},
		"user object":    {"", with(`"user_id":{}`), 200, ok, one("s", "", "hi", "")},
		"numbers": {
			"", `{"session_id":7,"content":true}`, 200,
			`{"status":"ok","session_id":"7"}`, one("7", "user_42", "true", ""),
		},
		"nulls": {
			"", `{"session_id":null,"content":null}`, 200,
			`{"status":"ok","session_id":"null"}`, one("null", "user_42", "null", ""),
		},
		"quotes":         {"", `{"session_id":"a\"b","content":"\"<ü>\\"}`, 200, `{"status":"ok","session_id":"a\"b"}`, nil},
		"lone surrogate": {"", `{"session_id":"s","content":"\ud83d"}`, 200, ok, one("s", "user_42", "\ufffd", "")},
		"reply text":     {"", with(`"reply":"harbor"`), 400, failed("'reply' must be an object"), nil},
		"reply array":    {"", with(`"reply":[]`), 400, failed("'reply' must be an object"), nil},
		"reply empty":    {"", with(`"reply":{}`), 400, noService, nil},
		"service null":   {"", with(`"reply":{"callbackService":null}`), 400, noService, nil},
		"service blank":  {"", with(`"reply":{"callbackService":" "}`), 400, noService, nil},
		"service object": {"", with(`"reply":{"callbackService":{}}`), 400, noService, nil},
		"service unknown": {
			"", with(`"reply":{"callbackService":"evil"}`), 400,
			failed("unknown callbackService: evil"), nil,
		},
		"service padded": {
			"", with(`"reply":{"callbackService":"harbor "}`), 400,
			failed("unknown callbackService: harbor "), nil,
		},
		"service in caps": {
			"", with(`"reply":{"callbackService":"Harbor"}`), 400,
			failed("unknown callbackService: Harbor"), nil,
		},
		"service quoted": {
			"", with(`"reply":{"callbackService":"a\",\"b\":\"c"}`), 400,
			failed(`unknown callbackService: a\",\"b\":\"c`), nil,
		},
		"reply": {
			"", with(`"reply":{"x" : [1.50, null],"callbackService":"harbor","bearerToken":"t"}`), 200, ok,
			[]string{`pilot-reply-to s {"x":[1.50,null],"callbackService":"harbor","bearerToken":"t"}`, plain[0]},
		},
		"request": {
			"", with(`"request_id":"r-1"`), 200, `{"status":"ok","session_id":"s","request_id":"r-1"}`,
			one("s", "user_42", "hi", `,"request_id":"r-1"`),
		},
		"request null":   {"", with(`"request_id":null`), 200, ok, plain},
		"request blank":  {"", with(`"request_id":" "`), 200, ok, plain},
		"request object": {"", with(`"request_id":{}`), 400, failed("'request_id' is not usable"), nil},
		"request long": {
			"", `{"session_id":"s","content":"hi","request_id":"` + strings.Repeat("r", 1025) + `"}`, 400,
			failed("'request_id' is not usable"), nil,
		},
		"request and reply": {
			"", with(`"request_id":7,"reply":{"request_id":"x","callbackService":"harbor"}`), 200,
			`{"status":"ok","session_id":"s","request_id":"7"}`,
			[]string{
				`pilot-reply-to s {"callbackService":"harbor","request_id":"7"}`,
				said("s", "user_42", "hi", `,"request_id":"7"`),
			},
		},
		"request of the reply": {
			"", with(`"reply":{"request_id":"r-2","callbackService":"harbor"}`), 200,
			`{"status":"ok","session_id":"s","request_id":"r-2"}`,
			[]string{
				`pilot-reply-to s {"callbackService":"harbor","request_id":"r-2"}`,
				said("s", "user_42", "hi", `,"request_id":"r-2"`),
			},
		},
		"reply too large": {
			"", with(`"reply":{"callbackService":"harbor","x":"` + strings.Repeat("x", 64<<10) + `"}`),
			400, failed("'reply' is too large"), nil,
		},
		"too large": {
			"", `{"session_id":"s","content":"` + strings.Repeat("x", 1<<20) + `"}`, 413,
			failed("Request body is too large"), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			g := s.ask(asked{method: c.method, path: turn.ChatPath, body: c.body})
			require.Equal(t, c.status, g.status, g.body)
			require.Equal(t, c.answer, g.body)
			require.Equal(t, "*", g.header.Get("Access-Control-Allow-Origin"))
			require.Equal(t, "POST, OPTIONS", g.header.Get("Access-Control-Allow-Methods"))
			require.Equal(t, "Content-Type", g.header.Get("Access-Control-Allow-Headers"))
			if c.answer != "" {
				require.Equal(t, "application/json", g.header.Get("Content-Type"))
			}
			switch {
			case c.written != nil:
				require.Equal(t, c.written, s.paper.lines())
			case c.status != 200:
				require.Empty(t, s.paper.lines())
			}
		})
	}
}

func TestPathsWithADoorPrefixAreServed(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/api/chat/", "/api/chatX", "/api/chat/y?z"} {
		require.Equal(t, 200, s.ask(asked{path: path, body: `{"session_id":"s","content":"hi"}`}).status, path)
	}
	require.Len(t, s.paper.lines(), 3)
	require.Equal(t, 401, s.ask(asked{path: turn.ToolResponsePath + "/"}).status)
}

func TestOtherPathsAreNotFound(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/", "/api", "/api/Chat", "//api/chat", "/api//chat", "/api/tools"} {
		require.Equal(t, 404, s.ask(asked{path: path, body: `{"session_id":"s","content":"hi"}`}).status, path)
	}
	require.Empty(t, s.paper.lines())
}

func TestRequestFailsUnlessTheBrokersAcknowledge(t *testing.T) {
	s := newSite(t)
	s.paper.gate = make(chan struct{})
	answered := make(chan got, 1)
	go func() { answered <- s.chat(`{"session_id":"s","content":"hi"}`) }()
	select {
	case g := <-answered:
		require.Fail(t, "answered ahead of the brokers", "%d", g.status)
	case s.paper.gate <- struct{}{}:
	}
	require.Equal(t, 200, (<-answered).status)

	close(s.paper.gate)
	s.paper.fail(errors.New("no leader"))
	g := s.chat(`{"session_id":"s","content":"hi"}`)
	require.Equal(t, 500, g.status)
	require.JSONEq(t, `{"error":"Internal server error"}`, g.body)

	s.paper.fail(processors.ErrTooLarge)
	require.Equal(t, 413, s.chat(`{"session_id":"s","content":"hi"}`).status)
}

func TestRequestsAreServedConcurrently(t *testing.T) {
	s := newSite(t)
	s.paper.gate = make(chan struct{})
	answered := make(chan got, 20)
	for range 20 {
		go func() { answered <- s.chat(`{"session_id":"s","content":"hi"}`) }()
	}
	for range 20 { // all of them are in Publish, or on their way
		s.paper.gate <- struct{}{}
	}
	for range 20 {
		require.Equal(t, 200, (<-answered).status)
	}
	require.Len(t, s.paper.lines(), 20)
}

func TestCallerIsAuthenticatedBeforeTheBodyIsRead(t *testing.T) {
	s := newSite(t, turn.WithAuthenticate(func(r *http.Request) (turn.Caller, error) {
		if r.Header.Get("Authorization") != "Bearer mira" {
			return turn.Caller{}, errors.New("secret reason")
		}
		return turn.Caller{UserID: "mira", MayWrite: func(session string) bool { return session == "s" }}, nil
	}), turn.WithCORS("https://harbor.example", "Authorization"))

	g := s.chat("not JSON")
	require.Equal(t, []any{401, `{"error":"Unauthorized"}`}, []any{g.status, g.body})
	require.Equal(t, "https://harbor.example", g.header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "Content-Type, Authorization", g.header.Get("Access-Control-Allow-Headers"))
	require.Equal(t, 204, s.ask(asked{method: "OPTIONS", path: turn.ChatPath}).status)

	g = s.chat(`{"session_id":"other","content":"hi"}`, "Authorization", "Bearer mira")
	require.Equal(t, []any{403, `{"error":"Forbidden"}`}, []any{g.status, g.body})
	require.Empty(t, s.paper.lines())

	require.Equal(t, 200, s.chat(with(`"user_id":"x"`), "Authorization", "Bearer mira").status)
	require.Equal(t, one("s", "mira", "hi", ""), s.paper.lines())
}

package turnhttp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/topics"
)

// serve passes a body to a door without a server.
func serve(t *testing.T, path, body string, headers ...string) (*httptest.ResponseRecorder, *fakePublisher) {
	t.Helper()
	p := &fakePublisher{}
	handler, err := turnhttp.New("pilot", p, turnhttp.Config{CallbackSecrets: []string{secret}, CallbackServices: func(string) bool { return true }})
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	r.Header.Set("Content-Type", "application/json")
	handler.ServeHTTP(w, r)
	return w, p
}

// FuzzChat checks that every body gets a JSON answer, and that the records of an accepted body can be decoded and agree
// with the answer.
func FuzzChat(f *testing.F) {
	for _, body := range []string{
		`{"session_id":"s","content":"hi","user_id":"u","request_id":"r","reply":{"callbackService":"harbor","x":[1,{}]}}`,
		`{"session_id":7,"content":true,"reply":null}`, `{"session_id":"\ud83d","content":"\u0000"} x`, `[]`, ``, `{`,
	} {
		f.Add(body)
	}
	catalog, err := topics.For("pilot")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body string) {
		w, p := serve(t, turnhttp.ChatPath, body)
		var answer map[string]string
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
		if w.Code != http.StatusOK {
			require.Equal(t, 400, w.Code)
			require.NotEmpty(t, answer["error"])
			require.Empty(t, p.records)
			return
		}
		last := p.records[len(p.records)-1]
		require.Equal(t, catalog.MessageInput.Name(), last.Topic)
		in := catalog.MessageInput.Codec().Unmarshal(last.Value)
		require.NoError(t, in.Err)
		require.Equal(t, answer["session_id"], *in.Value.SessionID)
		require.Equal(t, last.Key, *in.Value.SessionID)
		if len(p.records) == 1 {
			return
		}
		route := catalog.ReplyTo.Codec().Unmarshal(p.records[0].Value)
		require.NoError(t, route.Err)
		require.NotEmpty(t, *route.Value.CallbackService)
		if id := answer["request_id"]; id != "" {
			require.Equal(t, id, *route.Value.RequestID)
		}
	})
}

// FuzzToolResponse checks that every body is either rejected or becomes a result that the turn can decode.
func FuzzToolResponse(f *testing.F) {
	for _, body := range []string{
		`{"a":1}`, `{"status":"error","error":"x"}`, `"x"`, `null`, ``, `[[1]] x`, `{"a":"\ud83d"}`, "{\"a\":\"\xff\"}", `{`,
	} {
		f.Add(body)
	}
	catalog, err := topics.For("pilot")
	require.NoError(f, err)
	minted, err := token.Mint(secret, token.Claims{
		SessionID: "s", ToolUseID: "t", Agent: text("pilot"), Expires: time.Now().Add(24 * time.Hour),
	})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body string) {
		w, p := serve(t, turnhttp.ToolResponsePath, body, "Authorization", "Bearer "+minted)
		if w.Code != http.StatusAccepted {
			require.Equal(t, 400, w.Code)
			require.Empty(t, p.records)
			return
		}
		out := catalog.ToolUseResult.Codec().Unmarshal(p.records[0].Value)
		require.NoError(t, out.Err)
		require.Equal(t, byte('{'), out.Value.Result[0])
		require.Contains(t, []string{"success", "error"}, *out.Value.Status)
	})
}

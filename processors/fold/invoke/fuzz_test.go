package invoke

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"github.com/turntable-streams/turntable/processors/auth"
)

// FuzzAccept checks that any header can be parsed, that Wanted has only supported types without those of Refused, and that
// negotiate returns a type that the agent supports.
func FuzzAccept(f *testing.F) {
	for _, s := range []string{
		"", "*/*", "application/json;q=0.5, text/event-stream", `application/json;v="a,b;q=0";q=1.000`, "text/*;q=0",
		"application/x-ndjson;q=0, */*", ";;,,=\"", "application/jsonl;Q=.9",
	} {
		f.Add(s, uint8(0))
	}
	f.Fuzz(func(t *testing.T, header string, how uint8) {
		a := ParseAccept(header)
		for _, m := range a.Wanted {
			require.Contains(t, []MediaType{JSON, SSE, NDJSON, JSONL}, m)
			require.NotContains(t, a.Refused, m)
			require.Contains(t, strings.ToLower(header), string(m))
		}
		stream := how&4 != 0
		for _, flag := range []*bool{nil, &stream} {
			answer, supported, ok := negotiate(a, Shape(how%3), flag)
			batches, streams := offered(Shape(how%3), flag)
			if !ok {
				require.NotEmpty(t, supported)
				require.NotEmpty(t, a.requested())
				continue
			}
			require.True(t, answer.Streams() && streams || !answer.Streams() && batches)
			require.NotContains(t, a.Refused, answer)
		}
	})
}

// FuzzInvokeBody checks that any body is answered with JSON, and that only JSON objects reach the agent, unchanged.
func FuzzInvokeBody(f *testing.F) {
	for _, body := range []string{
		question, `{}`, ``, `[]`, `{"flags":{"stream":"true","trim":null}}`, `{"session_id":"\ud83d"}`, "{\"a\":\"\xff\"}",
		`{"data":{"inputs":{"messages":[{"role":"user","parts":[{"type":"text"},{"type":"tool-a","output":{}}]},7]}}}`,
		`{"data":{"inputs":{"messages":[{"role":"assistant","id":"m","parts":[{"type":"file","url":"u"}]}]},"inputs":7}}`,
		`{"flags":{"force":true}} x`,
	} {
		f.Add(body, true)
		f.Add(body, false)
	}
	f.Fuzz(func(t *testing.T, body string, vercel bool) {
		agent := scripted(t, hello)
		door, err := New(agent, Config{Door: auth.Door{BodyLimit: 64 << 10}, Random: fixed{}})
		require.NoError(t, err)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/invoke", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json")
		if vercel {
			r.Header.Set(HeaderFormat, "vercel")
		}
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		require.Contains(t, []int{200, 400, 406, 413, 422}, w.Code)
		require.Equal(t, string(JSON), w.Header().Get("Content-Type"))
		require.True(t, jsontext.Value(w.Body.Bytes()).IsValid(), w.Body.String())
		if w.Code != http.StatusOK {
			require.Empty(t, agent.requests)
			return
		}
		got := agent.requests[0]
		require.Equal(t, body, string(got.Body))
		require.True(t, validSession(got.SessionID))
		if got.Data != nil {
			require.True(t, jsontext.Value(got.Data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)))
		}
	})
}

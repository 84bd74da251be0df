package peerhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/topics"
)

// serve passes a request to a door without a server. Every task succeeds.
func serve(t *testing.T, path, body string, headers map[string][]string) (*httptest.ResponseRecorder, *group) {
	t.Helper()
	d := newRig(t)
	d.group.reply = succeed
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for name, values := range headers {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	require.Zero(t, d.handler.slots.len())
	require.Zero(t, d.replies.waiters())
	require.True(t, jsontext.Value(w.Body.Bytes()).IsValid(), w.Body.String())
	return w, d.group
}

// FuzzTokenHeader checks that only the header with the token is accepted, in the forms that peerwire.Bearer accepts.
func FuzzTokenHeader(f *testing.F) {
	for _, v := range []string{"Bearer T2", " bearer \t T2 ", "BearerT2", "Bearer T2 x", "Basic T2", "", "Bearer ", "Bearer T2\x00", "Bearer \u00a0T2"} {
		f.Add(v, false)
		f.Add(v, true)
	}
	f.Fuzz(func(t *testing.T, value string, twice bool) {
		values := []string{value}
		if twice {
			values = append(values, value)
		}
		w, g := serve(t, DelegatePath, requestOf("t"), map[string][]string{"Authorization": values})
		rest := peerwire.Trim(value)
		accepted := !twice && len(value) <= peerwire.MaxHeader && len(rest) > 6 && strings.EqualFold(rest[:6], "Bearer") &&
			len(peerwire.Trim(rest[6:])) < len(rest[6:]) && peerwire.Trim(rest[6:]) == "T2"
		switch {
		case accepted:
			require.Equal(t, 200, w.Code)
		case peerwire.Trim(value) != "" && (strings.HasSuffix(rest, "T3") || strings.HasSuffix(rest, "T4") || strings.HasSuffix(rest, "T5")):
			require.Contains(t, []int{200, 401, 403}, w.Code) // another token of the settings
		default:
			require.Contains(t, []int{401, 431}, w.Code)
			require.Empty(t, g.kinds())
		}
	})
}

// FuzzPrefer checks that every header is read, that the wait is bounded, and that the answer agrees with it.
func FuzzPrefer(f *testing.F) {
	for _, v := range []string{"respond-async, wait=25", `wait="7";a="b,c", RESPOND-ASYNC`, "respond-async=1", "wait=1e9", `"`, `\`, "a=\"\\", ",,;=", "wait=18446744073709551616"} {
		f.Add(v, v)
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		p := preferenceOf([]string{one, two})
		require.True(t, p.wait >= 0 && p.wait <= maxWait && p.wait%time.Second == 0)
		if !strings.Contains(one, `"`) { // an open quoted string ends with its value
			require.Equal(t, p, preferenceOf([]string{one + "," + two}), "one header or two")
		}
	})
}

// FuzzDelegate checks that every body is refused, or becomes a command that the group can read.
func FuzzDelegate(f *testing.F) {
	for _, body := range []string{
		requestOf("t"), requestOf(`\u0000/..`, `,"agentId":" back ","timeoutMs":1e300,"hopCount":2`), `{}`, ``, `[`, `null`,
		requestOf("t", `,"callback":{"token":"C"}`), "{\"taskId\":\"\xff\",\"parentInstanceId\":\"\xff\",\"content\":\"\xff\"}",
	} {
		f.Add(body, "respond-async")
	}
	f.Fuzz(func(t *testing.T, body, prefer string) {
		w, g := serve(t, DelegatePath, body, map[string][]string{"Authorization": {"Bearer T4"}, "Prefer": {prefer}})
		runs := g.of(topics.PeerRun)
		if w.Code != http.StatusOK {
			require.Contains(t, []int{400, 403, 404, 409, 413, 431}, w.Code)
			require.Empty(t, runs)
			return
		}
		req, refusal := peerwire.ReadRequest(runs[0].Request)
		require.Nil(t, refusal)
		require.Equal(t, req.TaskID, runs[0].TaskID)
		require.Equal(t, req.Hash(), runs[0].Hash)
		require.Equal(t, peerwire.SessionID("partner-d", req.TaskID), g.sessions[0])
		_, err := peerwire.ReadReply(w.Body.Bytes(), req.TaskID)
		require.NoError(t, err)
	})
}

// FuzzProxy checks that every body is refused, or becomes a command whose request a peer accepts.
func FuzzProxy(f *testing.F) {
	for _, body := range []string{
		task1, `{"peerId":"\ud800","content":"\ud800"}`, `{"peerId":"a","content":"x","timeoutMs":1e999,"agentId":[],"parentSessionId":"s"}`,
		`null`, ``, `{"peerId":"a","peerId":5,"content":"x"}`, "{\"peerId\":\"a\",\"content\":\"\xff\",\"x\":\"\xff\"}",
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w, g := serve(t, ProxyPath, body, nil)
		sent := g.of(topics.PeerDelegate)
		if w.Code != http.StatusOK {
			require.Contains(t, []int{400, 413}, w.Code)
			require.Empty(t, sent)
			return
		}
		req, refusal := peerwire.ReadRequest(sent[0].Request)
		require.Nil(t, refusal)
		require.Equal(t, []string{req.TaskID, req.Hash()}, []string{sent[0].TaskID, sent[0].Hash})
		require.Equal(t, "a-1", req.ParentInstanceID)
		require.GreaterOrEqual(t, sent[0].DeadlineMS, noon.Add(time.Second).UnixMilli())
	})
}

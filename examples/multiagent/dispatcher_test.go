package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// fakeDoor is a chat door that gives the answers that it was given, the last one again and again.
type fakeDoor struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int
	bodies  []string
	keys    []string
}

func newDoor(t *testing.T, answers ...int) *fakeDoor {
	t.Helper()
	d := &fakeDoor{answers: answers}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *fakeDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bodies, d.keys = append(d.bodies, string(body)), append(d.keys, r.Header.Get("Idempotency-Key"))
	status := d.answers[0]
	if len(d.answers) > 1 {
		d.answers = d.answers[1:]
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
}

// published is a publisher that collects records.
type published struct {
	mu      sync.Mutex
	records []processors.Outbound
}

func (p *published) Publish(_ context.Context, records ...processors.Outbound) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records = append(p.records, records...)
	return nil
}

// dispatch dispatches one call to a door. It returns the result that was written, or "" if the call is pending.
func dispatch(t *testing.T, chat, input string) string {
	t.Helper()
	d := dispatcher{agent: orchestrator, chat: chat, callback: "back", logger: zap.NewNop()}
	asks := newAsks()
	defer asks.CloseIdleConnections()
	to := new(published)
	w, err := tools.NewWorker(orchestrator, to, map[string]tools.Func{
		delegateTask: func(ctx context.Context, c tools.Call) (any, error) { return d.delegate(ctx, asks, c) },
	}, tools.Config{TokenSecret: secret, TokenTTL: time.Hour})
	require.NoError(t, err)
	require.NoError(t, w.Handle(t.Context(), processors.Inbound{
		Topic: "orchestrator-tool-use", Timestamp: time.Now(), Key: []byte("s"),
		Value:   []byte(`{"tool_use_id":"call-1","name":"delegate_task","input":` + input + `,"total_tools":1}`),
		Headers: []processors.Header{{Name: topics.HeaderID, Value: []byte("turn/1/tool-use/0")}},
	}))
	if len(to.records) == 0 {
		return ""
	}
	require.Len(t, to.records, 1)
	catalog, err := topics.For(orchestrator)
	require.NoError(t, err)
	in := catalog.ToolUseResult.Codec().Unmarshal(to.records[0].Value)
	require.NoError(t, in.Err)
	return *in.Value.Status + " " + string(in.Value.Result)
}

// A door that redirects, because it is taken over or badly configured, does not pass task and callback token on.
func TestTaskIsNotPostedToTheTargetOfARedirect(t *testing.T) {
	followed := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { followed <- r.URL.Path }))
	defer other.Close()
	door := httptest.NewServer(http.RedirectHandler(other.URL+"/admin/reset", http.StatusTemporaryRedirect))
	defer door.Close()
	require.Contains(t, dispatch(t, door.URL, `{"task":"Dig."}`), "status 307")
	require.Empty(t, followed)
}

func TestTaskIsPostedWithAReplyRoute(t *testing.T) {
	d := newDoor(t, http.StatusOK)
	require.Empty(t, dispatch(t, d.URL, `{"task":"Dig \"here\"."}`))
	require.Equal(t, []string{"turn/1/tool-use/0"}, d.keys)
	before, rest, _ := strings.Cut(d.bodies[0], `"bearerToken":"`)
	require.Equal(t, `{"session_id":"s--call-1","content":"Dig \"here\".","reply":{"callbackService":"back",`, before)
	callback, after, _ := strings.Cut(rest, `"`)
	require.Equal(t, `}}`, after)
	tokens, err := token.NewVerifier(secret)
	require.NoError(t, err)
	claims, err := tokens.For(orchestrator).Verify(callback, time.Now())
	require.NoError(t, err)
	require.Equal(t, []string{"s", "call-1", delegateTask}, []string{claims.SessionID, claims.ToolUseID, *claims.Name})
}

func TestTaskIsRetriedUntilTheDoorAccepts(t *testing.T) {
	d := newDoor(t, http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusOK)
	begun := time.Now()
	require.Empty(t, dispatch(t, d.URL, `{"task":"Dig."}`))
	require.GreaterOrEqual(t, time.Since(begun), time.Second, "it waits for Retry-After")
	require.Equal(t, []string{"turn/1/tool-use/0", "turn/1/tool-use/0", "turn/1/tool-use/0"}, d.keys)
	require.Equal(t, d.bodies[0], d.bodies[2], "the same token, too")
}

func TestTaskThatCannotBeHandedOverIsAnErrorResult(t *testing.T) {
	const refused = `error {"error":"the task could not be handed over: status 400","reason":"tool_failed"}`
	d := newDoor(t, http.StatusBadRequest)
	require.Equal(t, refused, dispatch(t, d.URL, `{"task":"Dig."}`))
	require.Len(t, d.keys, 1, "a refused task is not retried")
	for _, input := range []string{`{}`, `{"task":" "}`, `{"task":7}`, `null`} {
		require.Equal(t, `error {"error":"the input has no task","reason":"tool_failed"}`, dispatch(t, d.URL, input), input)
	}
	require.Len(t, d.keys, 1)
	got := dispatch(t, "http://\x7f", `{"task":"Dig."}`)
	require.Equal(t, `error {"error":"the task could not be handed over","reason":"tool_failed"}`, got)
}

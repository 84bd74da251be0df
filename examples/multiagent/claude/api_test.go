package claude_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/examples/multiagent/claude"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

const key = "sk-test-0123456789"

// api is a Messages API that sends given answers in order and repeats the last one.
type api struct {
	*httptest.Server
	mu      sync.Mutex
	answers []answer
	bodies  []string
	headers []http.Header
}

type answer struct {
	status  int
	body    string
	headers map[string]string
}

func newAPI(t *testing.T, answers ...answer) *api {
	t.Helper()
	a := &api{answers: answers}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bodies, a.headers = append(a.bodies, r.Method+" "+r.URL.Path+" "+string(body)), append(a.headers, r.Header)
	now := a.answers[0]
	if len(a.answers) > 1 {
		a.answers = a.answers[1:]
	}
	w.Header().Set("Content-Type", "application/json")
	for name, value := range now.headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(now.status)
	_, _ = io.WriteString(w, now.body)
}

func (a *api) asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.bodies)
}

// said returns a successful response.
func said(stop, content string) answer {
	return answer{status: 200, body: `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":` + content +
		`,"stop_reason":"` + stop + `","stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":20,` +
		`"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}`}
}

func refused(status int, kind string, headers ...string) answer {
	a := answer{
		status: status, body: `{"type":"error","error":{"type":"` + kind + `","message":"about Which berth?"}}`,
		headers: map[string]string{"request-id": "req_7", "retry-after-ms": "1"},
	}
	for i := 0; i < len(headers); i += 2 {
		a.headers[headers[i]] = headers[i+1]
	}
	return a
}

func newModel(t *testing.T, a *api, s claude.Settings) *claude.Model {
	t.Helper()
	if s.Key == "" {
		s.Key = key
	}
	m, err := claude.New(s, option.WithBaseURL(a.URL))
	require.NoError(t, err)
	t.Cleanup(m.Close)
	return m
}

func message(role, content string) topics.Message {
	return topics.Message{Role: &role, Content: topics.Raw(content)}
}

func step(messages ...topics.Message) think.Step { return think.Step{Messages: messages} }

func question() think.Step { return step(message("user", `"Which berth?"`)) }

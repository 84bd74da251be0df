package console_test

import (
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/console"
)

// crewDoor plays the door of crews, in the shapes that package crewhttp documents.
type crewDoor struct {
	mu      sync.Mutex
	written map[string]string // bodies by path
	status  int               // of answers to permission requests
}

func (d *crewDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := callers(r); err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.written[r.URL.Path] = string(body)
		w.WriteHeader(d.status)
		return
	}
	answer := map[string]string{
		"/api/crews": `[{"id":"c-1","projectName":"harbor","systemPaused":false}]`,
		"/api/agents": `[{"id":"1a2b3c4d-0000","role":{"id":"lead","name":"Lead"},"status":"running","phase":"working","task":"Write the notes","childIds":[],
			"createdAt":"2026-11-28T10:00:00Z","outputPreview":"I read <b>notes.txt</b>","toolCalls":[{"toolCallId":"t","title":"cat notes.txt","kind":"execute","status":"completed"}],
			"model":"m","inputTokens":1200,"outputTokens":34,"pendingMessages":2,"permissions":[{"id":"g-1","toolName":"edit","arguments":{"path":"notes.txt"},
			"content":[{"type":"diff","path":"notes.txt","oldText":"one\n","newText":"two\n"}],"timestamp":"2026-11-28T10:00:00Z","expiresAt":"2026-11-28T11:00:00Z","dangerous":false,
			"options":[{"optionId":"yes","name":"Allow once","kind":"allow_once"}],"argsSha256":"d1"}]}]`,
		"/api/tasks": `[{"id":"b","leadId":"1a2b3c4d-0000","role":"dev","description":"second","files":[],"dependsOn":["a"],"dagStatus":"pending"},
			{"id":"a","leadId":"1a2b3c4d-0000","role":"dev","description":"first","files":[],"dependsOn":["b-none"],"dagStatus":"done"}]`,
		"/api/coordination/locks":    `[{"filePath":"notes.txt","agentId":"1a2b3c4d-0000","agentRole":"Lead","repository":"harbor","expiresAt":"2026-11-28T11:00:00Z"}]`,
		"/api/delegations":           `[{"id":"d","fromAgentId":"1a2b3c4d-0000","toRole":"dev","task":"do it","status":"active","createdAt":"2026-11-28T10:00:00Z"}]`,
		"/api/coordination/activity": `[{"id":1,"agentId":"1a2b3c4d-0000","agentRole":"Lead","actionType":"commit","summary":"add notes","timestamp":"2026-11-28T10:00:00Z"}]`,
		"/api/bus/messages":          `[{"id":"m","from":"1a2b3c4d-0000","to":"*","type":"broadcast","content":"hello all","timestamp":"2026-11-28T10:00:00Z"}]`,
	}[r.URL.Path]
	if answer == "" {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = io.WriteString(w, answer)
}

func withCrews(d *crewDoor) func(*agent.Config, *console.Config) {
	d.written, d.status = map[string]string{}, http.StatusOK
	return func(_ *agent.Config, c *console.Config) { c.Crews = d }
}

func TestCrewIsShownAndAnswered(t *testing.T) {
	door := &crewDoor{}
	f := newField(t, withCrews(door))
	boss := f.as("boss")
	page := boss.page("/console/crews")
	for _, text := range []string{"Lead", "@1a2b3c4d", "2 messages in the queue", "commit", "notes.txt"} {
		require.Contains(t, page, text)
	}
	for _, text := range []string{"hello all", "Write the notes", "I read", `value="approve"`, "cat notes.txt", "do it"} {
		require.NotContains(t, page, text, "texts are hidden until they are asked for")
	}
	page = boss.page("/console/crews?id=c-1&show=texts")
	for _, text := range []string{"hello all", "Write the notes", "I read &lt;b&gt;", "cat notes.txt", `<span class="del">- one`, `<span class="add">&#43; two`} {
		require.Contains(t, page, text)
	}
	require.Regexp(t, `(?s)<tr class="l1"><th scope="row"><code>a</code>.*<tr class="l2"><th scope="row"><code>b</code>`, page, "a task comes after what it needs")

	_, _, page = boss.post("/console/crews/permission", url.Values{
		"crew": {"c-1"}, "agent": {"1a2b3c4d-0000"}, "request": {"g-1"}, "verdict": {"approve"}, "option": {"yes"},
	})
	require.Contains(t, page, "Your decision counts.")
	var sent map[string]any
	require.NoError(t, json.Unmarshal([]byte(door.written["/api/agents/1a2b3c4d-0000/permission"]), &sent))
	require.Equal(t, map[string]any{"approved": true, "requestId": "g-1", "reason": "", "optionId": "yes"}, sent)
	door.status = http.StatusConflict
	_, _, page = boss.post("/console/crews/permission", url.Values{"crew": {"c-1"}, "agent": {"1a2b3c4d-0000"}, "request": {"g-1"}, "verdict": {"deny"}})
	require.Contains(t, page, "Your decision does not count")
	door.status = http.StatusAccepted
	_, _, page = boss.post("/console/crews/message", url.Values{"crew": {"c-1"}, "text": {"stop"}})
	require.Contains(t, page, "The message was sent.")
	require.JSONEq(t, `{"text":"stop"}`, door.written["/api/crews/c-1/message"])

	status, _, _ := f.as("decider").post("/console/crews/message", url.Values{"crew": {"c-1"}, "text": {"stop"}})
	require.Equal(t, http.StatusForbidden, status)
}

func TestConsoleWithoutCrewsHasNoPageOfThem(t *testing.T) {
	f := newField(t)
	status, _ := f.as("boss").get("/console/crews")
	require.Equal(t, http.StatusNotFound, status)
	require.NotContains(t, f.as("boss").page("/console/"), "nav-crews")
}

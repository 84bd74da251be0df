package examples

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// The page makes two requests and loads nothing from elsewhere.
func TestPageOfTheTutorialFetchesFromItsAgentOnly(t *testing.T) {
	page := source(t, "step4page", "index.html")
	require.Equal(t, 1, strings.Count(page, "fetch("))
	require.Contains(t, page, "return fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) })")
	var paths []string
	for _, m := range regexp.MustCompile(`await post\(([^,]+),`).FindAllStringSubmatch(page, -1) {
		paths = append(paths, m[1])
	}
	require.Equal(t, []string{"'/invoke'", "'/api/gates/' + id + '/decision'"}, paths)
	require.NotRegexp(t, `(?i)https?://|src=|href=|import|innerHTML =`, page)
}

// A browser opens the page, sends its message, and presses one of the buttons.
func TestPageOfTheTutorial(t *testing.T) {
	ctx, stop := context.WithCancel(deadline(t))
	address := "127.0.0.1:" + freePort(t)
	page := exec.CommandContext(ctx, filepath.Join(bin, "step4page"))
	errs := new(buffer)
	page.Env, page.Stderr, page.WaitDelay = []string{"LISTEN=" + address}, errs, time.Minute
	page.Cancel = func() error { return page.Process.Signal(os.Interrupt) }
	require.NoError(t, page.Start())
	b := &browser{t: t, ctx: ctx, origin: "http://" + address}
	require.Eventually(t, func() bool {
		resp, err := http.Get(b.origin + "/")
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		html, err := io.ReadAll(resp.Body)
		return err == nil && resp.StatusCode == http.StatusOK && string(html) == source(t, "step4page", "index.html") &&
			resp.Header.Get("Content-Type") == "text/html; charset=utf-8"
	}, time.Minute, 20*time.Millisecond, errs)

	require.Equal(t, "One moment, please. It is refunded.", b.talk("approve"))
	require.Equal(t, "One moment, please. That did not work: the call was refused by a person, who gave no reason", b.talk("deny"))
	for _, m := range regexp.MustCompile(`case '(\w+)'`).FindAllStringSubmatch(source(t, "step4page", "index.html"), -1) {
		require.True(t, b.seen[m[1]] || m[1] == "error", "%s: %v", m[1], b.seen)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	_ = page.Wait() // the context has ended
	require.Zero(t, page.ProcessState.ExitCode(), errs)
}

// browser does what the page's script does.
type browser struct {
	t      *testing.T
	ctx    context.Context
	origin string
	seen   map[string]bool // types of events
}

func (b *browser) post(path, accept string, body any) *http.Response {
	raw, err := json.Marshal(body)
	require.NoError(b.t, err)
	r, err := http.NewRequestWithContext(b.ctx, http.MethodPost, b.origin+path, strings.NewReader(string(raw)))
	require.NoError(b.t, err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": accept, "Origin": b.origin, "Sec-Fetch-Site": "same-origin",
	} {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(b.t, err)
	return resp
}

// decide presses a button until the door of the gates knows the gate: the stream can be ahead of it, by less than a person needs.
func (b *browser) decide(path string, decision map[string]string) {
	require.Eventually(b.t, func() bool {
		resp := b.post(path, "*/*", decision)
		defer func() { _ = resp.Body.Close() }()
		require.Contains(b.t, []int{http.StatusOK, http.StatusNotFound}, resp.StatusCode)
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 10*time.Millisecond)
}

// talk sends the message of the page, decides when it is asked, and returns the text of the answer.
func (b *browser) talk(verdict string) (text string) {
	resp := b.post("/invoke", "text/event-stream", map[string]any{"session_id": "page-" + verdict, "data": map[string]any{
		"inputs": map[string]any{"messages": []any{map[string]string{"role": "user", "content": "Refund order 7, please."}}},
	}})
	defer func() { _ = resp.Body.Close() }()
	require.Equal(b.t, http.StatusOK, resp.StatusCode)
	b.seen = map[string]bool{}
	lines, deltas := bufio.NewScanner(resp.Body), 0
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type string `json:"type"`
			Data struct {
				ID      string     `json:"id"`
				Delta   string     `json:"delta"`
				Name    string     `json:"name"`
				Input   topics.Raw `json:"input"`
				Output  topics.Raw `json:"output"`
				Payload struct {
					ToolCall struct {
						Name string `json:"name"`
					} `json:"toolCall"`
					Digest string `json:"argsSha256"`
				} `json:"payload"`
			} `json:"data"`
		}
		require.NoError(b.t, json.Unmarshal([]byte(data), &e))
		b.seen[e.Type] = true
		switch e.Type {
		case "message_delta":
			text, deltas = text+e.Data.Delta, deltas+1
		case "tool_call":
			require.Equal(b.t, "refund", e.Data.Name)
			require.JSONEq(b.t, `{"Order":7}`, string(e.Data.Input))
		case "tool_result":
			require.NotEmpty(b.t, e.Data.Output)
		case "interaction_request":
			require.Equal(b.t, "refund", e.Data.Payload.ToolCall.Name)
			b.decide("/api/gates/"+e.Data.ID+"/decision", map[string]string{"verdict": verdict, "args_sha256": e.Data.Payload.Digest})
		}
	}
	require.NoError(b.t, lines.Err())
	require.Greater(b.t, deltas, 3, "the text is streamed")
	return text
}

package examples

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/embedded"
)

// claude answers as Anthropic's API does: it asks for the tool, and then says what it returned.
func claude(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	block, delta, reason := `{"type":"tool_use","id":"toolu_1","name":"order_status","input":{}}`,
		`{"type":"input_json_delta","partial_json":"{\"number\":7}"}`, "tool_use"
	if bytes.Contains(body, []byte("on its way")) {
		block, delta, reason = `{"type":"text","text":""}`, `{"type":"text_delta","text":"Order 7 is on its way."}`, "end_turn"
	}
	stream(w, block, delta, reason)
}

// stream answers as Anthropic's API does, with one block.
func stream(w http.ResponseWriter, block, delta, reason string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range [][2]string{
		{"message_start", `"message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":9,"output_tokens":1}}`},
		{"content_block_start", `"index":0,"content_block":` + block},
		{"content_block_delta", `"index":0,"delta":` + delta},
		{"content_block_stop", `"index":0`},
		{"message_delta", `"delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":5}`},
		{"message_stop", `"x":0`},
	} {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", e[0], e[0], e[1])
	}
}

// program is an agent as a process, such as that of the README.
type program struct {
	*exec.Cmd
	url  string
	errs *buffer
}

// startMinimal runs the program with the API of a model, and returns when it is healthy.
func startMinimal(ctx context.Context, t *testing.T, api string, environ ...string) *program {
	t.Helper()
	addr := freeAddress(t)
	m := &program{Cmd: exec.CommandContext(ctx, filepath.Join(bin, "minimal"))}
	m.Env = append(environ, "LISTEN="+addr, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+api)
	m.start(t, addr)
	return m
}

// freeAddress is an address that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	return free.Addr().String()
}

// start starts the program and returns when it is healthy.
func (m *program) start(t *testing.T, addr string) {
	t.Helper()
	m.url, m.errs = "http://"+addr, new(buffer)
	m.Stderr, m.WaitDelay = m.errs, time.Minute
	m.Cancel = func() error { return m.Process.Signal(os.Interrupt) }
	require.NoError(t, m.Start())
	require.Eventually(t, func() bool {
		resp, err := http.Get(m.url + "/healthz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond, m.errs)
}

// end stops the program as Ctrl-C does.
func (m *program) end(t *testing.T, stop func()) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	stop()
	_ = m.Wait() // the context has ended
	require.Zero(t, m.ProcessState.ExitCode(), m.errs.String())
}

// The program of the README answers a question with its tool, on a broker of its own.
func TestMinimalProgramAnswers(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(claude))
	t.Cleanup(api.Close)
	ctx, stop := context.WithCancel(deadline(t))
	m := startMinimal(ctx, t, api.URL)
	body, _ := ask(t, m.url+"/invoke", "Where is order 7?")
	require.Contains(t, outputs(t, body), "Order 7 is on its way.")
	require.Contains(t, m.errs.String(), "set KAFKA_BOOTSTRAP_SERVERS")
	m.end(t, stop)
}

// The program is killed while the model answers with the result of the tool. The next start answers the same request, and pays
// for the first step no second time.
func TestMinimalProgramContinuesAfterAKill(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	var first, second atomic.Int32
	reached, release := make(chan struct{}), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte("on its way")) {
			first.Add(1)
		} else if second.Add(1) == 1 {
			close(reached)
			<-release
		}
		claude(w, r)
	}))
	t.Cleanup(api.Close)
	ctx, stop := context.WithCancel(deadline(t))
	kafka := "KAFKA_BOOTSTRAP_SERVERS=" + strings.Join(broker.Addrs(), ",")
	killed := startMinimal(ctx, t, api.URL, kafka)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, killed.url+"/invoke", strings.NewReader(
			`{"session_id":"demo","data":{"inputs":{"messages":[{"role":"user","content":"Where is order 7?"}]}}}`))
		if err != nil {
			return
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "question-1")
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-reached
	require.NoError(t, killed.Process.Kill())
	_ = killed.Wait()
	<-ended
	close(release)

	next := startMinimal(ctx, t, api.URL, kafka)
	body, _ := ask(t, next.url+"/invoke", "Where is order 7?", "Idempotency-Key", "question-1")
	require.Contains(t, outputs(t, body), "Order 7 is on its way.")
	require.EqualValues(t, 1, first.Load(), "the answer that was written is not paid again")
	next.end(t, stop)
}

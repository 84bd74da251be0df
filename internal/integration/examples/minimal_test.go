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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// claude answers as Anthropic's API does: it asks for the tool, and then says what it returned.
func claude(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	block, delta, reason := `{"type":"tool_use","id":"toolu_1","name":"order_status","input":{}}`,
		`{"type":"input_json_delta","partial_json":"{\"number\":7}"}`, "tool_use"
	if bytes.Contains(body, []byte("on its way")) {
		block, delta, reason = `{"type":"text","text":""}`, `{"type":"text_delta","text":"Order 7 is on its way."}`, "end_turn"
	}
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

// The program of the README answers a question with its tool, on a broker of its own.
func TestMinimalProgramAnswers(t *testing.T) {
	ctx := deadline(t)
	api := httptest.NewServer(http.HandlerFunc(claude))
	t.Cleanup(api.Close)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())

	ctx, stop := context.WithCancel(ctx)
	errs := new(buffer)
	c := exec.CommandContext(ctx, filepath.Join(bin, "minimal"))
	c.Env = []string{"LISTEN=" + address, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + api.URL}
	c.Stderr, c.WaitDelay = errs, time.Minute
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	require.NoError(t, c.Start())
	url := "http://" + address
	require.Eventually(t, func() bool {
		resp, err := http.Get(url + "/healthz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond, errs)
	body, _ := ask(t, url+"/invoke", "Where is order 7?")
	require.Contains(t, outputs(t, body), "Order 7 is on its way.")
	require.Contains(t, errs.String(), "set KAFKA_BOOTSTRAP_SERVERS")

	http.DefaultClient.CloseIdleConnections()
	stop()
	_ = c.Wait() // the context has ended
	require.Zero(t, c.ProcessState.ExitCode(), errs.String())
}

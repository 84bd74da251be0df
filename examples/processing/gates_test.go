package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors/embedded"
)

// The policy is that of the README.
func TestCallsOfAPolicyWaitForAPerson(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, policy, ok := strings.Cut(string(page), "```yaml\n")
	require.True(t, ok)
	policy, _, _ = strings.Cut(policy, "```")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(policy), 0o600))

	broker, err := embedded.Start(embedded.Config{Partitions: 2})
	require.NoError(t, err)
	defer broker.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	p := launch(ctx, t,
		"AGENT_NAME=pilot", "KAFKA_BOOTSTRAP_SERVERS="+strings.Join(broker.Addrs(), ","), "KAFKA_STATE_DIR="+t.TempDir(),
		"HEALTH_ADDR=127.0.0.1:0", "TOOL_AGG_PUNCTUATE_INTERVAL_MS=20", "PORT=127.0.0.1:0", "WS_PORT=127.0.0.1:0", "GATE_POLICY="+file)
	lines := bufio.NewScanner(p.logs)
	require.Equal(t, []string{"chat and tool callbacks", "gates", "health", "turn", "websocket"}, until(t, lines, "starting").On)
	screen := "ws://" + until(t, lines, "websocket").Addr + "/ws"
	doors := "http://" + until(t, lines, "doors").Addr
	health := "http://" + until(t, lines, "health").Addr + "/healthz"
	drained := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, p.logs)
		drained <- err
	}()
	require.Eventually(t, func() bool { return httpStatus(health) == http.StatusOK }, time.Minute, 20*time.Millisecond)

	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...),
		kgo.ConsumeTopics("pilot-enriched-message-input", "pilot-tool-use"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	s := subscribe(ctx, t, screen, "s")
	status, _ := post(ctx, t, doors+"/api/chat", `{"session_id":"s","content":"Pay otto."}`, "")
	require.Equal(t, 200, status)
	require.Equal(t, "pilot-enriched-message-input", next(ctx, t, client).Topic)
	produce(ctx, t, client, "pilot-think-request-response", `{"session_id":"s","total_session_cost":0.5,"last_input_response":`+
		`[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"pay","input":{"cents":500}},`+
		`{"type":"tool_use","id":"t2","name":"pay","input":{"cents":5000}}]}],"tool_uses":[`+
		`{"tool_use_id":"t1","name":"pay","input":{"cents":500}},{"tool_use_id":"t2","name":"pay","input":{"cents":5000}}],"end_turn":false}`)
	require.Contains(t, string(next(ctx, t, client).Value), `"cents":500}`, "the policy allows it")
	require.Contains(t, s.until("gate_opened"), `"cents":5000`)

	var list struct {
		Gates []struct {
			ID string `json:"gate_id"`
		} `json:"gates"`
	}
	resp, err := http.Get(doors + "/api/gates?session_id=s&status=pending&wait=20s")
	require.NoError(t, err)
	require.NoError(t, json.UnmarshalRead(resp.Body, &list))
	require.NoError(t, resp.Body.Close())
	require.Len(t, list.Gates, 1)
	status, answer := post(ctx, t, doors+"/api/gates/"+list.Gates[0].ID+"/decision?wait=55s",
		`{"verdict":"approve","edited_args":{"cents":4000}}`, "")
	require.Equal(t, 200, status, answer)
	require.Contains(t, s.until("gate_closed"), `"approved"`)
	require.Contains(t, string(next(ctx, t, client).Value), `"cents":4000`, "the call runs as it was approved")

	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-drained)
	require.NoError(t, p.Wait())
}

func TestMistakesOfAPolicyAreReportedWithFileAndLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	for content, want := range map[string]string{
		"rules:\n  - tool: pay\n    effect: perhaps\n": "line 2",
		"rules:\n  - tool: pay\n    efect: ask\n":      "line 3",
		"": "",
	} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		t.Setenv("GATE_POLICY", file)
		_, err := readPolicy()
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "GATE_POLICY")
		require.ErrorContains(t, err, "policy.yaml")
		require.ErrorContains(t, err, want)
	}
	t.Setenv("GATE_POLICY", filepath.Join(t.TempDir(), "absent"))
	_, err := readPolicy()
	require.ErrorContains(t, err, "GATE_POLICY")
}

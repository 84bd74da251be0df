package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/embedded"
)

// buffer collects the output of a program while a test reads it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// play runs the command, which starts child processes.
func play(ctx context.Context, args ...string) (code int, out, errs *buffer) {
	out, errs = new(buffer), new(buffer)
	return command(ctx, args, out, errs), out, errs
}

func TestQuestionIsAnsweredByTwoAgents(t *testing.T) {
	setenv(t)
	code, out, errs := play(t.Context(), "-timeout", "3m", "-session", "demo")
	require.Zero(t, code, "%s%s", out, errs)
	require.Empty(t, errs.String())
	require.Contains(t, out.String(), "answer        17 * 23 is 391; 2 + 40 is 42; 9 - 4 is 5.\n")
	require.NotContains(t, out.String(), "bearer")

	// Every record is printed. The order is that of timestamps: the turn dates the records of one callback a millisecond apart, so the
	// answer of a model that takes less can be dated before its question.
	for _, record := range []string{
		`orchestrator-message-input +demo +user: What is`,
		`orchestrator-think-request-response +demo +asks for delegate_task, delegate_task, delegate_task`,
		`orchestrator-tool-use +demo +delegate_task {"task":"Work out 17 \* 23\."}`,
		`  worker-reply-to +demo--call-\w+-\d +the answer is for orchestrator`,
		`  worker-message-input +demo--call-\w+-\d +user: Work out`,
		`  worker-think-request-response +demo--call-\w+-\d +says: `,
		`  worker-message-output +demo--call-\w+-\d +\d+ . \d+ is`,
		`  worker-deliveries +demo--call-\w+-\d +attempt 1, to http/orchestrator`,
		`orchestrator-tool-use-result +demo +delegate_task success {"result":"`,
		`orchestrator-enriched-message-input +demo +tool input, 2 messages of history`,
		`orchestrator-message-output +demo +17 \* 23 is 391`,
	} {
		require.Regexp(t, `(?m)^\d\d:\d\d:\d\d\.\d{3}  `+record, out)
	}
}

func TestRunUsesAnExistingBroker(t *testing.T) {
	setenv(t)
	broker, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, broker.Close()) }()
	args := []string{"-timeout", "3m", "-brokers", strings.Join(broker.Addrs(), ",")}
	code, out, errs := play(t.Context(), append(args, "-session", "one")...)
	require.Zero(t, code, "%s%s", out, errs)
	// Records of an earlier run are not taken for those of this run.
	code, out, errs = play(t.Context(), append(args, "-session", "two", "-question", "3 * 3", "-expect", "^3 . 3 is 8")...)
	require.Equal(t, 1, code)
	require.NotContains(t, out.String(), "is 391")
	require.Contains(t, errs.String(), "not the expected answer")
	code, _, errs = play(t.Context(), append(args, "-session", "three", "-question", "1 / 0")...)
	require.Zero(t, code, errs)
}

func TestRunFailsAtItsTimeout(t *testing.T) {
	setenv(t)
	code, _, errs := play(t.Context(), "-timeout", "1ms")
	require.Equal(t, 1, code)
	require.Contains(t, errs.String(), "no answer within 1ms")
}

func TestInterruptStopsAllProcesses(t *testing.T) {
	setenv(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out, errs, done := new(buffer), new(buffer), make(chan int, 1)
	go func() { done <- command(ctx, []string{"-timeout", "3m"}, out, errs) }()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "worker  ") }, waitLimit, time.Millisecond)
	interrupt()
	require.Equal(t, 1, <-done, "which waits for every child")
	require.Contains(t, errs.String(), "canceled")
}

func TestFailedChildStopsAllProcesses(t *testing.T) {
	setenv(t)
	t.Setenv("THINK_TIMEOUT_MS", "soon")
	code, _, errs := play(t.Context(), "-timeout", "3m")
	require.Equal(t, 1, code)
	require.Contains(t, errs.String(), "orchestrator ended unexpectedly: exit status 1")
	require.Contains(t, errs.String(), `orchestrator: multiagent agent: turn: bad environment variable: THINK_TIMEOUT_MS`)
}

func TestInvalidCommandLineIsRejected(t *testing.T) {
	setenv(t)
	for _, args := range [][]string{{"-no-such"}, {"question"}, {"-question", " "}, {"-expect", "("}} {
		code, _, errs := play(t.Context(), args...)
		require.Equal(t, 2, code, args)
		require.NotEmpty(t, errs.String())
	}
	code, _, _ := play(t.Context(), "-h")
	require.Zero(t, code)
	code, _, _ = play(t.Context(), "agent", "-no-such")
	require.Equal(t, 1, code)
}

// The example runs with the worker of the real model, against an API on loopback.
func TestAPIKeyReplacesTheScriptedModel(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		block, delta, stop := `{"type":"text","text":""}`, `{"type":"text_delta","text":"It is 42."}`, "end_turn"
		switch body := string(raw); {
		case strings.Contains(body, `"tool_result"`):
			delta = `{"type":"text_delta","text":"The colleague says: it is 42."}`
			if !strings.Contains(body, `It is 42.`) || !strings.Contains(body, `"is_error":false`) {
				delta = `{"type":"text_delta","text":"No one called me."}`
			}
		case strings.Contains(body, `"tools"`):
			block, stop = `{"type":"tool_use","id":"toolu_1","name":"delegate_task","input":{}}`, "tool_use"
			delta = `{"type":"input_json_delta","partial_json":"{\"task\":\"6 * 7\"}"}`
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range []string{
			`{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":` + block + `}`,
			`{"type":"content_block_delta","index":0,"delta":` + delta + `}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"` + stop + `"},"usage":{"output_tokens":5}}`,
			`{"type":"message_stop"}`,
		} {
			kind, _, _ := strings.Cut(e[len(`{"type":"`):], `"`)
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, e)
		}
	}))
	defer api.Close()
	const key = "sk-test-0123456789"
	setenv(t, "ANTHROPIC_API_KEY="+key, "ANTHROPIC_BASE_URL="+api.URL)
	code, out, errs := play(t.Context(), "-timeout", "3m", "-v", "-question", "What is 6 * 7?",
		"-expect", `^The colleague says: it is 42\.$`)
	require.Zero(t, code, "%s%s", out, errs)
	require.Contains(t, out.String(), "--toolu_1 ")
	require.NotContains(t, out.String()+errs.String(), key, "not even in the logs of everything")
}

package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/processors/embedded"
)

// child makes the test binary be the program.
const child = "TURNTABLE_PROCESSING_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m, leaktest.Libraries()...)
}

// program is the running program and what it has logged.
type program struct {
	*exec.Cmd
	logs io.Reader
}

func launch(ctx context.Context, t *testing.T, env ...string) *program {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append([]string{child + "=1", "HOME=" + t.TempDir()}, env...)
	logs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return &program{cmd, logs}
}

// logged is a line of the program's log.
type logged struct {
	Msg   string   `json:"msg"`
	Addr  string   `json:"addr"`
	Error string   `json:"error"`
	Names []string `json:"names"`
	On    []string `json:"on"`
}

// until reads the log up to a message.
func until(t *testing.T, lines *bufio.Scanner, msg string) logged {
	t.Helper()
	for lines.Scan() {
		var l logged
		require.NoError(t, json.Unmarshal(lines.Bytes(), &l), lines.Text())
		if l.Msg == msg {
			return l
		}
	}
	require.FailNow(t, "the log has no line", msg)
	return logged{}
}

func TestDropInRunsATurnUntilSIGTERM(t *testing.T) {
	for _, guarantee := range []string{"at_least_once", "exactly_once_v2"} {
		t.Run(guarantee, func(t *testing.T) { runTurnUntilSIGTERM(t, guarantee) })
	}
}

func runTurnUntilSIGTERM(t *testing.T, guarantee string) {
	broker, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	defer broker.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	p := launch(ctx, t,
		"AGENT_NAME=harbour", "KAFKA_BOOTSTRAP_SERVERS="+strings.Join(broker.Addrs(), ","), "KAFKA_STATE_DIR="+t.TempDir(),
		"KAFKA_HEAP_OPTS=-Xmx1g", "HEALTH_ADDR=127.0.0.1:0", "ASYNC_TOOL_TIMEOUT_MS=60000",
		"TOOL_AGG_PUNCTUATE_INTERVAL_MS=50", "PROCESSING_GUARANTEE="+guarantee,
	)
	lines := bufio.NewScanner(p.logs)
	until(t, lines, "MEMOIR_ENABLED is not set and counts as false")
	require.Equal(t, []string{"KAFKA_HEAP_OPTS"}, until(t, lines, "KAFKA_ variables without effect").Names)
	health := "http://" + until(t, lines, "health").Addr + "/healthz"
	drained := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, p.logs)
		drained <- err
	}()
	require.Eventually(t, func() bool { return httpStatus(health) == http.StatusOK }, time.Minute, 20*time.Millisecond)

	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...),
		kgo.ConsumeTopics("harbour-enriched-message-input", "harbour-message-output"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	produce(ctx, t, client, "harbour-message-input",
		`{"session_id":"s","user_id":"mira","role":"user","content":"Which berth?","timestamp":"t","metadata":null}`)
	asked := string(next(ctx, t, client).Value)
	require.Contains(t, asked, `"history":[],"latest_input":{"session_id":"s"`)
	require.Contains(t, asked, `"latestInput":{"session_id":"s"`)
	produce(ctx, t, client, "harbour-think-request-response", `{"session_id":"s","total_session_cost":0.5,`+
		`"last_input_response":[{"role":"assistant","content":"N4."}],"tool_uses":null,"end_turn":true}`)
	answer := next(ctx, t, client)
	require.Equal(t, "harbour-message-output", answer.Topic)
	require.Contains(t, string(answer.Value), `"content":"N4."`)

	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-drained)
	require.NoError(t, p.Wait(), "SIGTERM ends it with 0")
}

func TestInvalidVariablesAreRejectedByName(t *testing.T) {
	for want, env := range map[string][]string{
		"AGENT_NAME":                     {},
		"MEMOIR_ENABLED: want true or":   {"AGENT_NAME=a", "MEMOIR_ENABLED=maybe"},
		"INACTIVITY_THRESHOLD_SECONDS":   {"AGENT_NAME=a", "MEMOIR_ENABLED=true", "MEMOIR_SESSION_INACTIVITY_THRESHOLD_SECONDS=0"},
		"PUNCTUATE_INTERVAL_SECONDS":     {"AGENT_NAME=a", "MEMOIR_SESSION_PUNCTUATE_INTERVAL_SECONDS=5s"},
		"BUDGET_PRICE_PER_USER_DAY":      {"AGENT_NAME=a", "BUDGET_PRICE_PER_USER_DAY=-1"},
		"TENANT_SEPARATOR":               {"AGENT_NAME=a", "BUDGET_PRICE_PER_TENANT=1"},
		"SESSION_COSTS":                  {"AGENT_NAME=a", "SESSION_COSTS=1"},
		"TOOL_LATENCIES":                 {"AGENT_NAME=a", "TOOL_LATENCIES=on"},
		"KAFKA_ACKS":                     {"AGENT_NAME=a", "KAFKA_ACKS=1"},
		"ASYNC_TOOL_TIMEOUT_MS":          {"AGENT_NAME=a", "ASYNC_TOOL_TIMEOUT_MS=-1"},
		"THINK_TIMEOUT_MS":               {"AGENT_NAME=a", "THINK_TIMEOUT_MS=soon"},
		"KAFKA_BOOTSTRAP_SERVERS":        {"AGENT_NAME=a", "KAFKA_BOOTSTRAP_SERVERS=kafka"},
		"TOOL_AGG_PUNCTUATE_INTERVAL_MS": {"AGENT_NAME=a", "TOOL_AGG_PUNCTUATE_INTERVAL_MS=0"},
		"FLIGHTDECK_SDK":                 {"AGENT_NAME=a", "FLIGHTDECK_SDK=python"},
		"REPLY_TO_STATE_TTL_MS":          {"AGENT_NAME=a", "REPLY_TO_STATE_TTL_MS=x"},
		"instance id":                    {"AGENT_NAME=a", "PROCESSING_GUARANTEE=exactly_once"},
		"PROCESSING_GUARANTEE":           {"AGENT_NAME=a", "PROCESSING_GUARANTEE=sometimes"},
		"HEALTH_ADDR":                    {"AGENT_NAME=a", "HEALTH_ADDR=nowhere:at:all", "KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:1"},
		"PARTS names doors":              {"AGENT_NAME=a", "PARTS=turn,doors"},
		"PORT: want a port":              {"AGENT_NAME=a", "PORT=eighty"},
		"WS_PORT: want a port":           {"AGENT_NAME=a", "WS_PORT=65536"},
		"PORT and WS_PORT":               {"AGENT_NAME=a", "PORT=8000", "WS_PORT=8000"},
		"PORT: listen":                   {"AGENT_NAME=a", "PORT=nowhere.invalid:80"},
		`ALLOWED_HOST_MAPPING: sink: bad host mapping: entry 1 ("harbor")`: {"AGENT_NAME=a", "ALLOWED_HOST_MAPPING=harbor:x"},
		"WS_RESUME_KEY has 6 bytes":                                        {"AGENT_NAME=a", "WS_PORT=8001", "WS_RESUME_KEY=s3cret"},
		"WS_RESUME_KEY is set and":                                         {"AGENT_NAME=a", "WS_RESUME_KEY=s3cret"},
		"WS_RESUME_KEY is not":                                             {"AGENT_NAME=a", "WS_PORT=8001", "WS_RESUME_KEY_PREVIOUS=0123456789abcdef0123456789abcdef"},
		"REPLY_RETRY_MAX_MS":                                               {"AGENT_NAME=a", "REPLY_RETRY_MAX_MS=0"},
		"PORT is not: no tool":                                             {"AGENT_NAME=a", "TOOL_CALLBACK_SECRET=s3cret of at least thirty-two bytes"},
		"TOOL_CALLBACK_SECRET is not":                                      {"AGENT_NAME=a", "TOOL_CALLBACK_SECRET_PREVIOUS=s3cret"},
		"TOOL_CALLBACK_SECRET has fewer than 32 bytes":                     {"AGENT_NAME=a", "PORT=8000", "TOOL_CALLBACK_SECRET=s3cret"},
		"TOOL_CALLBACK_SHORT_SECRET":                                       {"AGENT_NAME=a", "PORT=8000", "TOOL_CALLBACK_SHORT_SECRET=perhaps"},
		"TOOL_CALLBACK_SECRET_PREVIOUS has fewer":                          {"AGENT_NAME=a", "PORT=8000", "TOOL_CALLBACK_SECRET=s3cret of at least thirty-two bytes", "TOOL_CALLBACK_SECRET_PREVIOUS=s3cret"},
	} {
		t.Run(want, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			p := launch(ctx, t, env...)
			said := until(t, bufio.NewScanner(p.logs), "processing failed").Error
			require.Contains(t, said, want)
			require.NotContains(t, said, "s3cret")
			var exit *exec.ExitError
			require.ErrorAs(t, p.Wait(), &exit)
			require.Equal(t, 1, exit.ExitCode())
		})
	}
}

func httpStatus(url string) int {
	resp, err := http.Get(url)
	if err != nil {
		return 0
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	return resp.StatusCode
}

func produce(ctx context.Context, t *testing.T, client *kgo.Client, topic, value string) {
	t.Helper()
	record := &kgo.Record{Topic: topic, Key: []byte("s"), Value: []byte(value)}
	require.NoError(t, client.ProduceSync(ctx, record).FirstErr())
}

func next(ctx context.Context, t *testing.T, client *kgo.Client) *kgo.Record {
	t.Helper()
	for {
		fetches := client.PollRecords(ctx, 1)
		require.NoError(t, ctx.Err())
		if records := fetches.Records(); len(records) > 0 {
			return records[0]
		}
	}
}

package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/embedded"
)

func TestPartsAreThoseThatAreNamedOrConfigured(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want parts
		err  string
	}{
		{nil, parts{turn: true}, ""},
		{map[string]string{"PARTS": " ", "PORT": "0", "WS_PORT": "0"}, parts{turn: true, doors: true, websocket: true}, ""},
		{map[string]string{"ALLOWED_HOST_MAPPING": "a:b"}, parts{turn: true, sink: true}, ""},
		{map[string]string{"PARTS": "turn", "PORT": "0", "WS_PORT": "0", "ALLOWED_HOST_MAPPING": "a:b"}, parts{turn: true}, ""},
		{map[string]string{"PARTS": "sink, doors", "PORT": "0", "ALLOWED_HOST_MAPPING": "a:b"}, parts{doors: true, sink: true}, ""},
		{map[string]string{"PARTS": "websocket", "WS_PORT": "0"}, parts{websocket: true}, ""},
		{map[string]string{"PARTS": "doors"}, parts{}, "PARTS names doors, and PORT is not set"},
		{map[string]string{"PARTS": "websocket"}, parts{}, "PARTS names websocket, and WS_PORT is not set"},
		{map[string]string{"PARTS": "turn,sink"}, parts{}, "PARTS names sink, and ALLOWED_HOST_MAPPING is not set"},
		{map[string]string{"PARTS": "turn,door"}, parts{}, `PARTS: "door" is no part, want some of turn,doors,websocket,sink`},
		{map[string]string{"PARTS": "turn,"}, parts{}, `PARTS: "" is no part`},
	} {
		t.Run(c.env["PARTS"], func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			got, err := readParts()
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// One environment serves all processes: each ignores what belongs to the parts of others.
func TestVariablesOfOtherPartsHaveNoEffect(t *testing.T) {
	for name, value := range map[string]string{
		"AGENT_NAME": "a", "PORT": "8000", "WS_PORT": "8000", "ALLOWED_HOST_MAPPING": "a:http://b", "GATE_POLICY": "/absent",
		"TOOL_CALLBACK_SECRET": "short", "WS_RESUME_KEY": "short", "AUTH_KEYS_FILE": "/absent", "THINK_TIMEOUT_MS": "1000",
		"HISTORY_IMPORT": "true", "ORDERED_OUTPUTS": "true", "REPLY_RETRY_MAX_MS": "1", "REPLY_TO_STATE_TTL_MS": "1", "TOOL_AGG_PUNCTUATE_INTERVAL_MS": "1",
	} {
		t.Setenv(name, value)
	}
	t.Setenv("PARTS", "sink")
	s, err := readSettings(zap.NewNop())
	require.NoError(t, err)
	require.False(t, s.imports, "the process with the turn imports")
	require.Equal(t, []string{
		"AUTH_KEYS_FILE", "GATE_POLICY", "HISTORY_IMPORT", "ORDERED_OUTPUTS", "PORT", "THINK_TIMEOUT_MS", "TOOL_CALLBACK_SECRET", "WS_PORT", "WS_RESUME_KEY",
	}, s.withoutEffect())

	t.Setenv("PARTS", "websocket")
	_, err = readSettings(zap.NewNop())
	require.ErrorContains(t, err, "WS_RESUME_KEY has 5 bytes")
	require.ErrorContains(t, err, "AUTH_KEYS_FILE")
	require.NotContains(t, err.Error(), "TOOL_CALLBACK_SECRET")
}

// process is a running program that has logged its addresses.
type process struct {
	*program
	t       *testing.T
	addrs   map[string]string
	drained chan error
}

// runs starts the program and reads its log up to the addresses with these names.
func runs(ctx context.Context, t *testing.T, names []string, env ...string) *process {
	t.Helper()
	p := &process{program: launch(ctx, t, env...), t: t, addrs: map[string]string{}, drained: make(chan error, 1)}
	lines := bufio.NewScanner(p.logs)
	for _, name := range names {
		p.addrs[name] = until(t, lines, name).Addr
	}
	go func() {
		_, err := io.Copy(io.Discard, p.logs)
		p.drained <- err
	}()
	return p
}

func (p *process) healthy() {
	p.t.Helper()
	health := "http://" + p.addrs["health"] + "/healthz"
	require.Eventually(p.t, func() bool { return httpStatus(health) == http.StatusOK }, time.Minute, 20*time.Millisecond)
}

// terminate sends SIGTERM, which ends the program with 0.
func (p *process) terminate() {
	p.t.Helper()
	require.NoError(p.t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(p.t, <-p.drained)
	require.NoError(p.t, p.Wait())
}

// harborService accepts all callbacks.
func harborService(t *testing.T) (mapping string, calls chan callback) {
	calls = make(chan callback, 10)
	harbor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- callback{path: r.URL.Path, authorization: r.Header.Get("Authorization"), body: string(body)}
	}))
	t.Cleanup(harbor.Close)
	return "ALLOWED_HOST_MAPPING=harbor:" + harbor.URL, calls
}

const withReply = `{"session_id":"r","content":"Which berth?","reply":{"callbackService":"harbor","bearerToken":"t0ken"}}`

func TestPartsRunInFourProcesses(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{Partitions: 2})
	require.NoError(t, err)
	defer broker.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	mapping, calls := harborService(t)
	part := func(name string, names ...string) *process {
		// One environment, except for the directory.
		return runs(ctx, t, append(names, "health"), "PARTS="+name,
			"AGENT_NAME=pilot", "KAFKA_BOOTSTRAP_SERVERS="+strings.Join(broker.Addrs(), ","), "KAFKA_STATE_DIR="+t.TempDir(),
			"TOOL_AGG_PUNCTUATE_INTERVAL_MS=20", "HEALTH_ADDR=127.0.0.1:0", "PORT=127.0.0.1:0", "WS_PORT=127.0.0.1:0", mapping)
	}
	doors, screens := part("doors", "doors"), part("websocket", "websocket")
	chat := "http://" + doors.addrs["doors"] + "/api/chat"
	status, answer := post(ctx, t, chat, `{"session_id":"s","content":"There are no topics yet."}`, "")
	require.Equal(t, 500, status, answer)
	turn, sink := part("turn"), part("sink")
	for _, p := range []*process{doors, screens, turn, sink} {
		p.healthy()
	}
	modelStops := model(ctx, t, broker.Addrs())
	defer modelStops()

	s := subscribe(ctx, t, "ws://"+screens.addrs["websocket"]+"/ws", "s")
	status, answer = post(ctx, t, chat, `{"session_id":"s","content":"Which berth?"}`, "")
	require.Equal(t, 200, status, answer)
	require.Contains(t, s.until("chat_response"), `"content":"N4."`)
	status, answer = post(ctx, t, chat, withReply, "")
	require.Equal(t, 200, status, answer)
	require.Equal(t, callback{path: "/api/tools/response", authorization: "Bearer t0ken", body: `{"result":"N4."}`}, <-calls)

	for _, p := range []*process{doors, sink, turn, screens} {
		p.terminate()
	}
}

// FlightDeck's processing writes the reply descriptor into the output as it is, and its records have no turntable.id. It keeps
// the route of a session until the tombstone of the process that delivers.
func TestEverythingButTheTurnReplacesChatAPI(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{Partitions: 2})
	require.NoError(t, err)
	defer broker.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...),
		kgo.ConsumeTopics("pilot-message-input", "pilot-reply-to"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	for _, name := range []string{
		"message-input", "enriched-message-input", "think-request-response", "tool-use", "tool-use-dlq", "tool-use-result",
		"tool-use-all-complete", "tool-use-latency", "message-output", "reply-to",
	} {
		_, err = kadm.NewClient(client).CreateTopic(ctx, 2, 1, nil, "pilot-"+name)
		require.NoError(t, err)
	}
	mapping, calls := harborService(t)
	p := runs(ctx, t, []string{"websocket", "doors", "health"}, "PARTS=doors,websocket,sink",
		"AGENT_NAME=pilot", "KAFKA_BOOTSTRAP_SERVERS="+strings.Join(broker.Addrs(), ","), "KAFKA_STATE_DIR="+t.TempDir(),
		"TOOL_AGG_PUNCTUATE_INTERVAL_MS=20", "HEALTH_ADDR=127.0.0.1:0", "PORT=127.0.0.1:0", "WS_PORT=127.0.0.1:0", mapping)
	p.healthy()
	r := subscribe(ctx, t, "ws://"+p.addrs["websocket"]+"/ws", "r")
	status, answer := post(ctx, t, "http://"+p.addrs["doors"]+"/api/chat", withReply, "")
	require.Equal(t, 200, status, answer)

	const descriptor = `{"callbackService":"harbor","bearerToken":"t0ken"}`
	read := map[string]string{}
	for len(read) < 2 {
		record := next(ctx, t, client)
		read[record.Topic] = string(record.Value)
	}
	require.Contains(t, read["pilot-message-input"], `"content":"Which berth?"`)
	require.JSONEq(t, descriptor, read["pilot-reply-to"])
	output := func(replyTo string) {
		record := &kgo.Record{Topic: "pilot-message-output", Key: []byte("r"), Value: []byte(`{"session_id":"r","content":"N4.",` +
			`"input_tokens":1,"output_tokens":1,"source_agent":"agent-1",` + replyTo + `"timestamp":"2026-06-20T08:15:23Z"}`)}
		require.NoError(t, client.ProduceSync(ctx, record).FirstErr())
	}
	output(`"reply_to":` + descriptor + `,`)
	require.Equal(t, callback{path: "/api/tools/response", authorization: "Bearer t0ken", body: `{"result":"N4."}`}, <-calls)
	tombstone := next(ctx, t, client)
	require.Equal(t, "pilot-reply-to", tombstone.Topic)
	require.Nil(t, tombstone.Value)
	output("")
	require.Contains(t, r.until("chat_response"), `"content":"N4."`)
	p.terminate()
}

// FlightDeck's chat-api delivers, so it needs the bearer token in the output.
func TestTheTurnAloneReplacesProcessing(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{Partitions: 2})
	require.NoError(t, err)
	defer broker.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	p := runs(ctx, t, []string{"health"}, "PARTS=turn", "AGENT_NAME=pilot", "PORT=127.0.0.1:0",
		"KAFKA_BOOTSTRAP_SERVERS="+strings.Join(broker.Addrs(), ","), "TOOL_AGG_PUNCTUATE_INTERVAL_MS=20", "HEALTH_ADDR=127.0.0.1:0")
	p.healthy()
	modelStops := model(ctx, t, broker.Addrs())
	defer modelStops()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.ConsumeTopics("pilot-message-output"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	produce(ctx, t, client, "pilot-reply-to", `{"callbackService":"harbor","bearerToken":"t0ken"}`)
	produce(ctx, t, client, "pilot-message-input",
		`{"session_id":"s","user_id":"user_42","role":"user","content":"Which berth?","timestamp":"t","metadata":null}`)
	require.Contains(t, string(next(ctx, t, client).Value), `"reply_to":{"callbackService":"harbor","bearerToken":"t0ken"}`)
	p.terminate()
}

func TestHealthCheckOfTheProgram(t *testing.T) {
	healthy := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || !<-healthy {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	t.Setenv("HEALTH_ADDR", "0.0.0.0:"+port)
	healthy <- true
	require.NoError(t, checkHealth(t.Context()))
	healthy <- false
	require.EqualError(t, checkHealth(t.Context()), "health: status 503")
	server.Close()
	require.ErrorContains(t, checkHealth(t.Context()), "health: ")
	t.Setenv("HEALTH_ADDR", "")
	require.ErrorContains(t, checkHealth(t.Context()), "HEALTH_ADDR is not set")
}

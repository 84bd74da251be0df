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

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/turn/token"
)

// callback is a call of the harbor service.
type callback struct{ path, authorization, key, body string }

func TestChatAPIIsReplaced(t *testing.T) {
	for _, guarantee := range []string{"at_least_once", "exactly_once"} {
		t.Run(guarantee, func(t *testing.T) { replaceChatAPI(t, guarantee) })
	}
}

func replaceChatAPI(t *testing.T, guarantee string) {
	broker, err := embedded.Start(embedded.Config{Partitions: 2})
	require.NoError(t, err)
	defer broker.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	calls := make(chan callback, 10)
	harbor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- callback{r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key"), string(body)}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer harbor.Close()

	deliveredBefore(ctx, t, broker.Addrs(), "berths")

	p := launch(ctx, t,
		"AGENT_NAME=pilot", "KAFKA_BOOTSTRAP_SERVERS="+strings.Join(broker.Addrs(), ","), "KAFKA_STATE_DIR="+t.TempDir(),
		"PROCESSING_GUARANTEE="+guarantee, "HEALTH_ADDR=127.0.0.1:0", "TOOL_AGG_PUNCTUATE_INTERVAL_MS=20",
		"PORT=127.0.0.1:0", "WS_PORT=127.0.0.1:0", "ALLOWED_HOST_MAPPING=harbor:"+harbor.URL,
		"TOOL_CALLBACK_SECRET=the new secret of 32 bytes or more", "TOOL_CALLBACK_SECRET_PREVIOUS=the old secret of 32 bytes or more",
		"PIPELINE_CONSUMER_GROUP=mine", "OUTPUT_CONSUMER_GROUP=berths", "REPLY_RETRY_MAX_MS=60000",
	)
	lines := bufio.NewScanner(p.logs)
	require.Equal(t, []string{"chat and tool callbacks", "deliveries", "health", "turn", "websocket"},
		until(t, lines, "starting").On)
	require.Equal(t, []string{"PIPELINE_CONSUMER_GROUP"}, until(t, lines, "variables without effect").Names)
	screen := "ws://" + until(t, lines, "websocket").Addr + "/ws"
	doors := "http://" + until(t, lines, "doors").Addr
	health := "http://" + until(t, lines, "health").Addr + "/healthz"
	drained := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, p.logs)
		drained <- err
	}()
	modelStops := model(ctx, t, broker.Addrs())
	defer modelStops()

	// A chat: over HTTP in, over the WebSocket out.
	s := subscribe(ctx, t, screen, "s")
	status, answer := post(ctx, t, doors+"/api/chat", `{"session_id":"s","content":"Which berth?"}`, "")
	require.Equal(t, []any{200, `{"status":"ok","session_id":"s"}`}, []any{status, answer})
	require.Contains(t, s.until(`"topic":"pilot-message-input"`), "user_42", "FlightDeck's user for a message without one")
	require.Contains(t, s.until("chat_response"), `"content":"N4."`)
	status, _ = post(ctx, t, doors+"/api/chat", "not JSON", "")
	require.Equal(t, 500, status, "as in FlightDeck")
	require.Eventually(t, func() bool { return httpStatus(health) == http.StatusOK }, time.Minute, 20*time.Millisecond)

	// A chat with a reply: out by the callback, and no token on any screen.
	r := subscribe(ctx, t, screen, "r")
	status, answer = post(ctx, t, doors+"/api/chat", `{"session_id":"r","content":"Which berth?",`+
		`"reply":{"callbackService":"harbor","bearerToken":"t0ken"}}`, "")
	require.Equal(t, 200, status, answer)
	call := <-calls
	require.NotEmpty(t, call.key)
	call.key = ""
	require.Equal(t, callback{"/api/tools/response", "Bearer t0ken", "", `{"result":"N4."}`}, call)
	require.Contains(t, r.until(`"topic":"pilot-message-output"`), "callbackService")
	status, answer = post(ctx, t, doors+"/api/chat", `{"session_id":"r","content":"x","reply":{"callbackService":"x"}}`, "")
	require.Equal(t, []any{400, `{"error":"unknown callbackService: x"}`}, []any{status, answer})

	// An asynchronous tool calls back, with a token of the old secret.
	c := subscribe(ctx, t, screen, "c")
	status, _ = post(ctx, t, doors+"/api/chat", `{"session_id":"c","content":"use a tool"}`, "")
	require.Equal(t, 200, status)
	require.Contains(t, c.until(`"topic":"pilot-tool-use"`), `"tool_use_id":"tu_1"`)
	agent := "pilot"
	claims := token.Claims{SessionID: "c", ToolUseID: "tu_1", TotalTools: 1, Agent: &agent, Expires: time.Now().Add(time.Hour)}
	minted, err := token.Mint("the old secret of 32 bytes or more", claims)
	require.NoError(t, err)
	status, answer = post(ctx, t, doors+"/api/tools/response", `{"berth":"N4"}`, minted)
	require.Equal(t, []any{202, `{"status":"accepted","tool_use_id":"tu_1"}`}, []any{status, answer})
	require.Contains(t, c.until("chat_response"), `"content":"The tool has answered."`)
	forged, err := token.Mint("another secret of 32 bytes or more", claims)
	require.NoError(t, err)
	status, answer = post(ctx, t, doors+"/api/tools/response", `{}`, forged)
	require.Equal(t, []any{401, `{"error":"Bad token signature"}`}, []any{status, answer})

	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	for _, one := range []*watcher{s, r, c} {
		require.Equal(t, websocket.StatusGoingAway, one.ending())
		require.NotContains(t, strings.Join(one.frames, "\n"), "t0ken")
		require.NotContains(t, strings.Join(r.frames, "\n"), "chat_response")
	}
	require.NoError(t, <-drained)
	require.NoError(t, p.Wait(), "SIGTERM ends it with 0")
}

// deliveredBefore writes an output that chat-api has delivered, and commits it in chat-api's consumer group. The program
// that replaces chat-api must not deliver it again.
func deliveredBefore(ctx context.Context, t *testing.T, brokers []string, group string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	require.NoError(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(ctx, 2, 1, nil, "pilot-message-output")
	require.NoError(t, err)
	record, err := client.ProduceSync(ctx, &kgo.Record{
		Topic: "pilot-message-output", Key: []byte("old"), Value: []byte(`{"session_id":"old","content":"Delivered.",` +
			`"input_tokens":0,"output_tokens":0,"source_agent":"agent-1","timestamp":"2026-06-20T08:15:23Z",` +
			`"reply_to":{"callbackService":"harbor","bearerToken":"old"}}`),
	}).First()
	require.NoError(t, err)
	offsets := kadm.Offsets{}
	offsets.AddOffset(record.Topic, record.Partition, record.Offset+1, -1)
	require.NoError(t, admin.CommitAllOffsets(ctx, group, offsets))
}

// model answers every step, with a tool call if the message asks for one.
func model(ctx context.Context, t *testing.T, brokers []string) (stop func()) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("pilot-enriched-message-input"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	require.NoError(t, err)
	inner, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer client.Close()
		for inner.Err() == nil {
			client.PollFetches(inner).EachRecord(func(r *kgo.Record) {
				asked := string(r.Value)
				answer := `"last_input_response":[{"role":"assistant","content":"N4."}],"end_turn":true}`
				switch {
				case strings.Contains(asked, `"role":"tool"`):
					answer = `"last_input_response":[{"role":"assistant","content":"The tool has answered."}],"end_turn":true}`
				case strings.Contains(asked, "use a tool"):
					answer = `"last_input_response":[{"role":"assistant","content":[]}],"tool_uses":[{"tool_use_id":"tu_1",` +
						`"tool_id":"ask","name":"ask","input":{},"session_id":"c","total_tools":1}],"end_turn":false}`
				}
				client.Produce(inner, &kgo.Record{
					Topic: "pilot-think-request-response", Key: r.Key, Value: []byte(`{"session_id":"` + string(r.Key) + `",` + answer),
				}, nil)
			})
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// watcher is a dashboard.
type watcher struct {
	t      *testing.T
	conn   *websocket.Conn
	ctx    context.Context
	frames []string
}

// subscribe returns when the subscription is active.
func subscribe(ctx context.Context, t *testing.T, url, session string) *watcher {
	t.Helper()
	conn, _, err := websocket.Dial(ctx, url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	w := &watcher{t: t, conn: conn, ctx: ctx}
	require.NoError(t, conn.Write(ctx, websocket.MessageText,
		[]byte(`{"type":"subscribe","session_id":"`+session+`","last_event_id":"none"}`)))
	w.until("resumed")
	return w
}

// until reads frames up to one that contains the text.
func (w *watcher) until(part string) string {
	w.t.Helper()
	for {
		_, frame, err := w.conn.Read(w.ctx)
		require.NoError(w.t, err, "before %q: %v", part, w.frames)
		w.frames = append(w.frames, string(frame))
		if strings.Contains(string(frame), part) {
			return string(frame)
		}
	}
}

func (w *watcher) ending() websocket.StatusCode {
	for {
		_, frame, err := w.conn.Read(w.ctx)
		if err != nil {
			return websocket.CloseStatus(err)
		}
		w.frames = append(w.frames, string(frame))
	}
}

func post(ctx context.Context, t *testing.T, url, body, bearer string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors/embedded"
)

// FlightDeck's Execution tab reads the steps of a turn from the order of the frames, and its dashboard shows the sessions to
// which it has not subscribed.
func TestDashboardShowsToolTurnsInOrder(t *testing.T) {
	for _, guarantee := range []string{"at_least_once", "exactly_once"} {
		t.Run(guarantee, func(t *testing.T) { showToolTurns(t, guarantee) })
	}
}

func showToolTurns(t *testing.T, guarantee string) {
	const turns = 25
	broker, err := embedded.Start(embedded.Config{Partitions: 2})
	require.NoError(t, err)
	defer broker.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	p := launch(ctx, t,
		"AGENT_NAME=pilot", "KAFKA_BOOTSTRAP_SERVERS="+strings.Join(broker.Addrs(), ","), "KAFKA_STATE_DIR="+t.TempDir(),
		"PROCESSING_GUARANTEE="+guarantee, "HEALTH_ADDR=127.0.0.1:0", "WS_PORT=127.0.0.1:0", everyoneVariable+"=true")
	lines := bufio.NewScanner(p.logs)
	until(t, lines, "every WebSocket client sees every session (EverySessionToEveryone)")
	screen := "ws://" + until(t, lines, "websocket").Addr + "/ws"
	health := "http://" + until(t, lines, "health").Addr + "/healthz"
	drained := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, p.logs)
		drained <- err
	}()
	stop := foreignWorkers(ctx, t, broker.Addrs())
	defer stop()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...))
	require.NoError(t, err)
	defer client.Close()

	require.Eventually(t, func() bool { return httpStatus(health) == http.StatusOK }, time.Minute, 20*time.Millisecond)
	mine, other := subscribe(ctx, t, screen, "s"), subscribe(ctx, t, screen, "another")
	ordered := map[*watcher]int{}
	for turn := range 1 + turns {
		produce(ctx, t, client, "pilot-message-input", fmt.Sprintf(`{"session_id":"s","role":"user","content":"Berth %d?","timestamp":"2026-06-20T08:15:%02dZ"}`, turn, turn))
		for w, count := range map[*watcher]int{mine: 11, other: 10} { // the subscriber also receives the chat_response
			w.frames = nil
			for range count {
				w.until("")
			}
			// In the first turn, the program may still be opening the topics.
			if turn > 0 && isToolTurn(shown(t, w.frames)) {
				ordered[w]++
			}
		}
	}
	// On a machine that is busy with other tests, a topic may be read later than a record waits for its cause. Without the order,
	// at most 5 of 25 turns are shown like this.
	require.GreaterOrEqual(t, ordered[mine], turns-3)
	require.GreaterOrEqual(t, ordered[other], turns-3)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-drained)
	require.NoError(t, p.Wait())
}

// shown returns the topics of the pipeline events.
func shown(t *testing.T, frames []string) (topics []string) {
	for _, text := range frames {
		var frame struct {
			Type string `json:"type"`
			Data struct {
				Topic string `json:"topic"`
			} `json:"data"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &frame))
		if frame.Type == "pipeline_event" {
			topics = append(topics, frame.Data.Topic)
		}
	}
	return topics
}

// isToolTurn reports whether records are those of a turn with a tool, in causal order.
func isToolTurn(topics []string) bool {
	return slices.Equal(topics, []string{
		"pilot-message-input", "pilot-enriched-message-input", "pilot-think-request-response", "pilot-tool-use", "pilot-tool-use-result",
		"pilot-tool-use-all-complete", "pilot-message-input", "pilot-enriched-message-input", "pilot-think-request-response", "pilot-message-output",
	})
}

// foreignWorkers are a model and a tool that write no IDs, like those of FlightDeck. They answer at once.
func foreignWorkers(ctx context.Context, t *testing.T, brokers []string) (stop func()) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("pilot-enriched-message-input", "pilot-tool-use"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	require.NoError(t, err)
	inner, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	calls := 0
	answer := func(r *kgo.Record) (topic, value string) {
		var asked struct {
			Input json.RawMessage `json:"latest_input"`
			Call  string          `json:"tool_use_id"`
		}
		_ = json.Unmarshal(r.Value, &asked)
		var message struct {
			Role string `json:"role"`
		}
		_ = json.Unmarshal(asked.Input, &message)
		switch {
		case r.Topic == "pilot-tool-use":
			return "pilot-tool-use-result", `{"session_id":"s","tool_use_id":"` + asked.Call + `","name":"ask","result":{},"latency_ms":1,"status":"success"}`
		case message.Role == "tool":
			return "pilot-think-request-response", fmt.Sprintf(`{"session_id":"s","last_input_message":%s,"last_input_response":[{"role":"assistant","content":"N%d."}],"end_turn":true}`, asked.Input, calls)
		default:
			calls++
			return "pilot-think-request-response", fmt.Sprintf(`{"session_id":"s","last_input_message":%s,"last_input_response":[{"role":"assistant","content":[]}],`+
				`"tool_uses":[{"tool_use_id":"tu_%d","tool_id":"ask","name":"ask","input":{},"session_id":"s","total_tools":1}],"end_turn":false}`, asked.Input, calls)
		}
	}
	go func() {
		defer close(ended)
		defer client.Close()
		for inner.Err() == nil {
			client.PollFetches(inner).EachRecord(func(r *kgo.Record) {
				topic, value := answer(r)
				client.Produce(inner, &kgo.Record{Topic: topic, Key: r.Key, Value: []byte(value)}, nil)
			})
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

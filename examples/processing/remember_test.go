package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	memory "github.com/turntable-streams/turntable/processors/memoir/model"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

func remember(ctx context.Context, agent string, brokers []string, m think.Model) error {
	to, err := processors.NewPublisher(brokers)
	if err != nil {
		return err
	}
	defer to.Close()
	update, err := memory.New(m, memory.Config{})
	if err != nil {
		return err
	}
	worker, err := updater.New(agent, to, update, updater.Config{})
	if err != nil {
		return err
	}
	return worker.Run(ctx, brokers)
}

func TestREADMEShowsAMemoryWorker(t *testing.T) {
	code, err := os.ReadFile("remember_test.go")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(code), "\nfunc remember(")
	text, _, _ = strings.Cut(text, "\n}\n")
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "\nfunc remember("+text+"\n}\n")
}

// The worker of the README remembers what the first session said. A later session of the user knows it.
func TestASecondSessionKnowsTheFirst(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{Partitions: 2})
	require.NoError(t, err)
	defer broker.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	p := runs(ctx, t, []string{"doors", "health"}, "AGENT_NAME=pilot", "KAFKA_BOOTSTRAP_SERVERS="+strings.Join(broker.Addrs(), ","),
		"KAFKA_STATE_DIR="+t.TempDir(), "TOOL_AGG_PUNCTUATE_INTERVAL_MS=20", "HEALTH_ADDR=127.0.0.1:0", "PORT=127.0.0.1:0",
		"MEMOIR_ENABLED=true", "MEMOIR_SESSION_INACTIVITY_THRESHOLD_SECONDS=1")
	p.healthy()
	worker, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() {
		stopped <- remember(worker, "pilot", broker.Addrs(), think.Func(func(_ context.Context, s think.Step) (think.Reply, error) {
			if !strings.Contains(topics.Text(s.Input().Content), "Which berth?") {
				return think.Reply{}, errors.New("the question has no conversation")
			}
			return think.Say("- Prefers N4"), nil
		}))
	}()
	pipeline := follow(ctx, t, broker.Addrs(), "enriched-message-input", "memoir-context-session-end", "message-output")
	say := func(session string) {
		status, answer := post(ctx, t, "http://"+p.addrs["doors"]+"/api/chat",
			`{"session_id":"`+session+`","user_id":"mira","content":"Which berth?"}`, "")
		require.Equal(t, 200, status, answer)
	}
	answers := func(session string) {
		pipeline.write("think-request-response", session, `{"session_id":"`+session+`","user_id":"mira","think_cost":0.125,`+
			`"last_input_response":[{"role":"assistant","content":"N4."}],"end_turn":true}`)
	}

	say("first")
	pipeline.until("enriched-message-input", "first", `"latest_input"`)
	answers("first")
	pipeline.until("message-output", "first", `"content":"N4."`)
	pipeline.until("memoir-context-session-end", "mira", "Which berth?")

	// A session that begins before the memory has arrived does not know it.
	tries := 0
	session := func() string { return "session-" + strconv.Itoa(tries) }
	for known := false; !known; {
		tries++
		say(session())
		known = strings.Contains(pipeline.until("enriched-message-input", session(), ""), `"memoir_context":"- Prefers N4"`)
	}

	stop()
	require.NoError(t, <-stopped)
	p.terminate()
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors/embedded"
)

// store is the changelog of FlightDeck's history store.
const store = "harbour-streams-think-response-store-changelog"

// respondBefore writes what FlightDeck has left: many sessions, all processed.
func respondBefore(ctx context.Context, t *testing.T, client *kgo.Client, sessions int) {
	t.Helper()
	admin := kadm.NewClient(client)
	created, err := admin.CreateTopics(ctx, 2, 1, nil, "harbour-think-request-response", "harbour-message-input", store)
	require.NoError(t, err)
	require.NoError(t, created.Error())
	respond := func(session, question, answer string) {
		client.Produce(ctx, &kgo.Record{Topic: "harbour-think-request-response", Key: []byte(session), Value: fmt.Appendf(nil,
			`{"session_id":%q,"user_id":"mira","total_session_cost":0.5,"previous_messages":[],"last_input_message":`+
				`{"role":"user","content":%q},"last_input_response":[{"role":"assistant","content":%q}],"end_turn":true}`,
			session, question, answer)}, nil)
	}
	for i := range sessions {
		respond(fmt.Sprintf("s%d", i), "Which berth?", strings.Repeat("N4 ", 100))
	}
	respond("s", "Which berth?", "N4.")
	require.NoError(t, client.Flush(ctx))
	commitEnds(ctx, t, client)
}

// commitEnds commits as the application that stopped would.
func commitEnds(ctx context.Context, t *testing.T, client *kgo.Client) {
	t.Helper()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(ctx, "harbour-think-request-response")
	require.NoError(t, err)
	require.NoError(t, admin.CommitAllOffsets(ctx, "harbour-streams", ends.Offsets()))
}

// committedIn returns the offsets of a group in a topic, and the ends of the topic.
func committedIn(ctx context.Context, t *testing.T, client *kgo.Client, group, topic string) (offsets, ends map[int32]int64) {
	t.Helper()
	admin := kadm.NewClient(client)
	committed, err := admin.FetchOffsets(ctx, group)
	require.NoError(t, err)
	listed, err := admin.ListEndOffsets(ctx, topic)
	require.NoError(t, err)
	offsets, ends = map[int32]int64{}, map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		ends[o.Partition] = o.Offset
		if at, ok := committed.Lookup(topic, o.Partition); ok {
			offsets[o.Partition] = at.At
		}
	})
	return offsets, ends
}

// Migration there and back: the process is killed during the import, started again, stopped, and started for the second
// time. Then FlightDeck is given what was answered meanwhile.
func TestHistoriesMoveToTurntableAndBack(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{Partitions: 2})
	require.NoError(t, err)
	defer broker.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...),
		kgo.ConsumeTopics("harbour-enriched-message-input", "harbour-message-output", store),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	require.NoError(t, err)
	defer client.Close()
	respondBefore(ctx, t, client, 3000)

	environment := func() []string {
		return []string{
			"AGENT_NAME=harbour", "KAFKA_BOOTSTRAP_SERVERS=" + strings.Join(broker.Addrs(), ","), "KAFKA_STATE_DIR=" + t.TempDir(),
			"HEALTH_ADDR=127.0.0.1:0", "HISTORY_IMPORT=true", "ALLOWED_HOST_MAPPING=harbor:http://127.0.0.1:1",
		}
	}
	p := launch(ctx, t, environment()...)
	lines := bufio.NewScanner(p.logs)
	until(t, lines, "import of histories begins")
	require.NoError(t, p.Process.Kill())
	_, _ = io.Copy(io.Discard, p.logs)
	require.Error(t, p.Wait())

	env := environment()
	p = launch(ctx, t, env...)
	stop := running(ctx, t, p, "histories imported")
	produce(ctx, t, client, "harbour-message-input", `{"session_id":"s","role":"user","content":"Until when?"}`)
	require.Contains(t, string(next(ctx, t, client).Value), `"history":[{"role":"user","content":"Which berth?"},`+
		`{"role":"assistant","content":"N4."}],"latest_input":{"session_id":"s"`)
	stop()

	p = launch(ctx, t, env...)
	stop = running(ctx, t, p, "FlightDeck's histories were imported before")
	produce(ctx, t, client, "harbour-think-request-response", `{"session_id":"s","last_input_response":[{"role":"assistant",`+
		`"content":"Let me look."}],"tool_uses":[{"tool_use_id":"t1","name":"look","input":{}}],"end_turn":false}`)
	produce(ctx, t, client, "harbour-tool-use-result", `{"session_id":"s","tool_use_id":"t1","name":"look","result":{},"status":"success"}`)
	require.Contains(t, string(next(ctx, t, client).Value), `"role":"tool"`)
	produce(ctx, t, client, "harbour-think-request-response", `{"session_id":"s","total_session_cost":0.75,`+
		`"last_input_response":[{"role":"assistant","content":"Until nine."}],"tool_uses":null,"end_turn":true}`)
	require.Contains(t, string(next(ctx, t, client).Value), `"content":"Until nine."`)

	failed, err := export(ctx, env)
	require.Error(t, err)
	require.Contains(t, failed, "the group has members", "the turn still runs")
	stop()
	exported, err := export(ctx, env)
	require.NoError(t, err, exported)
	record := next(ctx, t, client)
	require.Equal(t, []string{store, "s"}, []string{record.Topic, string(record.Key)})
	require.Contains(t, string(record.Value), `"previous_messages":[{"role":"user","content":"Which berth?"}`)
	require.Contains(t, string(record.Value), `"last_input_response":[{"role":"assistant","content":"Until nine."}]`)
	// FlightDeck repeats no tool step, and chat-api delivers nothing that was delivered.
	completed, ends := committedIn(ctx, t, client, "harbour-streams", "harbour-tool-use-all-complete")
	require.Contains(t, slices.Collect(maps.Values(ends)), int64(1))
	require.Equal(t, ends, completed)
	outputs, ends := committedIn(ctx, t, client, "chat-api-output-group", "harbour-message-output")
	require.Contains(t, slices.Collect(maps.Values(ends)), int64(1))
	require.Equal(t, ends, outputs)

	p = launch(ctx, t, env...)
	require.Contains(t, until(t, bufio.NewScanner(p.logs), "processing failed").Error, "the sessions were exported")
	require.Error(t, p.Wait())
}

// running waits until the process has logged a message and is healthy. stop ends it as an operator would.
func running(ctx context.Context, t *testing.T, p *program, after string) (stop func()) {
	t.Helper()
	lines := bufio.NewScanner(p.logs)
	health := "http://" + until(t, lines, "health").Addr + "/healthz"
	until(t, lines, after)
	drained := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, p.logs)
		drained <- err
	}()
	require.Eventually(t, func() bool { return httpStatus(health) == http.StatusOK }, time.Minute, 20*time.Millisecond)
	return func() {
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.NoError(t, <-drained)
		require.NoError(t, p.Wait())
	}
}

// export runs the program with -export-history.
func export(ctx context.Context, env []string) (logs string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, self, "-export-history")
	cmd.Env = append([]string{child + "=1"}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

package examples

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// started is the service, as a command, and its address.
func started(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, "invoke", append([]string{"serve", "-addr", "127.0.0.1:0"}, args...), nil, in, os.Stderr)
		_ = in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		require.Zero(t, <-ended)
	})
	return strings.TrimSpace(strings.TrimPrefix(line, "invoke: "))
}

func ask(t *testing.T, url, content string, headers ...string) (body string, header http.Header) {
	t.Helper()
	message := `{"session_id":"demo","data":{"inputs":{"messages":[{"role":"user","content":"` + content + `"}]}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(message))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s", raw)
	return string(raw), resp.Header
}

func outputs(t *testing.T, body string) string {
	t.Helper()
	data, ok := topics.Lookup(topics.Raw(body), "data")
	require.True(t, ok, body)
	value, ok := topics.Lookup(data, "outputs")
	require.True(t, ok, body)
	return string(value)
}

func TestServiceAnswersInEveryFormatAndResumes(t *testing.T) {
	url := started(t, "-pace", "1ms")
	const question = "Which berth is free?"
	batch, _ := ask(t, url, question)
	require.Contains(t, outputs(t, batch), `"content":"Berth N4 is free at 18:00."`)

	lines, _ := ask(t, url, question, "Accept", "application/x-ndjson")
	f := folder.NewFolder()
	for line := range strings.Lines(lines) {
		e, err := folder.DecodeEvent(topics.Raw(line))
		require.NoError(t, err)
		require.NoError(t, f.Add(e))
	}
	folded, err := f.Batch(folder.End{})
	require.NoError(t, err)
	got := jsontext.Value(folded.AppendEnvelope(nil))
	require.NoError(t, got.Compact())
	require.Equal(t, outputs(t, batch), string(got))

	mounted := strings.Replace(url, "/invoke", "/agent/v0/invoke", 1)
	frames, header := ask(t, mounted, question, "Accept", "text/event-stream")
	last := header.Get("X-Ag-Turn-Id") + ".1.5"
	_, rest, ok := strings.Cut(frames, "id: "+last+"\n")
	require.True(t, ok)
	_, rest, _ = strings.Cut(rest, "\n\n")
	again, _ := ask(t, url, question, "Accept", "text/event-stream", "Last-Event-ID", last)
	require.Equal(t, rest, again)

	parts, _ := ask(t, url, question, "Accept", "text/event-stream", "x-ag-messages-format", "vercel")
	require.True(t, strings.HasSuffix(parts, "data: [DONE]\n\n"))
}

// The door and the group fold the same events, so the response equals the batch message on the topic.
func TestDoorAnswersWithTheBatchOfTheTopic(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{Partitions: 3})
	require.NoError(t, err)
	defer broker.Close()
	t.Run("service", func(t *testing.T) {
		url := started(t, "-pace", "0", "-brokers", strings.Join(broker.Addrs(), ","))
		batch, header := ask(t, url, "Which berth is free?")
		client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.ConsumeTopics("pilot-batch-messages"),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		require.NoError(t, err)
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		records := client.PollRecords(ctx, 1).Records()
		require.Len(t, records, 1)
		turn, _ := topics.Lookup(topics.Raw(records[0].Value), "turn_id")
		require.Equal(t, `"`+header.Get("X-Ag-Turn-Id")+`"`, string(turn))
		for _, name := range []string{"messages", "stop_reason"} {
			want, _ := topics.Lookup(topics.Raw(outputs(t, batch)), name)
			got, _ := topics.Lookup(topics.Raw(records[0].Value), name)
			require.Equal(t, string(want), string(got))
		}
	})
}

func TestServicePlaysTheTurnsOfAFile(t *testing.T) {
	url := started(t, "-pace", "0", "-turns", corpus)
	batch, _ := ask(t, url, "text-block")
	require.Contains(t, outputs(t, batch), `"content":"Hello"`)
	lines, _ := ask(t, url, "no such turn", "Accept", "application/x-ndjson")
	require.Contains(t, lines, "no turn has this id")
}

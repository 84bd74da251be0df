//go:build unix

package examples

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/program"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/topics"
)

const partitions = 4

// workers are an agent without a model and tools, and its workers in another language.
type workers struct {
	ctx                   context.Context
	language, interpreter string
	broker, url, orders   string
	topics                topics.Catalog
	client                *kgo.Client
	tool, model           *worker
	asked                 atomic.Int32
}

// startWorkers starts a broker, the agent, and the workers of a language.
func startWorkers(t *testing.T, language, interpreter string) *workers {
	t.Helper()
	broker, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	w := &workers{
		ctx: deadline(t), language: language, interpreter: interpreter, broker: strings.Join(broker.Addrs(), ","),
		orders: filepath.Join(t.TempDir(), "orders.json"),
	}
	orders, err := os.ReadFile(filepath.Join(module, "examples", "workers", "orders.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.orders, orders, 0o600))
	w.topics, err = topics.For("support")
	require.NoError(t, err)
	w.client, err = kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...))
	require.NoError(t, err)
	t.Cleanup(w.client.Close)
	ctx, stop := context.WithCancel(w.ctx)
	addr := program.Address(t)
	c := exec.CommandContext(ctx, filepath.Join(bin, "workers"), "-listen", addr, "-partitions", strconv.Itoa(partitions))
	c.Env = append(os.Environ(), "KAFKA_BOOTSTRAP_SERVERS="+w.broker)
	agent := program.Serve(t, c, addr)
	t.Cleanup(func() { agent.End(t, stop) })
	w.url = agent.URL + "/invoke"
	w.tool, w.model = w.start(t, "tool"), w.start(t, "model")
	return w
}

// ask asks a question in a session and returns the body of the answer.
func (w *workers) ask(t *testing.T, session, content string) string {
	t.Helper()
	w.asked.Add(1)
	message := fmt.Sprintf(`{"session_id":%q,"data":{"inputs":{"messages":[{"role":"user","content":%s}]}}}`, session, content)
	r, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.url, strings.NewReader(message))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// write writes a record of the session "bad". An empty value is a tombstone.
func (w *workers) write(t *testing.T, topic, value string, headers ...kgo.RecordHeader) {
	t.Helper()
	r := &kgo.Record{Topic: topic, Key: []byte("bad"), Value: []byte(value), Headers: headers}
	if value == "" {
		r.Value = nil
	}
	require.NoError(t, w.client.ProduceSync(w.ctx, r).FirstErr())
}

// read returns all records of a topic, in order for each partition.
func (w *workers) read(t *testing.T, topic string) (all []*kgo.Record) {
	t.Helper()
	ends, err := kadm.NewClient(w.client).ListEndOffsets(w.ctx, topic)
	require.NoError(t, err)
	at, left := map[int32]kgo.Offset{}, map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			at[o.Partition], left[o.Partition] = kgo.NewOffset().AtStart(), o.Offset-1
		}
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(w.broker, ",")...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: at}))
	require.NoError(t, err)
	defer client.Close()
	for len(left) > 0 {
		fetches := client.PollFetches(w.ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			all = append(all, r)
			if r.Offset >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return all
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

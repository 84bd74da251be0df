package turns

import (
	"context"
	"encoding/json"
	"hash/crc32"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// members is a JSON object as the SDKs hold it.
type members = map[string]any

// sdkClient is a worker of one of FlightDeck's SDKs: it consumes a topic in a group, one record at a time, and writes with the
// partitioner of librdkafka, which chooses other partitions than Java's.
type sdkClient struct {
	t      *testing.T
	client *kgo.Client
}

// startSDK runs a worker until the test ends.
func startSDK(t *testing.T, brokers []string, group, topic string, handle func(*sdkClient, context.Context, *kgo.Record)) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(20*time.Millisecond), kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(
			func(string) func(*kgo.Record, int) int {
				return func(r *kgo.Record, n int) int { return int(crc32.ChecksumIEEE(r.Key) % uint32(n)) }
			})))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			for _, r := range client.PollFetches(ctx).Records() {
				handle(&sdkClient{t, client}, ctx, r)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		client.Close()
	})
}

// produce writes a record with the key of the one that it answers.
func (c *sdkClient) produce(ctx context.Context, topic string, from *kgo.Record, value []byte, headers ...kgo.RecordHeader) {
	r := &kgo.Record{Topic: topic, Key: from.Key, Value: value, Headers: headers}
	if err := c.client.ProduceSync(ctx, r).FirstErr(); err != nil && ctx.Err() == nil {
		c.t.Error(err)
	}
}

// encode writes an object with its members in another order than they were read in, as a worker may.
func (c *sdkClient) encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		c.t.Error(err)
	}
	return raw
}

// readObject reads a record; nil if it is not an object.
func readObject(raw []byte) members {
	var m members
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// textIn returns a member that is a text; "" if there is none.
func (c *sdkClient) textIn(m members, name string) string {
	text, _ := m[name].(string)
	return text
}

// failureHeaders are the headers of a record that the Python SDK gives up.
func failureHeaders(reason string) []kgo.RecordHeader {
	return []kgo.RecordHeader{
		{Key: "error.reason", Value: []byte(reason)},
		{Key: "error.source.topic", Value: []byte("t")},
		{Key: "error.source.partition", Value: []byte("0")},
		{Key: "error.source.offset", Value: []byte("0")},
	}
}

// startSDKTools runs the Python SDK's tool runner with the tools of the harbour: berth succeeds with a text, book with an
// object, and pay reports an error.
func startSDKTools(t *testing.T, brokers []string, agent string) {
	t.Helper()
	startSDK(t, brokers, agent+"-tool-execution", agent+"-tool-use", func(c *sdkClient, ctx context.Context, r *kgo.Record) {
		call := readObject(r.Value)
		var result any
		switch name := c.textIn(call, "name"); name {
		case "berth":
			result = "N4"
		case "book":
			result = members{"booked": true}
		default:
			c.produce(ctx, agent+"-tool-use-dlq", r, r.Value, failureHeaders("card refused")...)
			return
		}
		c.produce(ctx, agent+"-tool-use-result", r, c.encode(members{
			"session_id": call["session_id"], "tool_use_id": call["tool_use_id"], "name": call["name"], "result": result,
			"latency_ms": 12, "status": "success", "total_tools": call["total_tools"],
			"timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000000") + "+00:00",
		}))
	})
}

package archive

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

const wait = time.Minute

// world is an agent that is stopped: topics, tables and offsets without processes.
type world struct {
	*testing.T
	cfg    Config
	client *kgo.Client
	admin  *kadm.Client
}

// newWorld creates topics of an agent.
func newWorld(t *testing.T, partitions int32) *world {
	t.Helper()
	return newWorldOn(t, testbroker.Start(t), partitions)
}

func newWorldOn(t *testing.T, brokers []string, partitions int32) *world {
	t.Helper()
	w := newEmptyWorld(t, brokers, testbroker.Agent())
	c := w.cfg.Catalog
	w.create(partitions, map[string]string{"retention.ms": "3600000"}, c.MessageInput.Name(), c.ThinkRequestResponse.Name(), c.Loop())
	w.create(partitions, map[string]string{"cleanup.policy": "compact"}, c.Table())
	w.create(1, nil, c.DeadLetters())
	return w
}

func newEmptyWorld(t *testing.T, brokers []string, agent string) *world {
	t.Helper()
	catalog, err := topics.For(agent)
	require.NoError(t, err)
	w := &world{T: t, cfg: Config{Brokers: brokers, Catalog: catalog}}
	w.client, err = kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(16<<20), kgo.MetadataMinAge(50*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(w.client.Close)
	w.admin = kadm.NewClient(w.client)
	return w
}

func (w *world) create(partitions int32, config map[string]string, names ...string) {
	w.Helper()
	settings := map[string]*string{}
	for key, value := range config {
		settings[key] = &value
	}
	created, err := w.admin.CreateTopics(w.Context(), partitions, 1, settings, names...)
	require.NoError(w, err)
	require.NoError(w, created.Error())
	for _, name := range names {
		require.Eventually(w, func() bool {
			listed, err := w.admin.ListTopics(w.Context(), name)
			return err == nil && listed[name].Err == nil && len(listed[name].Partitions) == int(partitions)
		}, wait, 20*time.Millisecond)
	}
}

// write writes a record to the partition of its key.
func (w *world) write(topic, key, value string) *kgo.Record {
	w.Helper()
	listed, err := w.admin.ListTopics(w.Context(), topic)
	require.NoError(w, err)
	n := codec.PartitionOf(key, int32(len(listed[topic].Partitions)))
	return w.put(&kgo.Record{Topic: topic, Partition: n, Key: []byte(key), Value: []byte(value)})
}

func (w *world) put(r *kgo.Record) *kgo.Record {
	w.Helper()
	r, err := w.client.ProduceSync(w.Context(), r).First()
	require.NoError(w, err)
	return r
}

// session writes messages, and a row of a key to the table.
func (w *world) session(key string, messages int) {
	w.Helper()
	for n := range messages {
		w.write(w.cfg.Catalog.MessageInput.Name(), key, fmt.Sprintf("%s message %d", key, n))
	}
	w.write(w.cfg.Catalog.Table(), key+"\x00part", "part of "+key)
	w.write(w.cfg.Catalog.Table(), key, "row of "+key)
}

// commit commits an offset for a group.
func (w *world) commit(group, topic string, partition int32, at int64, metadata string) {
	w.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: at, LeaderEpoch: -1, Metadata: metadata})
	require.NoError(w, w.admin.CommitAllOffsets(w.Context(), group, offsets))
}

// offsets are the committed ones of a group in a topic.
func (w *world) offsets(group, topic string) map[int32]int64 {
	w.Helper()
	all, err := w.admin.FetchOffsets(w.Context(), group)
	require.NoError(w, err)
	found := map[int32]int64{}
	for n, o := range all[topic] {
		if o.At >= 0 {
			found[n] = o.At
		}
	}
	return found
}

// records are the committed records of a topic, by partition.
func (w *world) records(topic string) [][]*kgo.Record {
	w.Helper()
	c, err := connect(w.cfg)
	require.NoError(w, err)
	defer c.client.Close()
	listed, err := c.topicsOf(w.Context(), topic)
	require.NoError(w, err)
	found := []topicSpans{{Name: topic, Parts: make([]span, len(listed[topic].Partitions))}}
	require.NoError(w, c.ends(w.Context(), found))
	all := make([][]*kgo.Record, len(found[0].Parts))
	for n, s := range found[0].Parts {
		require.NoError(w, c.read(w.Context(), topic, int32(n), s.Start, s.End, func(r *kgo.Record) error {
			all[n] = append(all[n], r)
			return nil
		}))
	}
	return all
}

type topicSpans = topic

// byKey are the values of a topic by key, in their order. Each key is in the partition of its hash.
func (w *world) byKey(topic string) map[string][]string {
	w.Helper()
	found := map[string][]string{}
	parts := w.records(topic)
	for n, records := range parts {
		for _, r := range records {
			require.Equal(w, codec.PartitionOf(string(r.Key), int32(len(parts))), int32(n), "partition of %s", r.Key)
			found[string(r.Key)] = append(found[string(r.Key)], string(r.Value))
		}
	}
	return found
}

// unread are the values that a group has not read, sorted.
func (w *world) unread(group, topic string) (values []string) {
	w.Helper()
	at := w.offsets(group, topic)
	for n, records := range w.records(topic) {
		for _, r := range records {
			if from, ok := at[int32(n)]; !ok || r.Offset >= from {
				values = append(values, string(r.Value))
			}
		}
	}
	slices.Sort(values)
	return values
}

// names are the agent's topics that exist.
func (w *world) names() []string {
	w.Helper()
	listed, err := w.admin.ListTopics(w.Context())
	require.NoError(w, err)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(listed)), func(name string) bool {
		return !strings.HasPrefix(name, w.cfg.Catalog.Agent)
	})
}

// config is what is set for a topic.
func (w *world) config(name string) map[string]string {
	w.Helper()
	c, err := connect(w.cfg)
	require.NoError(w, err)
	defer c.client.Close()
	all := []topic{{Name: name}}
	require.NoError(w, c.configs(w.Context(), all))
	return all[0].Config
}

// dropTopics deletes all topics of the agent.
func (w *world) dropTopics() {
	w.Helper()
	deleted, err := w.admin.DeleteTopics(w.Context(), w.names()...)
	require.NoError(w, err)
	require.NoError(w, deleted.Error())
	require.Eventually(w, func() bool { return len(w.names()) == 0 }, wait, 20*time.Millisecond)
}

// starts tries to create the agent's topics, as each instance does when it starts.
func (w *world) starts() error {
	return processors.EnsureTopics(w.Context(), w.cfg.Brokers, processors.WithTopics(w.cfg.Catalog), processors.WithRestartLimit(1))
}

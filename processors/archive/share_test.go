package archive

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/topics"
)

// shared are the values that a share group has not finished.
func (w *world) shared(group, topic string) (values []string) {
	w.Helper()
	described, err := w.admin.DescribeShareGroupOffsets(w.Context(), group)
	require.NoError(w, err)
	require.NoError(w, described[group].Err)
	for n, records := range w.records(topic) {
		at, ok := described[group].Offsets.Lookup(topic, int32(n))
		require.True(w, ok, "partition %d of %s", n, topic)
		for _, r := range records {
			if r.Offset >= at.StartOffset {
				values = append(values, string(r.Value))
			}
		}
	}
	slices.Sort(values)
	return values
}

func TestShareGroupContinuesWhereItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	input, group := w.cfg.Catalog.MessageInput.Name(), w.cfg.Catalog.ToolGroup()
	for n := range 20 {
		w.session(fmt.Sprintf("s%d", n), 1)
	}
	offsets := kadm.Offsets{}
	for n, records := range w.records(input) {
		offsets.Add(kadm.Offset{Topic: input, Partition: int32(n), At: int64(len(records) / 2), LeaderEpoch: -1})
	}
	require.Eventually(t, func() bool { // a broker loads its groups when it has started
		set, err := w.admin.AlterShareGroupOffsets(t.Context(), group, offsets)
		return err == nil && set.Error() == nil
	}, wait, 50*time.Millisecond)
	unread := w.shared(group, input)
	require.NotEmpty(t, unread)

	dir := filepath.Join(t.TempDir(), "backup")
	_, err := Backup(t.Context(), w.cfg, dir)
	require.NoError(t, err)
	_, err = Repartition(t.Context(), w.cfg, 5)
	require.NoError(t, err)
	require.Equal(t, unread, w.shared(group, input))
	var looks []string // for an answer, before the worker makes a call that an earlier delivery may have made
	for _, records := range w.records(input) {
		for _, r := range records {
			if slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == topics.HeaderAnswersFrom && string(h.Value) == "0" }) {
				looks = append(looks, string(r.Value))
			}
		}
	}
	slices.Sort(looks)
	require.Equal(t, unread, looks)
	if testbroker.Embedded {
		w = w.elsewhere()
	} else {
		w.dropTopics()
	}
	_, err = Restore(t.Context(), w.cfg, dir)
	require.NoError(t, err)
	require.Equal(t, unread, w.shared(group, input))
}

// A group of workers in a share group makes no call again because a group with a table is behind in another partition.
func TestRecordsThatAShareGroupHasReadComeFirst(t *testing.T) {
	t.Parallel()
	c := copying{spans: []span{{0, 10}, {0, 10}}, tables: []string{"agent"}, readers: map[reader]positions{
		{"agent", false}: {0: {At: 10}, 1: {At: 0}}, {"workers", true}: {0: {At: 0}, 1: {At: 6}},
	}}
	var order []string
	for _, s := range c.segments() {
		order = append(order, fmt.Sprintf("%d:%d-%d", s.partition, s.Start, s.End))
	}
	require.Equal(t, []string{"1:0-6", "0:0-10", "1:6-10"}, order)
}

// A header that does not count as an ID does not keep the place that the ID is derived from out of the copy.
func TestARecordWithAnOddIDKeepsItsPlace(t *testing.T) {
	t.Parallel()
	c := copying{topic: topic{Name: "in"}, parts: 1}
	for id, want := range map[string]string{"id": "", "": "3/7", "two words": "3/7", strings.Repeat("x", 257): "3/7"} {
		r := c.copied(&kgo.Record{Partition: 3, Offset: 7, Headers: []kgo.RecordHeader{{Key: topics.HeaderID, Value: []byte(id)}}})
		first := ""
		for _, h := range r.Headers {
			if h.Key == topics.HeaderFirstAt {
				first = string(h.Value)
			}
		}
		require.Equal(t, want, first, "%.10q", id)
	}
}

package instance_test

import (
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/store"
)

// refuse lets the broker refuse what is produced to a topic, for good, as it refuses a record that is too large.
func refuse(c *kfake.Cluster, topic string) *kfake.FaultHandle {
	return c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.InvalidRecord, Count: -1,
	})
}

// Stock Goka writes LevelDB ahead of the log: after a crash the table holds effects whose outputs never reached Kafka. A
// record whose output fails is counted once for each try.
func TestTableIsNeverAheadOfItsOutputs(t *testing.T) {
	t.Parallel()
	t.Run("stock counts a record it never answered", func(t *testing.T) {
		t.Parallel()
		c, brokers := oneEach(t, "in", "out", "g-table")
		send(t, brokers, "in", "k", "x")
		dir := goka.WithStorageBuilder(storage.DefaultBuilder(t.TempDir()))
		fault := refuse(c, "out")
		require.Error(t, stock(t, brokers, counting("g"), oldest, dir).wait(t))
		fault.Remove()
		stock(t, brokers, counting("g"), oldest, dir) // as its supervisor would
		require.Equal(t, "2", string(read(t, brokers, "out", 1)[0].Value), "the only record of its key")
	})
	t.Run("the layer is forgotten", func(t *testing.T) {
		t.Parallel()
		c, brokers := oneEach(t, "in", "out", "g-table")
		send(t, brokers, "in", "k", "x")
		fault := refuse(c, "out")
		run(t, instance.Config{Brokers: brokers, Graph: counting("g"), StorageDir: t.TempDir()})
		require.Eventually(t, func() bool { return fault.Hits() >= 3 }, testTimeout, 10*time.Millisecond)
		fault.Remove()
		require.Equal(t, "1", string(read(t, brokers, "out", 1)[0].Value))
	})
}

// The table row is sent only when the outputs of its callback are acknowledged, so that a row in the changelog proves
// that its outputs are in Kafka.
func TestRowIsSentBehindTheOutputsOfItsCallback(t *testing.T) {
	t.Parallel()
	c, brokers := oneEach(t, "in", "out", "g-table")
	release := hold(c, "out")
	t.Cleanup(release)
	rows := observe(c, "g-table")
	send(t, brokers, "in", "k", "x", "x", "x")
	inst := run(t, instance.Config{Brokers: brokers, Graph: counting("g")})
	require.Eventually(t, func() bool {
		v, err := inst.Get("k")
		return err == nil && count(v) == 3
	}, testTimeout, 5*time.Millisecond)
	require.Never(t, func() bool { return rows.Load() > 0 }, 300*time.Millisecond, 20*time.Millisecond)
	release()
	read(t, brokers, "out", 3)
	last := 0
	require.Eventually(t, func() bool { // rows in between need not be written
		got := values(takeIn(t, brokers, "g-table", 3, 100*time.Millisecond))
		require.IsNonDecreasing(t, got, "in order")
		last = len(got)
		return last > 0 && got[last-1] == "3"
	}, testTimeout, 10*time.Millisecond)
}

// Of many rows that a key gets in quick succession only a few are written: the others are replaced before they are sent.
func TestRowsOfAKeyInQuickSuccessionAreWrittenOnce(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		_, brokers := oneEach(t, "in", "out", "g-table")
		const records = 2000
		send(t, brokers, "in", "k", slices.Repeat([]string{"x"}, records)...)
		inst := run(t, instance.Config{
			Brokers: brokers, Graph: counting("g"), InstanceID: "i", Guarantee: guarantee, CommitInterval: time.Second,
		})
		take(t, brokers, "out", records)
		eventually(t, func() bool { return committed(t, brokers, "g", "in", 0) == records })
		inst.stop()
		require.NoError(t, inst.wait(t))
		rows := values(takeIn(t, brokers, "g-table", records, 200*time.Millisecond))
		require.Equal(t, strconv.Itoa(records), rows[len(rows)-1])
		require.Less(t, len(rows), records/5)
		t.Logf("%d rows of %d", len(rows), records)
	})
}

// observe counts the produce requests that carry records of a topic.
func observe(c *kfake.Cluster, topic string) *atomic.Int64 {
	n := new(atomic.Int64)
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		for _, t := range r.(*kmsg.ProduceRequest).Topics {
			if info := c.TopicIDInfo(t.TopicID); t.Topic == topic || info != nil && info.Topic == topic {
				n.Add(1)
			}
		}
		return nil, nil, false
	})
	return n
}

// The local store on disk holds the state of the last cut and nothing newer.
func TestStoreOnDiskHoldsTheLastCut(t *testing.T) {
	t.Parallel()
	c, brokers := oneEach(t, "in", "out", "g-table")
	dir := t.TempDir()
	send(t, brokers, "in", "k", "x", "x")
	inst := run(t, instance.Config{Brokers: brokers, Graph: counting("g"), StorageDir: dir})
	require.Eventually(t, func() bool { return committed(t, brokers, "g", "in", 0) == 2 }, testTimeout,
		10*time.Millisecond)
	release := hold(c, "out")
	send(t, brokers, "in", "k", "x", "x", "x")
	require.Eventually(t, func() bool {
		v, err := inst.Get("k")
		return err == nil && count(v) == 5
	}, testTimeout, 5*time.Millisecond, "the open cut is visible to its owner")
	inst.Kill()
	release()
	require.Error(t, inst.wait(t))

	s, err := store.Builder(dir)("g-table", 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	raw, err := s.Get("k")
	require.NoError(t, err)
	require.Equal(t, "2", string(raw))
	offset, err := s.GetOffset(-1)
	require.NoError(t, err)
	at := int64(-1)
	for _, m := range takeIn(t, brokers, "g-table", 1<<10, 200*time.Millisecond) {
		if string(m.Value) == "2" {
			at = m.Offset
		}
	}
	require.Equal(t, at, offset, "with its changelog offset")
}

package instance_test

import (
	"strconv"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// A null value reaches the callback as a tombstone and its offset is committed like any record's.
func TestNullIsATombstone(t *testing.T) {
	t.Parallel()
	tombstones := func() *goka.GroupGraph {
		return goka.DefineGroup("g", goka.Output("out", codec.String()),
			goka.Input("in", codec.String(), func(ctx goka.Context, m any) {
				ctx.Emit("out", ctx.Key(), strconv.FormatBool(m.(codec.Decoded[string]).Tombstone()))
			}))
	}
	p := codec.PartitionOf("k", 2)
	null := func() *kgo.Record { return &kgo.Record{Topic: "in", Key: []byte("k")} }
	t.Run("stock drops it unseen", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		put(t, brokers, null(), keyed("in", "k", ""))
		stock(t, brokers, tombstones(), oldest)
		require.Equal(t, "false", string(take(t, brokers, "out", 1)[0].Value))
	})
	t.Run("ours shows it", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		put(t, brokers, null(), keyed("in", "k", ""), null())
		run(t, instance.Config{Brokers: brokers, Graph: tombstones()})
		require.Equal(t, []string{"true", "false", "true"}, values(take(t, brokers, "out", 3)))
		admin := kadm.NewClient(dial(t, brokers))
		eventually(t, func() bool { return committedAt(t, admin, "g", "in", p) == 3 })
	})
}

// telling emits the place of every record, and keeps it as the row of its key.
func telling() *goka.GroupGraph {
	return goka.DefineGroup("g", goka.Output("out", codec.String()), goka.Persist(codec.String()),
		goka.Input("in", codec.String(), func(ctx goka.Context, _ any) {
			place := strconv.Itoa(int(ctx.Partition())) + "/" + strconv.FormatInt(ctx.Offset(), 10)
			ctx.Emit("out", ctx.Key(), place)
			ctx.SetValue(place)
		}))
}

// At least once loses no record over kills at any moment: every record before a committed offset has been handled.
func TestNothingIsLostOverKills(t *testing.T) {
	t.Parallel()
	for store, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			const each = 200
			_, brokers := cluster(t, "in", "out")
			admin := kadm.NewClient(dial(t, brokers))
			records := make([]*kgo.Record, each)
			for i := range records {
				records[i] = keyed("in", "k"+strconv.Itoa(i%13), "x")
			}
			producer := dial(t, brokers)
			var done int
			for round := range 5 {
				inst := run(t, instance.Config{Brokers: brokers, Graph: telling(), StorageDir: dir, InstanceID: "i1"})
				require.NoError(t, producer.ProduceSync(t.Context(), clones(records)...).FirstErr())
				take(t, brokers, "out", done+1+round*17) // in the middle of it, elsewhere each time
				inst.Kill()
				require.ErrorIs(t, inst.wait(t), cut.ErrKilled)

				done = written(t, admin, "out")
				places := distinct(take(t, brokers, "out", done))
				for p := range int32(2) {
					for offset := range committedAt(t, admin, "g", "in", p) {
						require.Contains(t, places, strconv.Itoa(int(p))+"/"+strconv.FormatInt(offset, 10))
					}
				}
			}
			inst := run(t, instance.Config{Brokers: brokers, Graph: telling(), StorageDir: dir, InstanceID: "i1"})
			eventually(t, func() bool {
				return committedAt(t, admin, "g", "in", 0)+committedAt(t, admin, "g", "in", 1) == 5*each
			})
			inst.stop()
			require.NoError(t, inst.wait(t))
			require.Len(t, distinct(take(t, brokers, "out", written(t, admin, "out"))), 5*each)
		})
	}
}

// written is the number of records of a topic without transactions.
func written(t testing.TB, admin *kadm.Client, topic string) (n int) {
	t.Helper()
	ends, err := admin.ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	ends.Each(func(o kadm.ListedOffset) { n += int(o.Offset) })
	return n
}

func distinct(records []*kgo.Record) map[string]bool {
	d := map[string]bool{}
	for _, r := range records {
		d[string(r.Value)] = true
	}
	return d
}

func clones(records []*kgo.Record) []*kgo.Record {
	copies := make([]*kgo.Record, len(records))
	for i, r := range records {
		copies[i] = &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value}
	}
	return copies
}

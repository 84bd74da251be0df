package instance_test

import (
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
)

// Stock Goka never reads records that were written before the first assignment.
func TestFirstStartReadsWhatWasWrittenBefore(t *testing.T) {
	t.Parallel()
	t.Run("stock skips it", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		put(t, brokers, keyed("in", "k", "before"))
		r := stock(t, brokers, forwarding("in"), nil)
		eventually(t, r.recovered)
		// A recovered processor does not consume yet: records that arrive in between would be skipped too.
		var got []string
		for len(got) == 0 {
			put(t, brokers, keyed("in", "k", "after"))
			got = values(takeIn(t, brokers, "out", 1, 200*time.Millisecond))
		}
		require.Equal(t, "after", got[0])
	})
	t.Run("ours reads it", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		put(t, brokers, keyed("in", "k", "before"))
		run(t, instance.Config{Brokers: brokers, Graph: forwarding("in")}).ready(t)
		put(t, brokers, keyed("in", "k", "after"))
		require.Equal(t, []string{"before", "after"}, values(take(t, brokers, "out", 2)))
	})
}

// forwarding emits what it reads.
func forwarding(inputs ...string) *goka.GroupGraph {
	edges := []goka.Edge{goka.Output("out", codec.String())}
	for _, in := range inputs {
		edges = append(edges, goka.Input(goka.Stream(in), codec.String(), func(ctx goka.Context, m any) {
			ctx.Emit("out", ctx.Key(), m.(codec.Decoded[string]).Value)
		}))
	}
	return goka.DefineGroup("g", edges...)
}

// A group that has committed offsets, even from another application that had its name before, starts an input without
// an offset at the newest offset. A group without any offsets starts all inputs at the oldest.
func TestInputTheGroupNeverHadStartsAtItsEnd(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, "in", "new", "out")
	put(t, brokers, keyed("in", "k", "done"), keyed("in", "k", "in, open"), keyed("new", "k", "new, before"))
	admin := kadm.NewClient(dial(t, brokers))
	p := codec.PartitionOf("k", 2)
	var offsets kadm.Offsets
	offsets.AddOffset("in", p, 1, -1)
	require.NoError(t, admin.CommitAllOffsets(t.Context(), "g", offsets))

	inst := run(t, instance.Config{Brokers: brokers, Graph: forwarding("in", "new")})
	inst.ready(t)
	require.Equal(t, "in, open", string(take(t, brokers, "out", 1)[0].Value))
	put(t, brokers, keyed("new", "k", "new, after"))
	require.Equal(t, []string{"in, open", "new, after"}, values(take(t, brokers, "out", 2)))
	inst.stop()
	require.NoError(t, inst.wait(t))

	// An input that the group has had before continues, even if nothing was read from its other partition.
	other := "other"
	for i := 0; codec.PartitionOf(other, 2) == p; i++ {
		other += "."
	}
	put(t, brokers, keyed("new", other, "new, while stopped"))
	run(t, instance.Config{Brokers: brokers, Graph: forwarding("in", "new")})
	require.Contains(t, values(take(t, brokers, "out", 3)), "new, while stopped")
}

// replications are the replication factors that topics were asked for with.
type replications struct {
	mu sync.Mutex
	of map[string]int16
}

func watchReplications(c *kfake.Cluster) *replications {
	w := &replications{of: map[string]int16{}}
	c.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, t := range r.(*kmsg.CreateTopicsRequest).Topics {
			w.of[t.Topic] = t.ReplicationFactor
		}
		return nil, nil, false
	})
	return w
}

// Stock Goka creates tables with a replication factor of 2, which fails on a cluster of one broker.
func TestTableHasTheReplicationOfTheBroker(t *testing.T) {
	t.Parallel()
	t.Run("stock asks for two", func(t *testing.T) {
		t.Parallel()
		c, brokers := cluster(t, "in", "out")
		w := watchReplications(c)
		topics := goka.TopicManagerBuilderWithConfig(goka.DefaultConfig(), goka.NewTopicManagerConfig())
		_, err := goka.NewProcessor(brokers, counting("g"), goka.WithTopicManagerBuilder(topics))
		require.Equal(t, map[string]int16{"g-table": 2}, w.of)
		require.Error(t, err)
	})
	t.Run("ours leaves it to the broker", func(t *testing.T) {
		t.Parallel()
		c, brokers := cluster(t, "in", "out")
		w := watchReplications(c)
		run(t, instance.Config{Brokers: brokers, Graph: counting("g")}).ready(t)
		require.Equal(t, map[string]int16{"g-table": -1}, w.of)
	})
	t.Run("or takes what it is given", func(t *testing.T) {
		t.Parallel()
		c, brokers := cluster(t, "in", "out")
		w := watchReplications(c)
		run(t, instance.Config{Brokers: brokers, Graph: counting("g"), Replication: 1}).ready(t)
		require.Equal(t, map[string]int16{"g-table": 1}, w.of)
	})
}

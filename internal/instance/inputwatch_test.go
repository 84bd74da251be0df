package instance_test

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
)

// watchful is the base configuration with frequent metadata refreshes.
func watchful() *sarama.Config {
	c := lively()
	c.Metadata.RefreshFrequency = 100 * time.Millisecond
	return c
}

// An input that is deleted and recreated under a running group has other records at the offsets that the group has read.
func TestInputThatIsRecreatedWhileItIsReadStartsAtItsOldest(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		r := newRelay(t, guarantee, "one", "two")
		r.conf = watchful
		r.put("two", "1", "2")
		inst := r.start("one", "two")
		r.forwarded("1", "2")
		r.committed("two", 2)
		r.recreate("two")
		r.put("two", "3", "4", "5")
		r.forwarded("1", "2", "3", "4", "5")
		r.put("one", "6")
		r.forwarded("1", "2", "3", "4", "5", "6")
		r.end(inst)
	})
}

// grow adds partitions to a topic.
func grow(t testing.TB, admin *kadm.Client, topic string, to int) {
	t.Helper()
	grown, err := admin.UpdatePartitions(t.Context(), to, topic)
	require.NoError(t, err)
	require.NoError(t, grown.Error())
}

// A group with a table cannot continue when an input gains partitions: the records of a key would be on another partition
// than its row. A restart does not help, so the instance ends at once with an error that says what to do.
func TestInstanceEndsAtOnceWhenAnInputGainsPartitions(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]struct {
		inputs []string
		table  bool
		grown  []string
	}{
		"one of two inputs":                       {inputs: []string{"one", "two"}, grown: []string{"two"}},
		"one of two inputs of a table":            {inputs: []string{"one", "two"}, table: true, grown: []string{"two"}},
		"the only input of a table":               {inputs: []string{"one"}, table: true, grown: []string{"one"}},
		"all inputs, and not the table they feed": {inputs: []string{"one", "two"}, table: true, grown: []string{"one", "two"}},
		"the only input and its table":            {inputs: []string{"one"}, table: true, grown: []string{"one", "table"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
				r := newRelay(t, guarantee, "one", "two")
				r.conf, r.table = watchful, g.table
				inst := r.start(g.inputs...)
				inst.ready(t)
				r.put(g.inputs[0], "1")
				r.committed(g.inputs[0], 1)
				for _, topic := range g.grown {
					grow(t, r.admin, r.topic(topic), 3)
				}
				err := inst.wait(t)
				require.NotErrorIs(t, err, instance.ErrGaveUp)
				require.ErrorIs(t, err, instance.ErrPartitions)
				require.ErrorContains(t, err, r.topic(g.grown[0]))
				require.ErrorContains(t, err, "run turntable repartition")
				require.LessOrEqual(t, inst.Health().Restarts, 1)

				require.ErrorIs(t, r.start(g.inputs...).wait(t), instance.ErrPartitions, "and so does the next start")
			})
		})
	}
}

// The only input of a group without a table may grow: there are no rows to leave behind.
func TestOnlyInputOfAGroupWithoutATableMayGainPartitions(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		r := newRelay(t, guarantee, "one")
		r.conf = watchful
		inst := r.start("one")
		r.put("one", "1")
		r.forwarded("1")
		grow(t, r.admin, r.topic("one"), 2)
		key := "k"
		for codec.PartitionOf(key, 2) != 1 {
			key += "."
		}
		eventually(t, func() bool { // brokers tell of new partitions late
			producer := dial(t, r.brokers, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			return producer.ProduceSync(t.Context(),
				&kgo.Record{Topic: r.topic("one"), Partition: 1, Key: []byte(key), Value: []byte("2")}).FirstErr() == nil
		})
		r.forwarded("1", "2")
		inst.ready(t)
		r.end(inst)
	})
}

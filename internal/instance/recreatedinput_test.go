package instance_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// relay is a group that forwards its inputs, on topics of its own.
type relay struct {
	testing.TB
	brokers   []string
	admin     *kadm.Client
	group     string
	guarantee instance.Guarantee
	conf      func() *sarama.Config // lively
	table     bool                  // it counts what it forwards
}

func newRelay(t testing.TB, guarantee instance.Guarantee, topics ...string) *relay {
	t.Helper()
	r := &relay{TB: t, brokers: testbroker.Start(t), group: testbroker.Agent(), guarantee: guarantee, conf: lively}
	r.admin = kadm.NewClient(dial(t, r.brokers))
	r.create(append(topics, "out")...)
	return r
}

func (r *relay) topic(name string) string { return r.group + "-" + name }

func (r *relay) create(names ...string) {
	r.Helper()
	for _, name := range names {
		eventually(r, func() bool { // a broker deletes a topic in the background
			made, err := r.admin.CreateTopic(r.Context(), 1, 1, nil, r.topic(name))
			return err == nil && made.Err == nil
		})
		eventually(r, func() bool { // and shows a new one some time after it has confirmed it
			fresh := kadm.NewClient(dial(r, r.brokers))
			listed, err := fresh.ListTopics(r.Context(), r.topic(name))
			return err == nil && listed.Error() == nil
		})
	}
}

// recreate deletes an input, which has records, and creates it again. Kafka shows the new topic before it has removed the old log,
// and loses what is written to that.
func (r *relay) recreate(name string) {
	r.Helper()
	_, err := r.admin.DeleteTopic(r.Context(), r.topic(name))
	require.NoError(r, err)
	r.create(name)
	eventually(r, func() bool {
		ends, err := r.admin.ListEndOffsets(r.Context(), r.topic(name))
		end, ok := ends.Lookup(r.topic(name), 0)
		return err == nil && ok && end.Err == nil && end.Offset == 0
	})
}

// forget deletes the committed offsets of an input.
func (r *relay) forget(name string) {
	r.Helper()
	var topics kadm.TopicsSet
	topics.Add(r.topic(name), 0)
	eventually(r, func() bool { // a static member that has left may still be seen
		deleted, err := r.admin.DeleteOffsets(r.Context(), r.group, topics)
		return err == nil && deleted.Error() == nil
	})
}

func (r *relay) start(inputs ...string) *running {
	r.Helper()
	out := goka.Stream(r.topic("out"))
	edges := []goka.Edge{goka.Output(out, codec.String())}
	for _, in := range inputs {
		edges = append(edges, goka.Input(goka.Stream(r.topic(in)), codec.String(), func(ctx goka.Context, m any) {
			ctx.Emit(out, ctx.Key(), m.(codec.Decoded[string]).Value)
			if r.table {
				ctx.SetValue(strconv.Itoa(count(ctx.Value()) + 1))
			}
		}))
	}
	if r.table {
		edges = append(edges, goka.Persist(codec.String()))
	}
	return run(r, instance.Config{
		Brokers: r.brokers, Graph: goka.DefineGroup(goka.Group(r.group), edges...), InstanceID: "i", Sarama: r.conf,
		Guarantee: r.guarantee,
	})
}

func (r *relay) end(inst *running) {
	r.Helper()
	inst.stop()
	require.NoError(r, inst.wait(r))
}

func (r *relay) put(name string, values ...string) {
	r.Helper()
	for _, v := range values {
		put(r, r.brokers, keyed(r.topic(name), "k", v))
	}
}

// forwarded waits for as many outputs as are wanted, and says which they are.
func (r *relay) forwarded(want ...string) {
	r.Helper()
	require.ElementsMatch(r, want, values(take(r, r.brokers, r.topic("out"), len(want))))
}

func (r *relay) committed(name string, want int64) {
	r.Helper()
	eventually(r, func() bool { return committedAt(r, r.admin, r.group, r.topic(name), 0) == want })
}

// Messages that were accepted while the group was down are read, though their input has no offsets any more, or the
// offsets of the topic that had its name before.
func TestInputThatLostItsOffsetsStartsAtItsOldest(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(r *relay){
		"recreated":                 func(r *relay) { r.recreate("two") },
		"recreated without offsets": func(r *relay) { r.forget("two"); r.recreate("two") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
				r := newRelay(t, guarantee, "one", "two")
				r.put("one", "1")
				r.put("two", "2", "3")
				inst := r.start("one", "two")
				r.forwarded("1", "2", "3")
				r.end(inst)
				r.committed("two", 2)

				lose(r)
				r.put("two", "4", "5", "6") // more than there were: their offsets are valid in the new topic
				inst = r.start("one", "two")
				r.forwarded("1", "2", "3", "4", "5", "6")
				r.end(inst)

				inst = r.start("one", "two")
				r.put("two", "7")
				r.forwarded("1", "2", "3", "4", "5", "6", "7")
				r.end(inst)
			})
		})
	}
}

// Nothing was ever read of an input when it was deleted: the others' offsets list it all the same.
func TestInputThatWasNeverReadIsListed(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		r := newRelay(t, guarantee, "one", "two")
		r.put("one", "1")
		inst := r.start("one", "two")
		r.forwarded("1")
		r.end(inst)
		r.forget("two")
		r.put("two", "2")
		inst = r.start("one", "two")
		r.forwarded("1", "2")
		r.end(inst)
	})
}

// An input that a new version of the program adds is not listed: it starts at its newest offset, as the input of a group
// that is taken over does. From then on it is.
func TestInputThatAnUpgradeAddsStartsAtItsNewestOnce(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		r := newRelay(t, guarantee, "one", "two")
		r.put("one", "1")
		inst := r.start("one")
		r.forwarded("1")
		r.end(inst)
		r.put("two", "before")
		inst = r.start("one", "two")
		inst.ready(t)
		r.put("two", "2")
		r.forwarded("1", "2")
		r.end(inst)
		r.forget("two") // the input that nothing was read of since is what lists it
		inst = r.start("one", "two")
		r.forwarded("1", "2", "before", "2")
		r.end(inst)
	})
}

// A group whose offsets have metadata that is not ours, of Kafka Streams or of an older version, lists its inputs as soon
// as it runs, though nothing is read of them.
func TestOffsetsWithoutOurMetadataAreCommittedAgain(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		r := newRelay(t, guarantee, "one", "two")
		r.put("one", "1")
		r.put("two", "2")
		var offsets kadm.Offsets
		for _, name := range []string{"one", "two"} {
			offsets.Add(kadm.Offset{Topic: r.topic(name), At: 1, LeaderEpoch: -1, Metadata: "AgAAAYxQ7rQb"})
		}
		require.NoError(t, r.admin.CommitAllOffsets(t.Context(), r.group, offsets))
		inst := r.start("one", "two")
		eventually(t, func() bool { return strings.HasPrefix(r.metadata("one"), "turntable/1 ") })
		r.end(inst)
		r.forget("two")
		inst = r.start("one", "two")
		r.forwarded("2")
		r.end(inst)
	})
}

// metadata is what was committed with the offset of an input.
func (r *relay) metadata(name string) string {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), testTimeout)
	defer cancel()
	offsets, err := r.admin.FetchOffsets(ctx, r.group)
	require.NoError(r, err)
	o, _ := offsets.Lookup(r.topic(name), 0)
	return o.Metadata
}

// Brokers limit the size of metadata. One that takes none must not keep the offsets from being committed.
func TestOffsetsAreCommittedWithoutMetadataWhereTheBrokerRefusesIt(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		c, brokers := oneEach(t, "in", "out")
		for key, refuse := range map[kmsg.Key]func(kmsg.Request) bool{
			kmsg.OffsetCommit: func(r kmsg.Request) bool {
				m := r.(*kmsg.OffsetCommitRequest).Topics[0].Partitions[0].Metadata
				return m != nil && *m != ""
			},
			kmsg.TxnOffsetCommit: func(r kmsg.Request) bool {
				m := r.(*kmsg.TxnOffsetCommitRequest).Topics[0].Partitions[0].Metadata
				return m != nil && *m != ""
			},
		} {
			c.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: kerr.OffsetMetadataTooLarge, Count: -1, When: refuse})
		}
		inst := run(t, instance.Config{
			Brokers: brokers, Graph: counting("g"), InstanceID: "i", Sarama: lively, Guarantee: guarantee,
		})
		put(t, brokers, keyed("in", "k", "x"))
		eventually(t, func() bool { return committed(t, brokers, "g", "in", 0) == 1 })
		inst.ready(t)
	})
}

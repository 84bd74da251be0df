package instance_test

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// A dynamic member that leaves its group while its producer still retries rows must not write them behind the rows of
// the next owner. Goka closes the producer after the lookup tables, which takes long where a broker hangs.
func TestRowsThatAreRetriedDoNotOutliveTheMembership(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(*running, func()){
		"stop":      func(r *running, _ func()) { r.stop() },
		"kill":      func(r *running, _ func()) { r.Kill() },
		"failure":   func(_ *running, fail func()) { fail() },
		"rebalance": func(*running, func()) {}, // the next owner joins
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			brokers, name := anyBroker(t, "routes-table")
			routes := name + "-routes-table"
			policy := cut.AtLeastOncePolicy()
			policy.Drain = 500 * time.Millisecond
			var network wire
			graph := looker(name, routes)
			older := run(t, instance.Config{
				Brokers: brokers, Sarama: network.config, Policy: policy, Graph: graph,
				Restart: instance.Restart{Initial: time.Hour, Max: time.Hour},
			})
			older.ready(t)
			put(t, brokers, keyed(name+"-in", "k", "x"))
			table := name + "-table"
			take(t, brokers, table, 1)
			admin := kadm.NewClient(dial(t, brokers))
			eventually(t, func() bool { return committedAt(t, admin, name, name+"-in", codec.PartitionOf("k", 2)) == 1 })

			var retried atomic.Int64
			network.decide(func(key int16, request []byte) fate {
				switch {
				case key == int16(kmsg.Produce) && bytes.Contains(request, []byte(table)):
					retried.Add(1)
					return broken
				case key == int16(kmsg.Fetch) && bytes.Contains(request, []byte(routes)):
					return stuck
				}
				return sent
			})
			put(t, brokers, keyed(name+"-in", "k", "x"))
			take(t, brokers, name+"-out", 2)
			eventually(t, func() bool { return retried.Load() > 0 }, "the row is retried")
			end(older, func() { put(t, brokers, keyed(name+"-in", "k", "boom")) })

			newer := run(t, instance.Config{Brokers: brokers, Sarama: lively, Graph: graph})
			newer.ready(t)
			put(t, brokers, keyed(name+"-in", "k", "x"))
			records := int64(3) // the second was not committed and is repeated
			if how == "failure" {
				records = 4
			}
			committed := func() int64 { return committedAt(t, admin, name, name+"-in", codec.PartitionOf("k", 2)) }
			eventually(t, func() bool { return committed() == records }, "with its rows")
			network.decide(func(key int16, request []byte) fate { // the table's broker is back
				if key == int16(kmsg.Fetch) && bytes.Contains(request, []byte(routes)) {
					return stuck
				}
				return sent
			})
			rows := values(takeIn(t, brokers, table, 1<<10, 2*time.Second))
			require.Equal(t, strconv.FormatInt(records, 10), rows[len(rows)-1],
				"a row of the former owner has landed behind those of the new one: %v", rows)
			network.decide(nil)
		})
	}
}

// looker is a group that counts, has a lookup table and fails for good in the process that is the first to get "boom".
func looker(name, routes string) *goka.GroupGraph {
	var failed atomic.Bool
	in, out := goka.Stream(name+"-in"), goka.Stream(name+"-out")
	return goka.DefineGroup(goka.Group(name), goka.Lookup(goka.Table(routes), codec.String()),
		goka.Output(out, codec.String()), goka.Persist(codec.String()),
		goka.Input(in, codec.String(), func(ctx goka.Context, m any) {
			if m.(codec.Decoded[string]).Value == "boom" && failed.CompareAndSwap(false, true) {
				ctx.Fail(errBoom)
			}
			emitCount(ctx, out)
		}))
}

// The partitions of a member that leaves move at once, so it leaves only when its requests on the wire are answered.
func TestMemberLeavesOnceItsRowsAreAnswered(t *testing.T) {
	t.Parallel()
	c, brokers := oneEach(t, "in", "out", "g-table")
	inst := run(t, instance.Config{Brokers: brokers, Graph: failing(2), Restart: instance.Restart{Initial: time.Hour, Max: time.Hour}})
	inst.ready(t)
	left := make(chan struct{}, 10)
	c.ControlKey(int16(kmsg.LeaveGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		left <- struct{}{}
		return nil, nil, false
	})
	rows := observe(c, "g-table")
	answered := hold(c, "g-table")
	t.Cleanup(answered)
	put(t, brokers, keyed("in", "k", "x"))
	eventually(t, func() bool { return rows.Load() == 1 })
	put(t, brokers, keyed("in", "k", "x"))
	require.Never(t, func() bool { return len(left) > 0 }, time.Second, 10*time.Millisecond)
	answered()
	receive(t, left)
	require.EqualValues(t, 1, rows.Load())
}

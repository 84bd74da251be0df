package instance_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
)

// looking is a group whose first callback looks the same row up for a while.
type looking struct {
	entered, leave chan struct{}
	found          chan bool // for each record whether the row was there all the time
	first          sync.Once
}

func newLooking() *looking {
	return &looking{entered: make(chan struct{}), leave: make(chan struct{}), found: make(chan bool, 10)}
}

func (l *looking) graph() *goka.GroupGraph {
	return goka.DefineGroup("g",
		goka.Input("in", codec.String(), func(ctx goka.Context, _ any) {
			l.first.Do(func() { close(l.entered) })
			<-l.leave
			all := true
			for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
				v, _ := ctx.Lookup("other-table", "k").(codec.Decoded[string])
				all = all && v.Value != ""
			}
			l.found <- all
		}),
		goka.Lookup("other-table", codec.String()))
}

// Goka closes lookup tables as soon as its context ends, under callbacks that still look something up: their records
// fail, or the process does.
func TestStopLeavesCallbacksTheirLookupTables(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*running){
		"stop": func(r *running) { r.stop() },
		"kill": func(r *running) { r.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, brokers := oneEach(t, "in", "out", "other-table")
			send(t, brokers, "other-table", "k", "there")
			l := newLooking()
			inst := run(t, instance.Config{Brokers: brokers, Graph: l.graph()})
			send(t, brokers, "in", "k", "x")
			<-l.entered
			end(inst)
			close(l.leave)
			require.True(t, <-l.found)
			err := inst.wait(t)
			if name == "stop" {
				require.NoError(t, err)
				require.EqualValues(t, 1, committed(t, brokers, "g", "in", 0))
			}
		})
	}
}

// Goka closes a lookup table whose reading fails, under callbacks that look something up, and the processor with it.
// Sarama reads on by itself after most failures.
func TestLookupTableThatCannotBeReadStaysOpen(t *testing.T) {
	t.Parallel()
	eager := func() *sarama.Config {
		c := lively()
		c.Consumer.MaxWaitTime = 10 * time.Millisecond // the answer to the fetch comes while the callback looks up
		c.Consumer.Retry.Max = 5
		return c
	}
	for name, c := range map[string]struct {
		fails    *kerr.Error
		count    int
		restarts bool
	}{
		"for a moment": {fails: kerr.UnknownServerError},
		"any more":     {fails: kerr.OffsetOutOfRange, restarts: true},
		"for too long": {fails: kerr.TopicAuthorizationFailed, count: -1, restarts: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, brokers := oneEach(t, "in", "out", "other-table")
			send(t, brokers, "other-table", "k", "there")
			l := newLooking()
			inst := run(t, instance.Config{Brokers: brokers, Sarama: eager, Graph: l.graph()})
			send(t, brokers, "in", "k", "x")
			<-l.entered
			fault := cluster.Fault(kfake.Fault{
				Keys: []kmsg.Key{kmsg.Fetch}, Topic: "other-table", Err: c.fails, Count: c.count,
			})
			require.NoError(t, fault.Wait(t.Context(), 1))
			close(l.leave)
			require.True(t, <-l.found)
			if c.restarts {
				eventually(t, func() bool { return inst.Health().Restarts > 0 })
			}
			fault.Remove()

			send(t, brokers, "in", "k", "x")
			require.True(t, <-l.found)
			require.Equal(t, c.restarts, inst.Health().Restarts > 0)
			inst.stop()
			require.NoError(t, inst.wait(t))
		})
	}
}

// What ends a lookup table before the group is joined closes it too late for the callbacks not to begin.
func TestNoCallbackBeginsWhenALookupTableHasEnded(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(1, "in"), kfake.SeedTopics(2, "other-table"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for p := range int32(2) { // reading one ends; reading the other continues for as long as its broker waits for records
		require.NoError(t, c.MoveTopicPartition("other-table", p, p))
	}
	brokers := c.ListenAddrs()
	send(t, brokers, "in", "k", "x")
	var views atomic.Bool
	c.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		for _, topic := range r.(*kmsg.ListOffsetsRequest).Topics {
			if topic.Topic == "other-table" {
				views.Store(true)
			}
		}
		return nil, nil, false
	})
	building, build := make(chan struct{}), make(chan struct{})
	core, logs := observer.New(zap.WarnLevel)
	var inst *running
	made, entered := make(chan struct{}), make(chan int, 10)
	inst = run(t, instance.Config{
		Brokers: brokers, Logger: zap.New(core),
		Sarama: func() *sarama.Config {
			if views.CompareAndSwap(true, false) { // what is made after the lookup tables is the group
				select {
				case <-build:
				default:
					close(building)
					<-build
				}
			}
			conf := lively()
			conf.Consumer.MaxWaitTime = 4 * time.Second
			return conf
		},
		Graph: goka.DefineGroup("g", goka.Input("in", codec.String(), func(goka.Context, any) {
			<-made
			entered <- inst.Health().Restarts
		}), goka.Lookup("other-table", codec.String())),
	})
	close(made)
	receive(t, building)
	fault := c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Fetch}, Topic: "other-table", Partitions: []int32{0}, Err: kerr.OffsetOutOfRange,
	})
	require.NoError(t, fault.Wait(t.Context(), 1))
	eventually(t, func() bool { return logs.FilterMessage("a lookup table cannot be read").Len() > 0 })
	close(build)
	require.Equal(t, 1, receive(t, entered), "restarts")
}

// A table that is joined too is read by Goka in the session, which must be able to fail.
func TestTableThatIsJoinedAndLookedUpFailsItsSession(t *testing.T) {
	t.Parallel()
	c, brokers := cluster(t, "in", "out", "other-table")
	joined := goka.Join("other-table", codec.String())
	idle := goka.Input("in", codec.String(), func(goka.Context, any) {})
	soon := instance.Restart{Initial: 10 * time.Millisecond, Max: 100 * time.Millisecond, Limit: -1}
	inst := run(t, instance.Config{
		Brokers: brokers, Sarama: lively, Restart: soon,
		Graph: goka.DefineGroup("g", idle, joined, goka.Lookup("other-table", codec.String())),
	})
	inst.ready(t)
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "other-table", Count: -1})
	run(t, instance.Config{Brokers: brokers, Sarama: lively, Graph: goka.DefineGroup("g", idle)}) // there is a rebalance
	eventually(t, func() bool { return inst.Health().Restarts > 0 })
	fault.Remove()
	inst.ready(t)
	inst.stop()
	require.NoError(t, inst.wait(t))
}

// Sarama would continue in a recreated topic at the offset that it had in the old one.
func TestRecreatedLookupTableIsReadAgain(t *testing.T) {
	t.Parallel()
	c, brokers := oneEach(t, "in", "out", "other-table")
	send(t, brokers, "other-table", "old", "1", "2", "3")
	found := make(chan [2]string, 10)
	inst := run(t, instance.Config{
		Brokers: brokers, Sarama: lively,
		Restart: instance.Restart{Initial: 10 * time.Millisecond, Max: 100 * time.Millisecond, Limit: -1},
		Graph: goka.DefineGroup("g", goka.Input("in", codec.String(), func(ctx goka.Context, _ any) {
			was, _ := ctx.Lookup("other-table", "old").(codec.Decoded[string])
			is, _ := ctx.Lookup("other-table", "new").(codec.Decoded[string])
			found <- [2]string{was.Value, is.Value}
		}), goka.Lookup("other-table", codec.String())),
	})
	inst.ready(t)
	send(t, brokers, "other-table", "old", "4")
	eventually(t, func() bool { // it is read beyond its recovery
		send(t, brokers, "in", "k", "x")
		return receive(t, found) == [2]string{"4", ""}
	})
	require.NoError(t, c.DeleteTopic("other-table"))
	eventually(t, func() bool { return inst.Health().Restarts > 0 })
	require.NoError(t, c.CreateTopic("other-table", 1, nil))
	send(t, brokers, "other-table", "new", "1", "2", "3", "4", "5")
	eventually(t, func() bool { // the table may be read while its records are written
		send(t, brokers, "in", "k", "x")
		last := receive(t, found)
		require.Empty(t, last[0], "of the table that was deleted")
		return last[1] == "5"
	})
}

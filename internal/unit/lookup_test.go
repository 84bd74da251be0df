package unit_test

import (
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/unit"
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
			u := run(t, unit.Config{Brokers: brokers, Graph: l.graph()})
			send(t, brokers, "in", "k", "x")
			<-l.entered
			end(u)
			close(l.leave)
			require.True(t, <-l.found)
			err := u.wait(t)
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
		return c
	}
	for name, c := range map[string]struct {
		fails    *kerr.Error
		restarts int
	}{
		"for a moment": {fails: kerr.UnknownServerError},
		"any more":     {fails: kerr.OffsetOutOfRange, restarts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, brokers := oneEach(t, "in", "out", "other-table")
			send(t, brokers, "other-table", "k", "there")
			l := newLooking()
			u := run(t, unit.Config{Brokers: brokers, Sarama: eager, Graph: l.graph()})
			send(t, brokers, "in", "k", "x")
			<-l.entered
			fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "other-table", Err: c.fails})
			require.NoError(t, fault.Wait(t.Context(), 1))
			close(l.leave)
			require.True(t, <-l.found)

			send(t, brokers, "in", "k", "x")
			require.True(t, <-l.found)
			eventually(t, func() bool { return u.Health().Restarts == c.restarts })
			u.stop()
			require.NoError(t, u.wait(t))
		})
	}
}

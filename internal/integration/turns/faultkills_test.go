package turns

import (
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
)

// faults are the rows of the matrix. Faults of brokers come first: their own brokers end before the shared one starts.
func faults() []fault {
	return slices.Concat(brokerFaults(), memberships(), kills(), localStores(), tableLogs(), wires(), records())
}

func kills() []fault {
	rows := []fault{
		{name: "SIGKILL at random moments, restarted at once", play: randomKills, long: true},
		{name: "SIGKILL of one of two instances at random", play: randomKillsOfTwo, long: true},
		{name: "SIGKILL, local store deleted between", play: killsWithoutStore},
	}
	both := processors.Guarantee("")
	for _, r := range []struct {
		key  kmsg.Key
		only processors.Guarantee
		nth  int32 // late enough for turns to end in between
		long bool
	}{
		{kmsg.InitProducerID, both, 1, true},
		{kmsg.AddPartitionsToTxn, processors.ExactlyOnce, 40, true},
		{kmsg.Produce, both, 60, false},
		{kmsg.AddOffsetsToTxn, processors.ExactlyOnce, 30, true},
		{kmsg.TxnOffsetCommit, processors.ExactlyOnce, 30, true},
		{kmsg.EndTxn, processors.ExactlyOnce, 30, false},
		{kmsg.OffsetCommit, processors.AtLeastOnce, 2, true},
	} {
		rows = append(rows, fault{
			name: "SIGKILL before and after " + r.key.Name(), only: r.only, long: r.long,
			play: func(f *field) {
				f.start("a").kill(f.T) // the topics and the group are there
				f.ask()
				for range 1 + rounds/4 {
					f.killedAt(r.key, r.nth, false)
					f.killedAt(r.key, r.nth, true)
				}
				f.start("a")
				f.answered(5)
			},
		})
	}
	return rows
}

// killedAt starts an instance that is killed at the nth request of a kind: before the broker receives it, or after the
// broker has answered it but before the process receives the answer.
func (f *field) killedAt(key kmsg.Key, nth int32, after bool) {
	f.Helper()
	var victim atomic.Pointer[kill.Process]
	var seen atomic.Int32
	known := make(chan struct{})
	front, addrs := newTap(f, f.brokers, func(r request) verdict {
		if r.Key != key || r.answered != after || seen.Add(1) != nth {
			return pass
		}
		<-known
		_ = victim.Load().KillNow()
		return cutOff
	})
	i := f.launch("a", func(c *config) { c.brokers = addrs })
	victim.Store(i.Process)
	close(known)
	_ = i.end(f.T)
	front.close()
	f.kills++
	require.True(f, i.Killed(), i.Logged())
}

func randomKills(f *field) {
	f.ask()
	random := rand.New(rand.NewPCG(1, 1))
	for range rounds {
		i := f.launch("a")
		limit := 100*time.Millisecond + time.Duration(random.IntN(3000))*time.Millisecond
		progressed(f.ctx, f.load, 1+random.IntN(20), limit)
		f.killed(i)
	}
	f.start("a")
	f.answered(5)
}

// Restarts come late now and then, so that the other one takes over.
func randomKillsOfTwo(f *field) {
	both := []*instance{f.start("a"), f.start("b")}
	f.ask()
	random := rand.New(rand.NewPCG(1, 2))
	for n := range rounds {
		victim := random.IntN(2)
		progressed(f.ctx, f.load, 1+random.IntN(20), 2*sessionTimeout)
		f.killed(both[victim])
		if n%2 == 1 {
			f.answered(10) // with the partitions of the dead one
		}
		both[victim] = f.launch(both[victim].name)
	}
	f.runs(both[0])
	f.runs(both[1])
	f.answered(10)
}

func killsWithoutStore(f *field) {
	i := f.start("a")
	f.ask()
	for range 1 + rounds/2 {
		f.answered(5)
		f.killed(i)
		require.NoError(f, os.RemoveAll(f.dirs["a"]))
		i = f.start("a")
	}
	f.answered(5)
}

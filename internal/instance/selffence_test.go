package instance_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// A static member that failed joins as a new one, and the broker replaces the old by it. Where the rest of that join is
// lost, the next run must not take itself for another process that has its identity.
func TestStaticMemberWhoseJoinIsCutOffDoesNotFenceItself(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		c, brokers := cluster(t, "in", "out")
		var broken, cut atomic.Bool
		c.ControlKey(int16(kmsg.SyncGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			if broken.Load() && cut.CompareAndSwap(false, true) {
				broken.Store(false)
				return nil, errBoom, true // the connection is closed
			}
			return nil, nil, false
		})
		inst := run(t, instance.Config{
			Brokers: brokers, Graph: breaking(&broken), Sarama: lively, InstanceID: "one", Guarantee: guarantee,
			Restart: instance.Restart{Initial: 5 * time.Millisecond, Limit: 10},
		})
		inst.ready(t)
		broken.Store(true)
		put(t, brokers, keyed("in", "bad", "x"))
		eventually(t, cut.Load)
		require.Equal(t, "x", values(take(t, brokers, "out", 1))[0])
		inst.stop()
		require.NoError(t, inst.wait(t))
	})
}

// A static member whose session has ended joins again, within the same run, as a new member. Where the connection
// breaks before that join is complete, the instance does not know its new ID and must not take it for another process.
func TestEvictedMemberWhoseRejoinIsCutOffDoesNotFenceItself(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		brokers, name := anyBroker(t)
		var network wire
		inst := run(t, instance.Config{
			Brokers: brokers, Graph: countingOf(name), Sarama: network.config, InstanceID: "one", Guarantee: guarantee,
			Restart: instance.Restart{Initial: 5 * time.Millisecond, Limit: 10},
		})
		inst.ready(t)
		put(t, brokers, keyed(name+"-in", "k", "x"))
		take(t, brokers, name+"-out", 1)
		admin := kadm.NewClient(dial(t, brokers))
		eventually(t, func() bool { // else the next run would rightly read the record again
			return max(committedAt(t, admin, name, name+"-in", 0), committedAt(t, admin, name, name+"-in", 1)) == 1
		})
		lost := cutOnce(&network, kmsg.SyncGroup)
		removed, err := admin.LeaveGroup(t.Context(), kadm.LeaveGroup(name).InstanceIDs("one"))
		require.NoError(t, err)
		require.NoError(t, removed.Error())
		receive(t, lost)
		put(t, brokers, keyed(name+"-in", "k", "x"))
		require.Equal(t, []string{"1", "2"}, values(take(t, brokers, name+"-out", 2)))
		inst.stop()
		require.NoError(t, inst.wait(t))
	})
}

// A member that another process has replaced ends for good, though it could not ask to join again: once it reaches the
// brokers, it must not take the place back.
func TestReplacedMemberThatCannotRejoinIsNotRestarted(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
		brokers, name := anyBroker(t)
		var network wire
		older := run(t, instance.Config{
			Brokers: brokers, Graph: countingOf(name), Sarama: network.config, InstanceID: "one", Guarantee: guarantee,
			Restart: instance.Restart{Initial: 5 * time.Millisecond, Limit: 10},
		})
		older.ready(t)
		cutOnce(&network, kmsg.JoinGroup)
		newer := run(t, instance.Config{
			Brokers: brokers, Graph: countingOf(name), Sarama: lively, InstanceID: "one", Guarantee: guarantee,
		})
		require.ErrorIs(t, older.wait(t), cut.ErrFenced)
		put(t, brokers, keyed(name+"-in", "k", "x"))
		take(t, brokers, name+"-out", 1)
		require.Zero(t, newer.Health().Restarts)
		newer.stop()
		require.NoError(t, newer.wait(t))
	})
}

// cutOnce has the next request of a kind lost with its connection, and tells when it was.
func cutOnce(network *wire, key kmsg.Key) <-chan struct{} {
	done := make(chan struct{})
	var once sync.Once
	network.decide(func(k int16, _ []byte) (outcome fate) {
		if k == int16(key) {
			once.Do(func() { outcome = broken; close(done) })
		}
		return outcome
	})
	return done
}

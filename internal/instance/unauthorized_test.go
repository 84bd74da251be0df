package instance_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// denial is what Sarama says of the errors by which brokers deny a request.
var denial = regexp.MustCompile("(?i)not authorized|authorization failed")

// An ACL is taken away while the instance runs. Whatever request needed it, the instance must not report that it is
// running: it fails with the broker's error, and continues once the ACL is granted again.
func TestDeniedRequestFailsTheInstanceUntilItIsGranted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key     kmsg.Key
		topic   string
		denied  *kerr.Error
		top     bool
		starts  bool // denied before the instance starts
		evicted bool // denied to a member that has to join again
		only    instance.Guarantee
		both    bool
	}{
		{key: kmsg.OffsetCommit, denied: kerr.GroupAuthorizationFailed, only: instance.AtLeastOnce},
		{key: kmsg.OffsetCommit, topic: "in", denied: kerr.TopicAuthorizationFailed, only: instance.AtLeastOnce},
		{key: kmsg.TxnOffsetCommit, denied: kerr.GroupAuthorizationFailed, only: instance.ExactlyOnce},
		{key: kmsg.TxnOffsetCommit, topic: "in", denied: kerr.TopicAuthorizationFailed, only: instance.ExactlyOnce},
		{key: kmsg.AddOffsetsToTxn, denied: kerr.GroupAuthorizationFailed, top: true, only: instance.ExactlyOnce},
		{key: kmsg.AddOffsetsToTxn, denied: kerr.TransactionalIDAuthorizationFailed, top: true, only: instance.ExactlyOnce},
		{key: kmsg.AddPartitionsToTxn, denied: kerr.TransactionalIDAuthorizationFailed, only: instance.ExactlyOnce},
		{key: kmsg.AddPartitionsToTxn, topic: "out", denied: kerr.TopicAuthorizationFailed, only: instance.ExactlyOnce},
		{key: kmsg.EndTxn, denied: kerr.TransactionalIDAuthorizationFailed, top: true, only: instance.ExactlyOnce},
		{key: kmsg.Produce, topic: "out", denied: kerr.TopicAuthorizationFailed, both: true},
		{key: kmsg.Fetch, topic: "in", denied: kerr.TopicAuthorizationFailed, both: true},
		{key: kmsg.Heartbeat, denied: kerr.GroupAuthorizationFailed, top: true, both: true},
		{key: kmsg.JoinGroup, denied: kerr.GroupAuthorizationFailed, top: true, starts: true, both: true},
		{key: kmsg.SyncGroup, denied: kerr.GroupAuthorizationFailed, top: true, starts: true, both: true},
		{key: kmsg.OffsetFetch, denied: kerr.GroupAuthorizationFailed, starts: true, both: true},
		{key: kmsg.ListOffsets, topic: "in", denied: kerr.TopicAuthorizationFailed, evicted: true, both: true},
	} {
		underBoth(t, func(t *testing.T, guarantee instance.Guarantee) {
			if !c.both && c.only != guarantee {
				return // the request is not sent under this guarantee
			}
			t.Run(fmt.Sprintf("%s %s %s", c.key.Name(), c.topic, c.denied.Message), func(t *testing.T) {
				t.Parallel()
				broker, brokers := oneEach(t, "in", "out")
				var denied *kfake.FaultHandle
				deny := func() {
					denied = broker.Fault(kfake.Fault{
						Keys: []kmsg.Key{c.key}, Topic: c.topic, TopLevel: c.top, Err: c.denied, Count: -1,
					})
				}
				if c.starts {
					deny()
				}
				down := newRestarts(t)
				inst := run(t, instance.Config{
					Brokers: brokers, Graph: counting("g"), Sarama: lively, InstanceID: "i1", Guarantee: guarantee,
					Hooks: instance.Hooks{Restart: down.hook},
				})
				admin := kadm.NewClient(dial(t, brokers))
				records := int64(1)
				put(t, brokers, keyed("in", "k", "x"))
				if !c.starts {
					eventually(t, func() bool { return committedAt(t, admin, "g", "in", 0) == records })
					deny()
					if c.evicted {
						_, err := admin.LeaveGroup(t.Context(), kadm.LeaveGroup("g").InstanceIDs("i1"))
						require.NoError(t, err)
					}
					put(t, brokers, keyed("in", "k", "x"))
					records++
				}
				for err := receive(t, down.failed); !denial.MatchString(err.Error()); err = receive(t, down.failed) {
					require.True(t, c.evicted, "failed with another error: %v", err) // the loss of its membership, first
					down.goOn()
				}
				require.Equal(t, instance.Degraded, inst.Health().State)
				denied.Remove()
				close(down.again)
				eventually(t, func() bool { return committedAt(t, admin, "g", "in", 0) == records })
				inst.ready(t)
			})
		})
	}
}

// A permanent denial ends the instance, so that no supervisor takes it for running.
func TestInstanceGivesUpWhenItsCommitsStayDenied(t *testing.T) {
	t.Parallel()
	broker, brokers := oneEach(t, "in", "out")
	inst := run(t, instance.Config{
		Brokers: brokers, Graph: counting("g"), Sarama: lively,
		Restart: instance.Restart{Initial: time.Millisecond, Max: 5 * time.Millisecond, Limit: 3},
	})
	inst.ready(t)
	broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1})
	put(t, brokers, keyed("in", "k", "x"))
	err := inst.wait(t)
	require.ErrorIs(t, err, instance.ErrGaveUp)
	require.ErrorIs(t, err, cut.ErrUnauthorized)
	require.ErrorContains(t, err, "group g")
}

// Commits are retried after a transient error of the coordinator. Health is degraded once that lasts for several cuts, and
// recovers afterwards.
func TestHealthIsDegradedWhileCutsAreNotCommitted(t *testing.T) {
	t.Parallel()
	broker, brokers := oneEach(t, "in", "out")
	inst := run(t, instance.Config{Brokers: brokers, Graph: counting("g"), Sarama: lively})
	inst.ready(t)
	f := broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.CoordinatorLoadInProgress, Count: -1})
	put(t, brokers, keyed("in", "k", "x"))
	eventually(t, func() bool { return inst.Health().State == instance.Degraded })
	require.ErrorIs(t, inst.Health().Err, cut.ErrNotCommitted)
	require.Zero(t, inst.Health().Restarts, "nothing is lost: the next cut carries the offsets")
	f.Remove()
	inst.ready(t)
	require.NoError(t, inst.Health().Err)
	require.EqualValues(t, 1, committed(t, brokers, "g", "in", 0))
}

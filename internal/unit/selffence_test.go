package unit_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/unit"
)

// A static member that failed joins as a new one, and the broker replaces the old by it. Where the rest of that join is
// lost, the next attempt must not take itself for another process that has its identity.
func TestStaticMemberWhoseJoinIsCutOffDoesNotFenceItself(t *testing.T) {
	t.Parallel()
	underBoth(t, func(t *testing.T, guarantee unit.Guarantee) {
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
		u := run(t, unit.Config{
			Brokers: brokers, Graph: breaking(&broken), Sarama: lively, Instance: "one", Guarantee: guarantee,
			Restart: unit.Restart{Initial: 5 * time.Millisecond, Limit: 10},
		})
		u.ready(t)
		broken.Store(true)
		put(t, brokers, keyed("in", "bad", "x"))
		eventually(t, cut.Load)
		require.Equal(t, "x", values(take(t, brokers, "out", 1))[0])
		u.stop()
		require.NoError(t, u.wait(t))
	})
}

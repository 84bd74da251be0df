package turns

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
)

func memberships() []fault {
	return []fault{
		{name: "SIGKILL of one of two instances without a restart: takeover", play: takeover, alone: true, long: true},
		{name: "SIGSTOP for longer than the session timeout, takeover, SIGCONT", play: zombie},
		{name: "connection to the coordinator hangs, takeover", play: hangingConnection, long: true},
		{
			name: "member that does not learn that it was removed, takeover", play: func(f *field) { f.unaware(nil) },
			only: processors.ExactlyOnce, long: true,
		},
		{name: "scaling 1 -> 3 -> 1 instances", play: scaling},
		{name: "a second instance with the same storage path", play: samePath, long: true},
		{name: "a second instance with the same instance id", play: sameInstance, long: true},
	}
}

// members waits until the group is stable with this number of members.
func (f *field) members(n int) {
	f.Helper()
	f.membersOr(n, func() bool { return false })
}

// membersOr is like members, but also returns when another condition holds.
func (f *field) membersOr(n int, enough func() bool) {
	f.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...))
	require.NoError(f, err)
	defer client.Close()
	group := wiretest.NamesOf(f.agent).Group
	var last atomic.Value
	last.Store("")
	if !assert.Eventually(f, func() bool {
		groups, err := kadm.NewClient(client).DescribeGroups(f.ctx, group)
		g := groups[group]
		last.Store(fmt.Sprintf("state %q, %d members, errors: %v, %v", g.State, len(g.Members), err, g.Err))
		return enough() || err == nil && g.Err == nil && g.State == "Stable" && len(g.Members) == n
	}, wait, poll) {
		f.Fatalf("the group has not %d members: %s", n, last.Load())
	}
}

// takeoverBound is the longest time until other members process the partitions of a member that ended.
const takeoverBound = sessionTimeout + 2*time.Second

func takeover(f *field) {
	a := f.start("a")
	f.start("b")
	f.members(2)
	f.ask()
	f.answered(20)
	longest := time.Duration(math.MaxInt64)
	for range 4 { // who waits for anything else does so every time; a machine that is busy is not always
		f.load.ForgetLatency()
		f.killed(a)
		f.members(1)
		f.answered(20)
		longest = f.load.Progress().Max
		f.Logf("longest wait over a takeover: %s", round(longest))
		if longest < takeoverBound {
			break
		}
		a = f.start("a")
		f.members(2)
	}
	require.Less(f, longest, takeoverBound)
	f.figure("session timeout %s", sessionTimeout)
}

func zombie(f *field) {
	a := f.start("a")
	f.start("b")
	f.members(2)
	f.ask()
	f.answered(10)
	require.NoError(f, a.Pause())
	f.members(1)
	f.answered(10)
	require.NoError(f, a.Resume())
	f.answered(10)
	f.returns(a)
}

// returns waits until an instance that lost its partitions is a member again, or has ended.
func (f *field) returns(i *instance) {
	f.Helper()
	f.membersOr(2, i.Gone)
	if i.Gone() {
		f.figure("it ended")
	} else {
		f.figure("it rejoined")
	}
	f.answered(10)
}

func hangingConnection(f *field) {
	var lost atomic.Bool
	_, addrs := newTap(f, f.brokers, func(r request) verdict {
		if lost.Load() && r.Key == kmsg.Heartbeat {
			return swallow
		}
		return pass
	})
	a := f.start("a", func(c *config) { c.brokers = addrs })
	f.start("b")
	f.members(2)
	f.ask()
	f.answered(10)
	lost.Store(true)
	f.members(1)
	f.answered(20)
	lost.Store(false)
	f.returns(a)
}

// unaware makes an instance believe that its heartbeats are answered while its partitions belong to another. No local
// timeout protects against that: only the generation in its commits does.
func (f *field) unaware(rewrite func(kmsg.Request)) {
	f.Helper()
	var lost atomic.Bool
	rewrites := []func(kmsg.Request){rewrite}
	if rewrite == nil {
		rewrites = nil
	}
	_, addrs := newTap(f, f.brokers, func(r request) verdict {
		if lost.Load() && r.Key == kmsg.Heartbeat {
			return forge
		}
		return pass
	}, rewrites...)
	f.start("a", func(c *config) { c.brokers = addrs })
	f.start("b")
	f.members(2)
	f.ask()
	f.answered(10)
	lost.Store(true)
	f.members(1)
	f.answered(20)
	lost.Store(false)
}

func scaling(f *field) {
	f.start("a")
	f.ask()
	f.answered(10)
	b, c := f.launch("b"), f.launch("c")
	f.runs(b)
	f.runs(c)
	f.members(3)
	f.answered(20)
	require.NoError(f, b.Stop())
	f.members(2)
	f.answered(10)
	require.NoError(f, c.Stop())
	f.members(1)
	f.answered(10)
}

func samePath(f *field) {
	f.start("a")
	f.ask()
	f.answered(5)
	b := f.launch("b", func(c *config) { c.dir = f.dirs["a"] })
	b.refuses(f.T, "in use", f.dirs["a"])
	f.answered(10)
	f.figure("the newer one stops: %q", "storage in use")
}

func sameInstance(f *field) {
	older := f.start("a")
	f.ask()
	f.answered(5)
	newer := f.launch("a2", func(c *config) { c.instance = "a" })
	older.refuses(f.T, "fenced", "same instance id")
	f.runs(newer)
	f.answered(10)
	f.figure("the older one stops: %q", "fenced")
}

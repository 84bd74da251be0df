package integration

import (
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// awaitNewMember waits until the group is stable with one member that is not before, and returns that member. A kill before
// that would stall the test: kfake starts the session timeout of a member only with its SyncGroup, so a member that dies
// between JoinGroup and SyncGroup keeps its partitions indefinitely.
func (r *fixture) awaitNewMember(group, before string) (member string) {
	r.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...))
	require.NoError(r.t, err)
	defer c.Close()
	admin := kadm.NewClient(c)
	require.Eventually(r.t, func() bool {
		groups, err := admin.DescribeGroups(r.t.Context(), group)
		if err != nil {
			return false
		}
		g := groups[group]
		if g.State != "Stable" || len(g.Members) != 1 || g.Members[0].MemberID == before {
			return false
		}
		member = g.Members[0].MemberID
		return true
	}, waitLimit, 10*time.Millisecond)
	return member
}

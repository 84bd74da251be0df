package integration

import (
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// joined waits until a group's one member is another than the one before, and works. The embedded broker does not miss a
// member that dies between its JoinGroup and its SyncGroup: kfake begins to watch a session with the latter, so the dead
// one would keep its partitions for ever.
func (r *rig) joined(group, before string) (member string) {
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
	}, patience, 10*time.Millisecond)
	return member
}

package kafkatest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInternalTopicsAreReplicatedOnEveryNode(t *testing.T) {
	one, three := nodes(1), nodes(3)
	text := properties(one[0], one, nil)
	require.Contains(t, text, "\ntransaction.state.log.replication.factor=1\n")
	require.Contains(t, text, "\nmin.insync.replicas=1\n")

	text = properties(three[1], three, nil)
	require.Contains(t, text, "\nnode.id=2\n")
	require.Contains(t, text, "\noffsets.topic.replication.factor=3\n")
	require.Contains(t, text, "\nmin.insync.replicas=2\n")
	require.Contains(t, text, "=1@127.0.0.1:201,2@127.0.0.1:202,3@127.0.0.1:203\n")
	require.NotContains(t, text, "0.0.0.0")
}

func TestPropertiesOfTheTestTakePrecedence(t *testing.T) {
	one := nodes(1)
	more := map[string]string{"group.initial.rebalance.delay.ms": "7", "a": `b\c` + "\nnode.id=9"}
	text := properties(one[0], one, more)
	require.Equal(t, 1, strings.Count(text, "group.initial.rebalance.delay.ms"))
	require.Contains(t, text, "group.initial.rebalance.delay.ms=7\n")
	require.Contains(t, text, `a=b\\c\nnode.id=9`+"\n")
	require.Equal(t, text, properties(one[0], one, more), "the same each time")
}

func nodes(count int) []*node {
	all := make([]*node, count)
	for i := range all {
		id := i + 1
		all[i] = &node{id: id, dir: "/d", port: &port{number: 100 + id}, controller: &port{number: 200 + id}}
	}
	return all
}

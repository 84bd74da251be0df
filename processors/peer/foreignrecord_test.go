package peer_test

import (
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// Other programs write calls with any headers, or with none.

// call returns a call of the tool for a peer that does not exist.
func call(use, content string) topics.ToolUseItem {
	name := peer.ToolName
	return topics.ToolUseItem{
		ToolUseID: &use, Name: &name, Input: topics.Raw(`{"peerId":"nobody","content":"` + content + `"}`), TotalTools: 1,
	}
}

func TestCallWithAnIDThatIsNotUTF8IsAnswered(t *testing.T) {
	b := newInstance(t, peer.Config{})
	calls, results := processortest.In(b.Driver, b.topics.ToolUse), processortest.Out(b.Driver, b.topics.ToolUseResult)
	calls.Pipe("s1", call("toolu_1", "x"), processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte("turn-\xff/0/tool-use/0")}))
	list := results.Drain()
	require.Len(t, list, 1)
	require.Equal(t, "toolu_1", *list[0].Value.ToolUseID)
	require.Len(t, b.audit.Drain(), 2)
}

// Some models count their calls from zero in every turn.
func TestCallsWithoutIDsThatHaveTheSameToolUseIDAreDifferentCalls(t *testing.T) {
	b := newInstance(t, peer.Config{})
	calls, results := processortest.In(b.Driver, b.topics.ToolUse), processortest.Out(b.Driver, b.topics.ToolUseResult)
	ids := map[string]bool{}
	for _, content := range []string{"x", "x", "y"} {
		calls.Pipe("s1", call("call_0", content))
		list := results.Drain()
		require.Len(t, list, 1)
		require.Contains(t, string(list[0].Value.Result), `"reason":"unknown_peer"`)
		ids[list[0].ID()] = true
	}
	require.Len(t, ids, 3)
	require.Len(t, b.audit.Drain(), 6)
}

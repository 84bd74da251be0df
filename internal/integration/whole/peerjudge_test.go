package whole

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

// judge checks the tool results, the runs of the receiver, and the audits of both sides.
func (p *peerWorld) judge(tasks int) {
	dispatcher, receiver := p.sides[0], p.sides[1]
	results := map[string]string{}
	for _, r := range p.all(dispatcher.catalog.ToolUseResult.Name()) {
		d := dispatcher.catalog.ToolUseResult.Codec().Unmarshal(r.Value)
		require.NoError(p.t, d.Err)
		require.Equal(p.t, "success", *d.Value.Status, "%s: %s", r.Key, d.Value.Result)
		if before, ok := results[string(r.Key)]; ok {
			require.Equal(p.t, before, string(d.Value.Result), "two results of the call of %s", r.Key)
			require.Equal(p.t, processors.AtLeastOnce, p.guarantee, "two records of the result of %s", r.Key)
		}
		results[string(r.Key)] = string(d.Value.Result)
	}
	require.Len(p.t, results, tasks)

	turns := map[string]map[string]bool{}
	for _, r := range p.all(receiver.catalog.MessageOutput.Name()) {
		session := string(r.Key)
		if turns[session] == nil {
			turns[session] = map[string]bool{}
		}
		turn, _, _ := strings.Cut(headerOf(r, topics.HeaderID), "/")
		turns[session][turn] = true
	}
	require.Len(p.t, turns, tasks)
	for session, ids := range turns {
		require.Len(p.t, ids, 1, "the receiver ran the task of %s more than once", session)
	}

	ends := []topics.PeerEvent{topics.PeerSent, topics.PeerAcknowledged, topics.PeerReceived, topics.PeerCompleted}
	var ours, theirs peer.Chain
	count := map[topics.PeerEvent]int{}
	// The audits are written after the users have their answers.
	require.NoError(p.t, kill.Until(p.ctx, func() bool {
		ours, theirs = dispatcher.audit("hq"), receiver.audit("tenant-1")
		clear(count)
		for _, r := range append(ours.Records, theirs.Records...) {
			count[r.Event]++
		}
		return !slices.ContainsFunc(ends, func(e topics.PeerEvent) bool { return count[e] < tasks })
	}))
	require.Empty(p.t, peer.Stitch(peer.Half{Chain: ours}, peer.Half{Chain: theirs}))
	for _, e := range ends {
		require.Equal(p.t, tasks, count[e], e)
	}
	require.Zero(p.t, count[topics.PeerSendFailed])
	p.t.Logf("%d tasks: %v", tasks, count)
}

// audit returns the chain of a side, which must be whole.
func (s *side) audit(instance string) peer.Chain {
	var records []topics.PeerAudit
	for _, r := range s.all(s.catalog.PeerAudit.Name()) {
		d := s.catalog.PeerAudit.Codec().Unmarshal(r.Value)
		require.NoError(s.t, d.Err)
		records = append(records, d.Value)
	}
	c := peer.Chain{Records: peer.Sorted(instance, records)}
	if s.guarantee == processors.ExactlyOnce {
		require.Len(s.t, c.Records, len(records), "records of the audit are there twice")
	}
	require.Empty(s.t, peer.Verify(c))
	return c
}

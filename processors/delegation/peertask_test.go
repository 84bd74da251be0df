package delegation

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

const askingPeer = `{"agent_id":"peer:hq-2/books","message":"count the \"boats\"","timeout_seconds":60}`

func TestTaskForAPeer(t *testing.T) {
	p := newHarness(t)
	call := p.callOf(SendTool, "a", askingPeer, from(chat("t1", "U1")))
	first := p.Handle(call)
	asked := machinetest.Only[topics.PeerCommand](t, first)
	require.Empty(t, tasks(first))
	require.Equal(t, "s1", first[2].Key, "peer-commands is keyed by the session")
	require.Equal(t, topics.PeerDelegate, asked.Kind)
	require.Equal(t, "hq-2", asked.PeerID)
	require.Len(t, asked.TaskID, 32)
	require.True(t, asked.Detached)
	require.Equal(t, p.Now.Add(time.Minute).UnixMilli(), asked.DeadlineMS)
	require.JSONEq(t, `{"taskId":"`+asked.TaskID+`","parentInstanceId":"","parentSessionId":"s1","content":"count the \"boats\"","agentId":"books"}`,
		string(asked.Request))
	require.Equal(t, "peer:hq-2/books", machinetest.Only[topics.Delegation](t, first).Target)

	reply := func(r topics.PeerReply) peerReplied {
		r.TaskID, r.PeerID, r.Hash = asked.TaskID, "hq-2", asked.Hash
		return p.peerReply(r)
	}
	require.Empty(t, p.Handle(reply(topics.PeerReply{State: topics.PeerRunning})))
	require.Empty(t, p.Handle(reply(topics.PeerReply{State: topics.PeerDone, Waiter: "w1"})), "of another who asked")
	done := reply(topics.PeerReply{
		State: topics.PeerDone, Body: topics.Raw(`{"taskId":"x","peerInstanceId":"hq-2","status":"success","result":"42 boats"}`),
	})
	es := p.settle(done)
	c := onlyCallback(t, es)
	require.Equal(t, "hand:peer:hq-2/books", c.note.Sender)
	require.Equal(t, "42 boats", c.result())
	require.Empty(t, machinetest.Values[topics.PeerCommand](es))
	require.Empty(t, statuses(p.settle(done)), "a repeat")

	p.Row = nil // a crash: the reply comes before the call
	require.Empty(t, statuses(p.settle(done)))
	require.Equal(t, onlyMessage(t, es), onlyMessage(t, p.Handle(call)))
}

func TestTaskOfAPeerThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		reply      topics.PeerReply
		code, text string
	}{
		"code":     {topics.PeerReply{State: topics.PeerDone, Code: "unknown_peer", Detail: "no"}, "unknown_peer", "The peer returned no result. no"},
		"error":    {topics.PeerReply{State: topics.PeerDone, Body: topics.Raw(`{"status":"error","error":"down"}`)}, "error", "down"},
		"rejected": {topics.PeerReply{State: topics.PeerDone, Body: topics.Raw(`{"status":"rejected","pendingApprovalSummary":"pay"}`)}, "rejected", "approval"},
		"no room":  {topics.PeerReply{State: topics.PeerNoRoom}, "no_room", "did not run"},
		"garbage":  {topics.PeerReply{State: topics.PeerDone, Body: topics.Raw(`{"status":{}}`)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			asked := machinetest.Only[topics.PeerCommand](t, p.Handle(p.callOf(SendTool, "a", askingPeer, from(chat("t1", "U1")))))
			c.reply.TaskID, c.reply.PeerID = asked.TaskID, "hq-2"
			es := p.settle(p.peerReply(c.reply))
			require.Equal(t, []topics.DelegationStatus{topics.DelegationFailed}, statuses(es))
			d := machinetest.Only[topics.Delegation](t, es)
			require.Equal(t, c.code, d.Code)
			require.Contains(t, d.Error, c.text)
			require.Contains(t, onlyCallback(t, es).content, "hand:peer:hq-2/books")
		})
	}
}

func TestTaskOfAPeerIsCancelledThere(t *testing.T) {
	p := newHarness(t)
	asked := machinetest.Only[topics.PeerCommand](t, p.Handle(p.callOf(SendTool, "a", askingPeer)))
	cancel := machinetest.Only[topics.PeerCommand](t, p.advance(time.Minute))
	require.Equal(t, topics.PeerCancel, cancel.Kind)
	require.Equal(t, []string{asked.TaskID, asked.PeerID, asked.Hash}, []string{cancel.TaskID, cancel.PeerID, cancel.Hash})
}

func TestRepliesOfOtherTasksOfPeersAreIgnored(t *testing.T) {
	p := newHarness(t)
	for _, r := range []topics.PeerReply{
		{TaskID: strings.Repeat("a", 32), PeerID: "hq-2", State: topics.PeerDone},
		{TaskID: "dlg-" + strings.Repeat("a", 28), InboundID: "hq-2", State: topics.PeerDone},
	} {
		require.Empty(t, p.Handle(p.peerReply(r)))
	}
}

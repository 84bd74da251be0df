package peer

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// cancellationOf returns the only cancellation among effects.
func cancellationOf(t machinetest.TB, es effects) topics.Delivery {
	t.Helper()
	a := machinetest.Only[topics.Delivery](t, es)
	require.True(t, sent(t, a).Cancel)
	return a
}

func TestEndOfTheTurnCancelsItsTasks(t *testing.T) {
	p := newHarness(t)
	one := attemptOf(t, p.Handle(p.delegation("turn-1/0/tool-use/0", asking)))
	attemptOf(t, p.Handle(p.delegation("turn-2/0/tool-use/0", asking)))
	require.Empty(t, p.Handle(p.output("turn-3/1/answer/0", "bye")))
	require.Empty(t, p.Handle(p.output("", "bye")))
	foreign := p.output("turn-1/1/answer/0", "bye")
	foreign.Agent = "quay"
	require.Empty(t, p.Handle(foreign))

	es := p.settle(p.output("turn-1/1/answer/0", "bye"))
	requireFailed(t, es, peerwire.CodeCancelled)
	require.Equal(t, []topics.PeerEvent{topics.PeerSendFailed}, events(es))
	a := cancellationOf(t, es)
	require.Equal(t, one.DeliveryID, a.DeliveryID)
	require.EqualValues(t, 2, a.Attempt)
	require.Equal(t, sent(t, one).TaskID, sent(t, a).TaskID)
	require.Empty(t, sent(t, a).Request)
	require.Empty(t, p.Handle(p.receipt(a, topics.OutcomeFailed, peerwire.Answer{Code: peerwire.CodeUnreachable})))
	require.Empty(t, p.Handle(p.replied(one)), "the task has ended")
	require.Empty(t, p.Handle(p.output("turn-1/1/answer/0", "bye")))
	require.Equal(t, peerrow.Task_ATTEMPT, p.Read().Tasks[1].Phase)
}

func TestPeerIsToldOfACancellationOnlyIfItMayHaveTheTask(t *testing.T) {
	for name, test := range map[string]struct {
		answer peerwire.Answer
		told   int
	}{
		"not reached": {peerwire.Answer{Code: peerwire.CodeUnreachable}, 0},
		"reached":     {peerwire.Answer{Code: peerwire.CodeTimeout, Reached: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			require.Empty(t, p.Handle(p.failedWith(attemptOf(t, p.Handle(p.delegation(callID, asking))), 0, test.answer)))
			es := p.settle(p.output("turn-1/1/answer/0", "bye"))
			require.Len(t, machinetest.Values[topics.Delivery](es), test.told)
			requireFailed(t, es, peerwire.CodeCancelled)
		})
	}
}

func TestTaskWithoutWaitersIsCancelled(t *testing.T) {
	p := newHarness(t)
	command := p.proxied("t1", "w1")
	attemptOf(t, p.Handle(command))
	require.Empty(t, p.Handle(p.proxied("t1", "w2")), "a repeat waits")
	require.Empty(t, p.Handle(p.proxied("t1", "w2")))
	require.Empty(t, p.Handle(p.waiting(topics.PeerLeave, "t1", "w1")))
	require.Empty(t, p.Handle(p.waiting(topics.PeerLeave, "t1", "w1")), "it has left already")
	require.Empty(t, p.Handle(p.waiting(topics.PeerLeave, "t2", "w2")), "another task")
	es := p.settle(p.waiting(topics.PeerLeave, "t1", "w2"))
	cancellationOf(t, es)
	require.Equal(t, string(peerwire.CodeCancelled), machinetest.Only[topics.PeerReply](t, es).Code)

	p = newHarness(t)
	p.Handle(p.proxied("t1", "w1"))
	require.Empty(t, p.Handle(p.proxied("t1", "w2", unattended)))
	for _, w := range []string{"w1", "w2"} {
		require.Empty(t, p.Handle(p.waiting(topics.PeerLeave, "t1", w)))
	}
	require.Equal(t, peerrow.Task_ATTEMPT, p.Read().Tasks[0].Phase, "a detached task continues")
}

func TestTooManyWaitersDetachATask(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.proxied("t1", "w0"))
	for i := range maxWaiters + 5 {
		p.Handle(p.proxied("t1", fmt.Sprint("w", i)))
	}
	require.Len(t, p.Read().Tasks[0].Waiters, maxWaiters)
	for i := range maxWaiters {
		require.Empty(t, p.Handle(p.waiting(topics.PeerLeave, "t1", fmt.Sprint("w", i))))
	}
	require.Equal(t, peerrow.Task_ATTEMPT, p.Read().Tasks[0].Phase, "another request may wait")
}

func TestCancelCommand(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.proxied("t1", "w1", unattended))
	es := p.settle(p.waiting(topics.PeerCancel, "t1", ""))
	cancellationOf(t, es)
	reply := machinetest.Only[topics.PeerReply](t, es)
	require.Equal(t, string(peerwire.CodeCancelled), reply.Code)
	require.Empty(t, p.settle(p.waiting(topics.PeerCancel, "t1", "")))
}

func TestWaitersAreTold(t *testing.T) {
	p := newHarness(t)
	ask := func(waiter string) topics.PeerReply {
		return machinetest.Only[topics.PeerReply](t, p.Handle(p.waiting(topics.PeerAsk, "t1", waiter)))
	}
	require.Equal(t, topics.PeerUnknown, ask("w0").State)
	require.Nil(t, p.Read())
	begin := p.proxied("t1", "w1")
	a := attemptOf(t, p.Handle(begin))
	running := ask("w9")
	require.Equal(t, topics.PeerReply{TaskID: "t1", PeerID: "tenant-a", Waiter: "w9", State: topics.PeerRunning, Hash: begin.Command.Hash}, running)

	conflict := machinetest.Only[topics.PeerReply](t, p.Handle(p.proxied("t1", "w2", func(r *peerwire.Request, _ *topics.PeerCommand) { r.Content = "else" })))
	require.Equal(t, topics.PeerConflict, conflict.State)
	require.Equal(t, "w2", conflict.Waiter)
	require.NotEqual(t, begin.Command.Hash, conflict.Hash)

	es := p.settle(p.replied(a))
	require.Empty(t, machinetest.Values[topics.ToolUseResult](es))
	done := machinetest.Only[topics.PeerReply](t, es)
	require.Equal(t, topics.PeerDone, done.State)
	require.Empty(t, done.Waiter)
	require.Equal(t, begin.Command.Hash, done.Hash)
	_, err := peerwire.ReadReply(done.Body, "t1")
	require.NoError(t, err)

	done.Waiter = "w3"
	require.Equal(t, done, machinetest.Only[topics.PeerReply](t, p.Handle(p.proxied("t1", "w3"))))
	require.Equal(t, done, ask("w3"))
	p.advance(25 * time.Hour)
	require.Equal(t, topics.PeerUnknown, ask("w4").State)
}

func TestRequestThatCannotBeReadIsDeadLettered(t *testing.T) {
	p := newHarness(t)
	c := topics.PeerCommand{Kind: topics.PeerDelegate, TaskID: "t1", PeerID: "tenant-a"}
	require.Equal(t, reasonRequest, letter(t, p.Handle(p.command(c))))
	c.Request = topics.Raw(`{"taskId":"t1","parentInstanceId":"","content":""}`)
	require.Equal(t, reasonRequest, letter(t, p.Handle(p.command(c))))
	c.Kind, c.PeerID, c.InboundID = topics.PeerSettle, "", "partner-b"
	require.Equal(t, reasonCommand, letter(t, p.Handle(p.command(c))))
	require.Nil(t, p.Read())
}

func TestRequestOfAProxyIsSentAsThisInstance(t *testing.T) {
	p := newHarness(t)
	es := p.Handle(p.proxied("t1", "w1", func(r *peerwire.Request, _ *topics.PeerCommand) {
		r.ParentInstanceID, r.ParentRunID, r.ParentSessionID, r.CallbackToken = "someone", "run-7", "s-7", "secret"
		r.Timeout, r.Path = time.Second, peerwire.Path{Hops: 3, Chain: []string{"x", "y"}}
	}))
	req, refusal := peerwire.ReadRequest(sent(t, attemptOf(t, es)).Request)
	require.Nil(t, refusal)
	require.Equal(t, peerwire.Request{
		TaskID: "t1", ParentInstanceID: "hq-1", Content: "count the boats", ParentRunID: "run-7", ParentSessionID: "s-7",
		Path: peerwire.Path{Hops: 1, Chain: []string{"hq-1"}},
	}, req)
	require.Equal(t, "run-7", machinetest.Only[topics.PeerAudit](t, es).ParentRunID)
}

func TestPurgeCancelsTasksAndForgetsReplies(t *testing.T) {
	p := newHarness(t)
	one := attemptOf(t, p.Handle(p.delegation("turn-1/0/tool-use/0", asking)))
	require.Len(t, machinetest.Values[topics.ToolUseResult](p.settle(p.replied(one))), 1)
	attemptOf(t, p.Handle(p.delegation("turn-2/0/tool-use/0", asking)))
	two := attemptOf(t, p.Handle(p.proxied("t1", "w1")))
	settling := machinetest.Only[topics.PeerCommand](t, p.Handle(p.replied(two)))
	other := p.delegation("turn-3/0/tool-use/0", asking)
	other.Agent = "quay"
	attemptOf(t, p.Handle(other))

	es := p.settle(p.control(topics.ActionPurge))
	cancellationOf(t, es)
	requireFailed(t, es, peerwire.CodeCancelled)
	es = p.Handle(p.own("", settling))
	require.NotNil(t, machinetest.Only[topics.PeerReply](t, es).Body, "it had ended before")
	require.Equal(t, peerrow.Task_ATTEMPT, p.Read().Tasks[3].Phase, "it is another agent's")
	for _, x := range p.Read().Tasks[:3] {
		require.Equal(t, peerrow.Task_SETTLED, x.Phase)
		require.Nil(t, x.Outcome)
		require.Nil(t, x.Request)
	}
	require.Empty(t, p.Handle(p.delegation("turn-1/0/tool-use/0", asking)), "it is not begun again")
	require.Equal(t, topics.PeerUnknown, machinetest.Only[topics.PeerReply](t, p.Handle(p.proxied("t1", "w2"))).State)
	require.Empty(t, p.Handle(p.control(topics.ActionPurge)))
	require.Empty(t, p.Handle(p.control(topics.ActionCancel)))
	p.advance(25 * time.Hour)
	require.Nil(t, p.Read())
}

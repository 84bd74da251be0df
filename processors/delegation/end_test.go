package delegation

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// statuses returns how the delegations ended, in order.
func statuses(es effects) (list []topics.DelegationStatus) {
	for _, d := range machinetest.Values[topics.Delegation](es) {
		if d.Status != topics.DelegationOpen {
			list = append(list, d.Status)
		}
	}
	return list
}

func TestOutputOfATaskIsReturnedToItsCaller(t *testing.T) {
	caller := newHarness(t)
	s := sent(t, caller.Handle(caller.delegation("a")))
	target := newAgent(t, "research", func(c *Config) { c.Agents = []string{"front"} })
	target.key = *s.Message.SessionID
	route := func(o *topics.Output) {
		o.ReplyTo = topics.DelegationRoute(memberOf(t, s.Message.Metadata, topics.MetaTask))
	}
	es := target.Handle(target.output(textOf(t, s.Message.Metadata, "request_id"), "42 boats", route))
	require.Len(t, es, 1)
	require.Equal(t, "s1", es[0].Key, "the key is the caller's session")
	require.Equal(t, "front-delegation-replies", es[0].Topic)
	r := machinetest.Only[topics.DelegationReply](t, es)
	require.Nil(t, target.Read(), "it needs no row")
	require.Equal(t, "42 boats", onlyCallback(t, caller.Handle(caller.reply(r))).result())

	status := "error"
	es = target.Handle(target.output("x", "ignored", route, func(o *topics.Output) {
		o.Status, o.Error = &status, &topics.OutputError{Code: topics.CodeThinkFailed, Message: "The model is down."}
	}))
	reply := machinetest.Only[topics.DelegationReply](t, es)
	require.Equal(t, topics.DelegationFailed, reply.Status)
	require.Equal(t, "think_failed", reply.Code)
	require.Equal(t, "The model is down.", reply.Content)
	es = target.Handle(target.output("x", "ignored", route, func(o *topics.Output) {
		o.Status, o.Error = &status, &topics.OutputError{Code: topics.CodeEmptyResponse, Message: "empty"}
	}))
	reply = machinetest.Only[topics.DelegationReply](t, es)
	require.Equal(t, topics.DelegationCompleted, reply.Status, "an agent that returned no text")
	require.Empty(t, reply.Content+reply.Code)

	target.agents = nil
	require.Equal(t, reasonCaller, letter(t, target.Handle(target.output("x", "x", route))))
	require.Equal(t, reasonTask, letter(t, target.Handle(target.output("x", "x", func(o *topics.Output) {
		o.ReplyTo = topics.DelegationRoute(topics.Raw(`{"agent":"front"}`))
	}))))
	require.Empty(t, target.Handle(target.output("x", "x", func(o *topics.Output) {
		o.ReplyTo = topics.OriginRoute(topics.EncodeOrigin(chat("t", "U")), nil)
	})), "an output for a channel is for deliveries")
}

func TestFirstEndCounts(t *testing.T) {
	p := newHarness(t)
	task := sent(t, p.Handle(p.delegation("a")))
	first := p.Handle(p.completed(task, "42 boats"))
	require.Equal(t, []topics.DelegationStatus{topics.DelegationCompleted}, statuses(first))
	require.Empty(t, machinetest.Values[topics.Control](first))
	row := p.Row
	require.Empty(t, p.Handle(p.completed(task, "42 boats")), "a repeat")
	require.Empty(t, p.Handle(p.completed(task, "43 boats")), "another end")
	require.Equal(t, row, p.Row)
	p.Now = p.Now.Add(23 * time.Hour)
	require.Empty(t, p.Handle(p.completed(task, "42 boats")))
}

func TestReplyOfAnotherSessionIsDeadLettered(t *testing.T) {
	p := newHarness(t)
	task := taskOf(t, sent(t, p.Handle(p.delegation("a"))))
	es := p.Handle(p.reply(topics.DelegationReply{SessionID: "s2", CallbackID: task.CallbackID, Status: topics.DelegationCompleted}))
	require.Equal(t, reasonForeign, letter(t, es))
	require.Equal(t, delegationrow.Task_OPEN, p.Read().Tasks[0].Phase)
}

func TestTimeoutAndCompletionInBothOrders(t *testing.T) {
	for _, completedFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("completed first ", completedFirst), func(t *testing.T) {
			p := newHarness(t)
			task := sent(t, p.Handle(p.delegation("a")))
			p.Now = p.Now.Add(10 * time.Minute)
			es := p.Handle(deadlineCame{})
			timeout := p.reply(machinetest.Only[topics.DelegationReply](t, es))
			require.Len(t, es, 1, "the deadline alone ends nothing")
			replies := []event{timeout, p.completed(task, "42 boats")}
			if completedFirst {
				replies[0], replies[1] = replies[1], replies[0]
			}
			end := p.Handle(replies[0])
			require.Empty(t, p.Handle(replies[1]))
			c := onlyCallback(t, end)
			if completedFirst {
				require.Equal(t, "42 boats", c.result())
				require.Empty(t, machinetest.Values[topics.Control](end))
				return
			}
			require.Equal(t, "The task was not finished within 10m0s.", c.result())
			require.Equal(t, topics.DelegationTimedOut, c.note.Status)
			cancel := machinetest.Only[topics.Control](t, end)
			require.Equal(t, textOf(t, task.Message.Metadata, "request_id"), *cancel.RequestID)
			for _, e := range end {
				if _, ok := e.Value.(topics.Control); ok {
					require.Equal(t, "research-session-control", e.Topic)
					require.Equal(t, *task.Message.SessionID, e.Key, "in the session of the task")
				}
			}
		})
	}
}

func TestEndIsAskedForAgainUntilItIsRead(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.delegation("a"))
	p.Now = p.Now.Add(10 * time.Minute)
	first := p.Handle(deadlineCame{})
	p.Now = p.Now.Add(writeAgain - time.Millisecond)
	require.Empty(t, p.Handle(deadlineCame{}))
	p.Now = p.Now.Add(time.Millisecond)
	require.Equal(t, first.Records(), p.Handle(deadlineCame{}).Records(), "the same record")
}

func TestCancelAndCompletionInBothOrders(t *testing.T) {
	for _, completedFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("completed first ", completedFirst), func(t *testing.T) {
			p := newHarness(t)
			task := sent(t, p.Handle(p.delegation("a")))
			es := p.Handle(p.cancellation("b", "a"))
			require.Len(t, es, 1, "the call is answered when the end is read")
			cancel := p.reply(machinetest.Only[topics.DelegationReply](t, es))
			replies := []event{cancel, p.completed(task, "42 boats")}
			if completedFirst {
				replies[0], replies[1] = replies[1], replies[0]
			}
			all := append(p.Handle(replies[0]), p.Handle(replies[1])...)
			c := onlyCallback(t, all)
			a := machinetest.Only[topics.ToolUseResult](t, all)
			require.Equal(t, "b", *a.ToolUseID)
			require.Equal(t, CancelTool, *a.Name)
			require.EqualValues(t, 1, a.TotalTools)
			_, result := answerOf(t, all)
			if completedFirst {
				require.Equal(t, "It had ended already: completed.", textOf(t, result, "message"))
				require.Equal(t, "42 boats", c.result())
				require.Empty(t, machinetest.Values[topics.Control](all))
			} else {
				require.Equal(t, "cancelled", textOf(t, result, "status"))
				require.Equal(t, "The delegation was cancelled.", textOf(t, result, "message"))
				require.Equal(t, topics.DelegationCancelled, c.note.Status)
				machinetest.Only[topics.Control](t, all)
			}
			again := p.settle(p.cancellation("b", "a"))
			require.Equal(t, a, machinetest.Only[topics.ToolUseResult](t, again), "a repeat of the call gets the same answer")
			_, result = answerOf(t, p.settle(p.cancellation("c", "a")))
			require.Contains(t, textOf(t, result, "message"), "It had ended already: ")
		})
	}
}

func TestOtherSessionsCannotCancel(t *testing.T) {
	p, other := newHarness(t), newHarness(t)
	other.key = "s2"
	s := sent(t, p.Handle(p.delegation("a")))
	requireFailed(t, other.Handle(other.cancellation("b", "a")), failMissing)
	other.Handle(other.delegation("a"))
	cancelled := machinetest.Only[topics.Control](t, other.settle(other.cancellation("b", "a")))
	require.NotEqual(t, textOf(t, s.Message.Metadata, "request_id"), *cancelled.RequestID, "only its own")
	require.Equal(t, "42 boats", onlyCallback(t, p.Handle(p.completed(s, "42 boats"))).result())
}

func TestPurgeEndsDelegationsWithoutAnnouncements(t *testing.T) {
	p := newHarness(t)
	a, b := sent(t, p.Handle(p.delegation("a"))), sent(t, p.Handle(p.delegation("b")))
	p.Handle(p.delegation("c"))
	p.Handle(p.delegation("d"))
	first := onlyCallback(t, p.Handle(p.completed(a, "A")))
	p.Handle(p.completed(b, "a secret"))
	es := p.Handle(p.control(topics.ActionPurge))
	require.Len(t, machinetest.Values[topics.DelegationReply](es), 2)
	require.NotContains(t, string(p.Row), "a secret")
	require.NotContains(t, string(p.Row), "C1", "no origin")
	require.Empty(t, p.Handle(p.control(topics.ActionPurge)), "a repeat")
	require.Empty(t, callbacks(p.Handle(p.output(first.request, "ok"))))
	requireFailed(t, p.Handle(p.cancellation("x", "c")), failMissing)
	var end effects
	for _, r := range machinetest.Values[topics.DelegationReply](es) {
		end = append(end, p.Handle(p.reply(r))...)
	}
	require.Equal(t, []topics.DelegationStatus{topics.DelegationCancelled, topics.DelegationCancelled}, statuses(end))
	require.Len(t, machinetest.Values[topics.Control](end), 2)
	require.Empty(t, callbacks(end))
	require.Empty(t, callbacks(p.advance(2*time.Hour)))
	require.Nil(t, p.Read())
}

func TestPurgedRowKeepsOnlyIDsForAnHour(t *testing.T) {
	p := newHarness(t)
	require.Empty(t, p.Handle(p.control(topics.ActionPurge)))
	call := p.delegation("a")
	task := sent(t, p.Handle(call))
	p.Handle(p.completed(task, "A"))
	require.Empty(t, p.Handle(p.control(topics.ActionPurge)))
	require.Empty(t, p.Handle(call), "a call that is read again begins nothing")
	require.Empty(t, p.Handle(p.completed(task, "A")))
	require.Empty(t, p.advance(time.Hour))
	require.Nil(t, p.Read())
	p.Handle(p.completed(sent(t, p.Handle(p.delegation("b"))), "B"))
	p.Now = p.Now.Add(time.Hour)
	require.Empty(t, p.Handle(p.control(topics.ActionPurge)))
	require.Nil(t, p.Read())
	require.Empty(t, p.Handle(p.control(topics.ActionCancel)), "a cancel is for the turn")
}

func TestTargetThatIsNoLongerConfiguredIsNotTold(t *testing.T) {
	for _, input := range []string{asking, askingPeer} {
		p := newHarness(t)
		p.Handle(p.callOf(SendTool, "a", input, from(chat("t1", "U1"))))
		p.agents, p.config.Agents, p.config.Peers = nil, nil, false
		es := p.advance(10 * time.Minute)
		require.Equal(t, []topics.DelegationStatus{topics.DelegationTimedOut}, statuses(es))
		require.Len(t, callbacks(es), 1)
		require.Empty(t, machinetest.Values[topics.Control](es))
		require.Empty(t, machinetest.Values[topics.PeerCommand](es))
	}
}

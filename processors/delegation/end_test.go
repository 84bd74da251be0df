package delegation

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/topics"
)

// statuses returns how the delegations ended, in order.
func statuses(es effects) (list []topics.DelegationStatus) {
	for _, d := range valuesOf[statusWritten](es) {
		if d.Status != topics.DelegationOpen {
			list = append(list, d.Status)
		}
	}
	return list
}

func TestOutputOfATaskIsReturnedToItsCaller(t *testing.T) {
	caller := newHarness(t)
	s := sent(t, caller.handle(caller.delegation("a")))
	target := newHarness(t, func(c *Config) { c.Agents = []string{"front"} })
	target.agent = "research"
	target.key = *s.Message.SessionID
	route := func(o *topics.Output) {
		o.ReplyTo = topics.DelegationRoute(memberOf(t, s.Message.Metadata, topics.MetaTask))
	}
	es := target.handle(target.output(textOf(t, s.Message.Metadata, "request_id"), "42 boats", route))
	require.Len(t, es, 1)
	require.Equal(t, "s1", es[0].(emit).Key, "the key is the caller's session")
	r := onlyValue[replySent](t, es)
	require.Equal(t, "front", r.Agent)
	require.Nil(t, target.state(), "it needs no row")
	require.Equal(t, "42 boats", onlyCallback(t, caller.handle(caller.reply(r.Reply))).result())

	status := "error"
	es = target.handle(target.output("x", "ignored", route, func(o *topics.Output) {
		o.Status, o.Error = &status, &topics.OutputError{Code: topics.CodeThinkFailed, Message: "The model is down."}
	}))
	reply := onlyValue[replySent](t, es).Reply
	require.Equal(t, topics.DelegationFailed, reply.Status)
	require.Equal(t, "think_failed", reply.Code)
	require.Equal(t, "The model is down.", reply.Content)
	es = target.handle(target.output("x", "ignored", route, func(o *topics.Output) {
		o.Status, o.Error = &status, &topics.OutputError{Code: topics.CodeEmptyResponse, Message: "empty"}
	}))
	reply = onlyValue[replySent](t, es).Reply
	require.Equal(t, topics.DelegationCompleted, reply.Status, "an agent that returned no text")
	require.Empty(t, reply.Content+reply.Code)

	target.config.Agents = nil
	require.Equal(t, reasonCaller, letter(t, target.handle(target.output("x", "x", route))))
	require.Equal(t, reasonTask, letter(t, target.handle(target.output("x", "x", func(o *topics.Output) {
		o.ReplyTo = topics.DelegationRoute(topics.Raw(`{"agent":"front"}`))
	}))))
	require.Empty(t, target.handle(target.output("x", "x", func(o *topics.Output) {
		o.ReplyTo = topics.OriginRoute(topics.EncodeOrigin(chat("t", "U")), nil)
	})), "an output for a channel is for deliveries")
}

func TestFirstEndCounts(t *testing.T) {
	p := newHarness(t)
	task := sent(t, p.handle(p.delegation("a")))
	first := p.handle(p.completed(task, "42 boats"))
	require.Equal(t, []topics.DelegationStatus{topics.DelegationCompleted}, statuses(first))
	require.Empty(t, valuesOf[taskCancelled](first))
	row := p.row
	require.Empty(t, p.handle(p.completed(task, "42 boats")), "a repeat")
	require.Empty(t, p.handle(p.completed(task, "43 boats")), "another end")
	require.Equal(t, row, p.row)
	p.now = p.now.Add(23 * time.Hour)
	require.Empty(t, p.handle(p.completed(task, "42 boats")))
}

func TestReplyOfAnotherSessionIsDeadLettered(t *testing.T) {
	p := newHarness(t)
	task := taskOf(t, sent(t, p.handle(p.delegation("a"))))
	es := p.handle(p.reply(topics.DelegationReply{SessionID: "s2", CallbackID: task.CallbackID, Status: topics.DelegationCompleted}))
	require.Equal(t, reasonForeign, letter(t, es))
	require.Equal(t, delegationrow.Task_OPEN, p.state().Tasks[0].Phase)
}

func TestTimeoutAndCompletionInBothOrders(t *testing.T) {
	for _, completedFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("completed first ", completedFirst), func(t *testing.T) {
			p := newHarness(t)
			task := sent(t, p.handle(p.delegation("a")))
			p.now = p.now.Add(10 * time.Minute)
			es := p.handle(deadlineCame{p.key})
			timeout := p.reply(onlyValue[replySent](t, es).Reply)
			require.Len(t, es, 1, "the deadline alone ends nothing")
			replies := []event{timeout, p.completed(task, "42 boats")}
			if completedFirst {
				replies[0], replies[1] = replies[1], replies[0]
			}
			end := p.handle(replies[0])
			require.Empty(t, p.handle(replies[1]))
			c := onlyCallback(t, end)
			if completedFirst {
				require.Equal(t, "42 boats", c.result())
				require.Empty(t, valuesOf[taskCancelled](end))
				return
			}
			require.Equal(t, "The task was not finished within 10m0s.", c.result())
			require.Equal(t, topics.DelegationTimedOut, c.note.Status)
			cancel := onlyValue[taskCancelled](t, end)
			require.Equal(t, "research", cancel.Agent)
			require.Equal(t, textOf(t, task.Message.Metadata, "request_id"), *cancel.Control.RequestID)
			for _, e := range end {
				if _, ok := e.(emit).Value.(taskCancelled); ok {
					require.Equal(t, *task.Message.SessionID, e.(emit).Key, "in the session of the task")
				}
			}
		})
	}
}

func TestEndIsAskedForAgainUntilItIsRead(t *testing.T) {
	p := newHarness(t)
	p.handle(p.delegation("a"))
	p.now = p.now.Add(10 * time.Minute)
	first := p.handle(deadlineCame{p.key})
	p.now = p.now.Add(writeAgain - time.Millisecond)
	require.Empty(t, p.handle(deadlineCame{p.key}))
	p.now = p.now.Add(time.Millisecond)
	require.Equal(t, first, p.handle(deadlineCame{p.key}), "the same record")
}

func TestCancelAndCompletionInBothOrders(t *testing.T) {
	for _, completedFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("completed first ", completedFirst), func(t *testing.T) {
			p := newHarness(t)
			task := sent(t, p.handle(p.delegation("a")))
			es := p.handle(p.cancellation("b", "a"))
			require.Len(t, es, 1, "the call is answered when the end is read")
			cancel := p.reply(onlyValue[replySent](t, es).Reply)
			replies := []event{cancel, p.completed(task, "42 boats")}
			if completedFirst {
				replies[0], replies[1] = replies[1], replies[0]
			}
			all := append(p.handle(replies[0]), p.handle(replies[1])...)
			c := onlyCallback(t, all)
			a := onlyValue[callAnswered](t, all)
			require.Equal(t, "b", *a.ToolUseID)
			require.Equal(t, CancelTool, *a.Name)
			require.EqualValues(t, 1, a.TotalTools)
			_, result := answerOf(t, all)
			if completedFirst {
				require.Equal(t, "It had ended already: completed.", textOf(t, result, "message"))
				require.Equal(t, "42 boats", c.result())
				require.Empty(t, valuesOf[taskCancelled](all))
			} else {
				require.Equal(t, "cancelled", textOf(t, result, "status"))
				require.Equal(t, "The delegation was cancelled.", textOf(t, result, "message"))
				require.Equal(t, topics.DelegationCancelled, c.note.Status)
				onlyValue[taskCancelled](t, all)
			}
			again := p.settle(p.cancellation("b", "a"))
			require.Equal(t, a, onlyValue[callAnswered](t, again), "a repeat of the call gets the same answer")
			_, result = answerOf(t, p.settle(p.cancellation("c", "a")))
			require.Contains(t, textOf(t, result, "message"), "It had ended already: ")
		})
	}
}

func TestOtherSessionsCannotCancel(t *testing.T) {
	p, other := newHarness(t), newHarness(t)
	other.key = "s2"
	s := sent(t, p.handle(p.delegation("a")))
	requireFailed(t, other.handle(other.cancellation("b", "a")), failMissing)
	other.handle(other.delegation("a"))
	cancelled := onlyValue[taskCancelled](t, other.settle(other.cancellation("b", "a")))
	require.NotEqual(t, textOf(t, s.Message.Metadata, "request_id"), *cancelled.Control.RequestID, "only its own")
	require.Equal(t, "42 boats", onlyCallback(t, p.handle(p.completed(s, "42 boats"))).result())
}

func TestPurgeEndsDelegationsWithoutAnnouncements(t *testing.T) {
	p := newHarness(t)
	a, b := sent(t, p.handle(p.delegation("a"))), sent(t, p.handle(p.delegation("b")))
	p.handle(p.delegation("c"))
	p.handle(p.delegation("d"))
	first := onlyCallback(t, p.handle(p.completed(a, "A")))
	p.handle(p.completed(b, "a secret"))
	es := p.handle(p.control(topics.ActionPurge))
	require.Len(t, valuesOf[replySent](es), 2)
	require.NotContains(t, string(p.row), "a secret")
	require.NotContains(t, string(p.row), "C1", "no origin")
	require.Empty(t, p.handle(p.control(topics.ActionPurge)), "a repeat")
	require.Empty(t, valuesOf[callbackSent](p.handle(p.output(first.request, "ok"))))
	requireFailed(t, p.handle(p.cancellation("x", "c")), failMissing)
	var end effects
	for _, r := range valuesOf[replySent](es) {
		end = append(end, p.handle(p.reply(r.Reply))...)
	}
	require.Equal(t, []topics.DelegationStatus{topics.DelegationCancelled, topics.DelegationCancelled}, statuses(end))
	require.Len(t, valuesOf[taskCancelled](end), 2)
	require.Empty(t, valuesOf[callbackSent](end))
	require.Empty(t, valuesOf[callbackSent](p.advance(2*time.Hour)))
	require.Nil(t, p.state())
}

func TestPurgedRowKeepsOnlyIDsForAnHour(t *testing.T) {
	p := newHarness(t)
	require.Empty(t, p.handle(p.control(topics.ActionPurge)))
	call := p.delegation("a")
	task := sent(t, p.handle(call))
	p.handle(p.completed(task, "A"))
	require.Empty(t, p.handle(p.control(topics.ActionPurge)))
	require.Empty(t, p.handle(call), "a call that is read again begins nothing")
	require.Empty(t, p.handle(p.completed(task, "A")))
	require.Empty(t, p.advance(time.Hour))
	require.Nil(t, p.state())
	p.handle(p.completed(sent(t, p.handle(p.delegation("b"))), "B"))
	p.now = p.now.Add(time.Hour)
	require.Empty(t, p.handle(p.control(topics.ActionPurge)))
	require.Nil(t, p.state())
	require.Empty(t, p.handle(p.control(topics.ActionCancel)), "a cancel is for the turn")
}

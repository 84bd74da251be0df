package peer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// A crash at least once returns the row to an older one. The group reads the records again, in another order of topics, and
// what it wrote is still there.

// ends returns what tells others how tasks ended, without repeats.
func ends(es effects) (list effects) {
	for _, m := range es {
		ok := true
		switch v := m.Value.(type) {
		case topics.PeerAudit:
			ok = v.Event == topics.PeerAcknowledged || v.Event == topics.PeerSendFailed
		case topics.PeerReply:
			ok = v.State == topics.PeerDone && v.Waiter == ""
		case topics.ToolUseResult:
		default:
			ok = false
		}
		if ok && !slices.ContainsFunc(list, func(o machine.Effect) bool { return o.ID == m.ID }) {
			list = append(list, m)
		}
	}
	return list
}

func TestEndThatIsReadBeforeItsCall(t *testing.T) {
	for name, input := range map[string]string{"sent": asking, "refused": `{"peerId":"nobody","content":"x"}`} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			call := p.delegation(callID, input)
			first := p.Handle(call)
			if len(machinetest.Values[topics.Delivery](first)) > 0 {
				p.Now = p.Now.Add(time.Second)
				first = append(first, p.Handle(p.replied(attemptOf(t, first)))...)
			}
			p.Now = p.Now.Add(time.Second)
			settle := p.own("", machinetest.Only[topics.PeerCommand](t, first))
			first = append(first, p.Handle(settle)...)
			require.Len(t, ends(first), 2)

			p.Row = nil
			p.Now = p.Now.Add(time.Minute)
			p.configure(func(s *Settings) { s.Outbound = s.Outbound[1:] })
			require.Empty(t, p.Handle(settle))
			require.Empty(t, p.Handle(settle))
			require.Empty(t, p.Handle(p.output("turn-1/1/answer/0", "bye")))
			again := p.Handle(call)
			require.Empty(t, machinetest.Values[topics.Delivery](again), "it is not begun again")
			require.Empty(t, machinetest.Values[topics.PeerCommand](again))
			require.Equal(t, ends(first).Records(), ends(again).Records())
			require.Equal(t, machinetest.Values[topics.PeerAudit](first)[0], machinetest.Values[topics.PeerAudit](again)[0], "sent comes before the end")
			require.Equal(t, machinetest.Values[topics.ToolUseResult](again), machinetest.Values[topics.ToolUseResult](p.Handle(call)))
			p.advance(25 * time.Hour)
			require.Nil(t, p.Read())
		})
	}
}

func TestFirstEndCountsAfterACrash(t *testing.T) {
	p := newHarness(t)
	first := p.Handle(p.proxied("t1", "w1"))
	a := attemptOf(t, first)
	saved := bytes.Clone(p.Row)
	replied := p.replied(a)
	settle := p.own("", machinetest.Only[topics.PeerCommand](t, p.Handle(replied)))
	first = p.Handle(settle)

	p.Row = saved
	cancelled := p.Handle(p.waiting(topics.PeerCancel, "t1", ""))
	cancellationOf(t, cancelled)
	require.Empty(t, p.Handle(replied), "the task is about to end")
	require.Equal(t, first.Records(), p.Handle(settle).Records())
	require.Empty(t, p.Handle(p.own("", machinetest.Only[topics.PeerCommand](t, cancelled))))
}

func TestCancellationThatIsReadAgainCancelsTheAttempt(t *testing.T) {
	p := newHarness(t)
	begin := p.proxied("t1", "w1")
	attemptOf(t, p.Handle(begin))
	settle := p.own("", machinetest.Only[topics.PeerCommand](t, p.Handle(p.waiting(topics.PeerCancel, "t1", ""))))
	p.Row = nil
	attemptOf(t, p.Handle(begin))
	cancellationOf(t, p.Handle(settle))
}

func TestEndIsWrittenAgainUntilItIsRead(t *testing.T) {
	p := newHarness(t)
	es := p.Handle(p.replied(attemptOf(t, p.Handle(p.delegation(callID, asking)))))
	settle := machinetest.Only[topics.PeerCommand](t, es)
	p.Now = p.Now.Add(writeAgain - time.Millisecond)
	require.Empty(t, p.Handle(deadlineCame{}))
	p.Now = p.Now.Add(time.Millisecond)
	require.Equal(t, es.Records(), p.Handle(deadlineCame{}).Records(), "with the same ID")
	require.Len(t, ends(p.Handle(p.own("", settle))), 2)
	require.Empty(t, p.Handle(p.own("", settle)))
}

func TestRepeatedEventsChangeNothing(t *testing.T) {
	p := newHarness(t)
	call, command := p.delegation(callID, asking), p.proxied("t1", "w1")
	a, b := attemptOf(t, p.Handle(call)), attemptOf(t, p.Handle(command))
	late := p.offline(a)
	require.Empty(t, p.Handle(late))
	for _, e := range []event{call, command, late} {
		before := p.Row
		require.Empty(t, p.Handle(e))
		require.Equal(t, before, p.Row)
	}
	first := p.settle(p.replied(b))
	require.Empty(t, p.settle(p.replied(b)))
	again := p.Handle(command)
	require.Len(t, again, 1, "the waiter is told")
	require.Equal(t, machinetest.Only[topics.PeerReply](t, first).Body, machinetest.Only[topics.PeerReply](t, again).Body)
}

func TestOldestTasksAreForgottenForNewOnes(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RecordLimit, c.RowLimit = 256<<10, 128<<10 })
	call := func(i int) called { return p.delegation(callID+strings.Repeat("x", i), asking) }
	for i := range 5 {
		p.settle(p.replied(attemptOf(t, p.Handle(call(i))), func(r *peerwire.Reply) { r.Result = strings.Repeat("x", 40<<10) }))
	}
	require.Len(t, p.Read().Tasks, 5)
	require.Empty(t, p.Handle(call(0)), "its reply is forgotten, and it is not begun again")
	require.Len(t, machinetest.Values[topics.ToolUseResult](p.Handle(call(4))), 1)

	large := `{"peerId":"tenant-a","content":"` + strings.Repeat("y", 127<<10) + `"}`
	attemptOf(t, p.Handle(p.delegation("turn-9/0/tool-use/0", large)))
	require.LessOrEqual(t, len(p.Read().Tasks), 6)
	requireFailed(t, p.settle(p.delegation("turn-9/0/tool-use/1", large)), peerwire.CodeNoRoom)
}

// Rows that are full of open tasks have room for all that can happen to them.
func TestFullRowOfOpenTasks(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RecordLimit, c.RowLimit, c.TaskLimit = 128<<10, 64<<10, 1000 })
	input := `{"peerId":"tenant-a","content":"x"}`
	var open []topics.Delivery
	for i := 0; len(p.Row)+i*taskReserve < 64<<10-700; i++ {
		open = append(open, attemptsOf(t, p.Handle(p.delegation(fmt.Sprint("turn-1/0/tool-use/", i), input)))...)
	}
	require.Greater(t, len(open), 50)
	full := bytes.Clone(p.Row)
	detail := strings.Repeat("d", maxDetail)
	for _, a := range open { // the harness checks the size of the row
		p.Handle(p.failedWith(a, 500, peerwire.Answer{Code: peerwire.CodePeerRefused, Detail: detail, Answered: true, Reached: true}))
	}
	p.advance(time.Minute)
	require.Len(t, machinetest.Values[topics.ToolUseResult](p.settle(p.output("turn-1/1/answer/0", "bye"))), len(open))

	p.Row = bytes.Clone(full)
	for _, a := range open {
		p.Handle(p.failedWith(a, 403, peerwire.Answer{Code: peerwire.CodePeerRefused, Detail: detail, Answered: true}))
	}

	p.Row = full
	for _, a := range open {
		p.settle(p.replied(a, func(r *peerwire.Reply) { r.Result = detail }))
	}
	p.advance(25 * time.Hour)
	require.Nil(t, p.Read())
}

func TestEndsThatWereReadEarlyAreForgottenLast(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RecordLimit, c.RowLimit = 256<<10, 128<<10 })
	call := p.delegation("turn-9/0/tool-use/0", asking)
	settle := p.own("", machinetest.Only[topics.PeerCommand](t, p.Handle(p.replied(attemptOf(t, p.Handle(call))))))
	first := p.Handle(settle)
	p.Row = nil
	require.Empty(t, p.Handle(settle))
	for i := range 5 {
		a := attemptOf(t, p.Handle(p.delegation(fmt.Sprint(callID, i), asking)))
		p.settle(p.replied(a, func(r *peerwire.Reply) { r.Result = strings.Repeat("x", 40<<10) }))
	}
	require.Len(t, p.Read().Tasks, 6)
	require.Nil(t, p.Read().Tasks[1].Outcome)
	require.Equal(t, ends(first).Records(), ends(p.Handle(call)).Records())
}

func TestEndThatWasReadEarlySurvivesAPurge(t *testing.T) {
	p := newHarness(t)
	call := p.delegation(callID, asking)
	settle := p.own("", machinetest.Only[topics.PeerCommand](t, p.Handle(p.replied(attemptOf(t, p.Handle(call))))))
	first := p.Handle(settle)
	p.Row = nil
	require.Empty(t, p.Handle(settle))
	require.Empty(t, p.Handle(p.control(topics.ActionPurge)))
	require.Equal(t, ends(first).Records(), ends(p.Handle(call)).Records(), "the call was answered with it before the crash")
	require.Nil(t, p.Read().Tasks[0].Outcome)
	require.Empty(t, p.Handle(call))
}

func TestTooManyEndedTasksAreForgotten(t *testing.T) {
	p := newHarness(t)
	for i := range maxEnded + 10 {
		p.settle(p.delegation(callID+strings.Repeat("x", i), `{"peerId":"nobody","content":"x"}`))
	}
	require.Len(t, p.Read().Tasks, maxEnded)
}

func TestTaskWithoutRoomForItsRefusalIsAnswered(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RecordLimit, c.RowLimit = 128<<10, 64<<10 })
	content := strings.Repeat("y", 64<<10-1500)
	attemptOf(t, p.Handle(p.delegation("turn-9/0/tool-use/0", `{"peerId":"tenant-a","content":"`+content+`"}`)))
	before := len(p.Read().Tasks)
	var es effects
	for i := 0; len(machinetest.Values[topics.ToolUseResult](es)) == 0; i++ { // small refusals fit until one does not
		require.Less(t, i, 20)
		es = p.Handle(p.delegation(callID+strings.Repeat("x", i), asking))
	}
	requireFailed(t, es, peerwire.CodeNoRoom)
	require.Equal(t, []topics.PeerEvent{topics.PeerSent, topics.PeerSendFailed}, events(es))
	require.Greater(t, len(p.Read().Tasks), before)
	reply := machinetest.Only[topics.PeerReply](t, p.Handle(p.proxied("t1", "w1")))
	require.Equal(t, topics.PeerNoRoom, reply.State)
	require.Equal(t, "w1", reply.Waiter)
}

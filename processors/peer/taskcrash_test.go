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
	"github.com/turntable-streams/turntable/topics"
)

// A crash at least once returns the row to an older one. The group reads the records again, in another order of topics, and
// what it wrote is still there.

// ends returns what tells others how tasks ended, without repeats.
func ends(es effects) (list effects) {
	for _, e := range es {
		m, ok := e.(emit)
		if !ok {
			continue
		}
		switch v := m.Value.(type) {
		case audited:
			ok = v.Event == topics.PeerAcknowledged || v.Event == topics.PeerSendFailed
		case replySent:
			ok = v.State == topics.PeerDone && v.Waiter == ""
		case toolAnswered:
		default:
			ok = false
		}
		if ok && !slices.ContainsFunc(list, func(o effect) bool { return o.(emit).ID == m.ID }) {
			list = append(list, e)
		}
	}
	return list
}

func TestEndThatIsReadBeforeItsCall(t *testing.T) {
	for name, input := range map[string]string{"sent": asking, "refused": `{"peerId":"nobody","content":"x"}`} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t)
			call := p.delegation(callID, input)
			first := p.handle(call)
			if len(valuesOf[attemptAsked](first)) > 0 {
				p.now = p.now.Add(time.Second)
				first = append(first, p.handle(p.replied(attemptOf(t, first)))...)
			}
			p.now = p.now.Add(time.Second)
			settle := p.own("", onlyValue[asked](t, first))
			first = append(first, p.handle(settle)...)
			require.Len(t, ends(first), 2)

			p.row = nil
			p.now = p.now.Add(time.Minute)
			p.configure(func(s *Settings) { s.Outbound = s.Outbound[1:] })
			require.Empty(t, p.handle(settle))
			require.Empty(t, p.handle(settle))
			require.Empty(t, p.handle(p.output("turn-1/1/answer/0", "bye")))
			again := p.handle(call)
			require.Empty(t, valuesOf[attemptAsked](again), "it is not begun again")
			require.Empty(t, valuesOf[asked](again))
			require.Equal(t, ends(first), ends(again))
			require.Equal(t, valuesOf[audited](first)[0], valuesOf[audited](again)[0], "sent comes before the end")
			require.Equal(t, valuesOf[toolAnswered](again), valuesOf[toolAnswered](p.handle(call)))
			p.advance(25 * time.Hour)
			require.Nil(t, p.state())
		})
	}
}

func TestFirstEndCountsAfterACrash(t *testing.T) {
	p := newHarness(t)
	first := p.handle(p.proxied("t1", "w1"))
	a := attemptOf(t, first)
	saved := bytes.Clone(p.row)
	replied := p.replied(a)
	settle := p.own("", onlyValue[asked](t, p.handle(replied)))
	first = p.handle(settle)

	p.row = saved
	cancelled := p.handle(p.waiting(topics.PeerCancel, "t1", ""))
	cancellationOf(t, cancelled)
	require.Empty(t, p.handle(replied), "the task is about to end")
	require.Equal(t, first, p.handle(settle))
	require.Empty(t, p.handle(p.own("", onlyValue[asked](t, cancelled))))
}

func TestCancellationThatIsReadAgainCancelsTheAttempt(t *testing.T) {
	p := newHarness(t)
	begin := p.proxied("t1", "w1")
	attemptOf(t, p.handle(begin))
	settle := p.own("", onlyValue[asked](t, p.handle(p.waiting(topics.PeerCancel, "t1", ""))))
	p.row = nil
	attemptOf(t, p.handle(begin))
	cancellationOf(t, p.handle(settle))
}

func TestEndIsWrittenAgainUntilItIsRead(t *testing.T) {
	p := newHarness(t)
	es := p.handle(p.replied(attemptOf(t, p.handle(p.delegation(callID, asking)))))
	settle := onlyValue[asked](t, es)
	p.now = p.now.Add(writeAgain - time.Millisecond)
	require.Empty(t, p.handle(deadlineCame{p.key}))
	p.now = p.now.Add(time.Millisecond)
	require.Equal(t, es, p.handle(deadlineCame{p.key}), "with the same ID")
	require.Len(t, ends(p.handle(p.own("", settle))), 2)
	require.Empty(t, p.handle(p.own("", settle)))
}

func TestRepeatedEventsChangeNothing(t *testing.T) {
	p := newHarness(t)
	call, command := p.delegation(callID, asking), p.proxied("t1", "w1")
	a, b := attemptOf(t, p.handle(call)), attemptOf(t, p.handle(command))
	late := p.offline(a)
	require.Empty(t, p.handle(late))
	for _, e := range []event{call, command, late} {
		before := p.row
		require.Empty(t, p.handle(e))
		require.Equal(t, before, p.row)
	}
	first := p.settle(p.replied(b))
	require.Empty(t, p.settle(p.replied(b)))
	again := p.handle(command)
	require.Len(t, again, 1, "the waiter is told")
	require.Equal(t, onlyValue[replySent](t, first).Body, onlyValue[replySent](t, again).Body)
}

func TestOldestTasksAreForgottenForNewOnes(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RecordLimit, c.RowLimit = 256<<10, 128<<10 })
	call := func(i int) called { return p.delegation(callID+strings.Repeat("x", i), asking) }
	for i := range 5 {
		p.settle(p.replied(attemptOf(t, p.handle(call(i))), func(r *peerwire.Reply) { r.Result = strings.Repeat("x", 40<<10) }))
	}
	require.Len(t, p.state().Tasks, 5)
	require.Empty(t, p.handle(call(0)), "its reply is forgotten, and it is not begun again")
	require.Len(t, valuesOf[toolAnswered](p.handle(call(4))), 1)

	large := `{"peerId":"tenant-a","content":"` + strings.Repeat("y", 127<<10) + `"}`
	attemptOf(t, p.handle(p.delegation("turn-9/0/tool-use/0", large)))
	require.LessOrEqual(t, len(p.state().Tasks), 6)
	requireFailed(t, p.settle(p.delegation("turn-9/0/tool-use/1", large)), peerwire.CodeNoRoom)
}

// Rows that are full of open tasks have room for all that can happen to them.
func TestFullRowOfOpenTasks(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RecordLimit, c.RowLimit, c.TaskLimit = 128<<10, 64<<10, 1000 })
	input := `{"peerId":"tenant-a","content":"x"}`
	var open []attemptAsked
	for i := 0; len(p.row)+i*taskReserve < 64<<10-700; i++ {
		open = append(open, attemptsOf(t, p.handle(p.delegation(fmt.Sprint("turn-1/0/tool-use/", i), input)))...)
	}
	require.Greater(t, len(open), 50)
	full := bytes.Clone(p.row)
	detail := strings.Repeat("d", maxDetail)
	for _, a := range open { // the harness checks the size of the row
		p.handle(p.failedWith(a, 500, peerwire.Answer{Code: peerwire.CodePeerRefused, Detail: detail, Answered: true, Reached: true}))
	}
	p.advance(time.Minute)
	require.Len(t, valuesOf[toolAnswered](p.settle(p.output("turn-1/1/answer/0", "bye"))), len(open))

	p.row = bytes.Clone(full)
	for _, a := range open {
		p.handle(p.failedWith(a, 403, peerwire.Answer{Code: peerwire.CodePeerRefused, Detail: detail, Answered: true}))
	}

	p.row = full
	for _, a := range open {
		p.settle(p.replied(a, func(r *peerwire.Reply) { r.Result = detail }))
	}
	p.advance(25 * time.Hour)
	require.Nil(t, p.state())
}

func TestEndsThatWereReadEarlyAreForgottenLast(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RecordLimit, c.RowLimit = 256<<10, 128<<10 })
	call := p.delegation("turn-9/0/tool-use/0", asking)
	settle := p.own("", onlyValue[asked](t, p.handle(p.replied(attemptOf(t, p.handle(call))))))
	first := p.handle(settle)
	p.row = nil
	require.Empty(t, p.handle(settle))
	for i := range 5 {
		a := attemptOf(t, p.handle(p.delegation(fmt.Sprint(callID, i), asking)))
		p.settle(p.replied(a, func(r *peerwire.Reply) { r.Result = strings.Repeat("x", 40<<10) }))
	}
	require.Len(t, p.state().Tasks, 6)
	require.Nil(t, p.state().Tasks[1].Outcome)
	require.Equal(t, ends(first), ends(p.handle(call)))
}

func TestEndThatWasReadEarlySurvivesAPurge(t *testing.T) {
	p := newHarness(t)
	call := p.delegation(callID, asking)
	settle := p.own("", onlyValue[asked](t, p.handle(p.replied(attemptOf(t, p.handle(call))))))
	first := p.handle(settle)
	p.row = nil
	require.Empty(t, p.handle(settle))
	require.Empty(t, p.handle(p.control(topics.ActionPurge)))
	require.Equal(t, ends(first), ends(p.handle(call)), "the call was answered with it before the crash")
	require.Nil(t, p.state().Tasks[0].Outcome)
	require.Empty(t, p.handle(call))
}

func TestTooManyEndedTasksAreForgotten(t *testing.T) {
	p := newHarness(t)
	for i := range maxEnded + 10 {
		p.settle(p.delegation(callID+strings.Repeat("x", i), `{"peerId":"nobody","content":"x"}`))
	}
	require.Len(t, p.state().Tasks, maxEnded)
}

func TestTaskWithoutRoomForItsRefusalIsAnswered(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RecordLimit, c.RowLimit = 128<<10, 64<<10 })
	content := strings.Repeat("y", 64<<10-1500)
	attemptOf(t, p.handle(p.delegation("turn-9/0/tool-use/0", `{"peerId":"tenant-a","content":"`+content+`"}`)))
	before := len(p.state().Tasks)
	var es effects
	for i := 0; len(valuesOf[toolAnswered](es)) == 0; i++ { // small refusals fit until one does not
		require.Less(t, i, 20)
		es = p.handle(p.delegation(callID+strings.Repeat("x", i), asking))
	}
	requireFailed(t, es, peerwire.CodeNoRoom)
	require.Equal(t, []topics.PeerEvent{topics.PeerSent, topics.PeerSendFailed}, events(es))
	require.Greater(t, len(p.state().Tasks), before)
	reply := onlyValue[replySent](t, p.handle(p.proxied("t1", "w1")))
	require.Equal(t, topics.PeerNoRoom, reply.State)
	require.Equal(t, "w1", reply.Waiter)
}

package delegation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestEndsThatAreReadBeforeTheirCall(t *testing.T) {
	p := newHarness(t)
	call := p.delegation("a")
	first := p.handle(call)
	done := p.completed(sent(t, first), "42 boats")
	first = append(first, p.handle(done)...)

	p.row = nil // a crash
	require.Empty(t, p.handle(done))
	require.Empty(t, p.handle(done), "a repeat")
	require.Empty(t, p.handle(p.completed(sent(t, first), "43 boats")), "the first one counts")
	require.Len(t, p.state().Early, 1)
	p.now = p.now.Add(time.Minute)
	call.At = first0(first)
	again := p.handle(call)
	require.Equal(t, first, again)
	require.Empty(t, p.state().Early)
}

// first0 is the time of the harness when it began.
func first0(effects) time.Time { return time.UnixMilli(1_790_000_000_000).UTC() }

func TestCancelThatIsReadBeforeItsCall(t *testing.T) {
	p := newHarness(t)
	call, cancel := p.delegation("a"), p.cancellation("b", "a")
	p.handle(call)
	es := p.handle(cancel)
	reply := p.reply(onlyValue[replySent](t, es).Reply)
	first := p.handle(reply)

	p.row = nil
	require.Empty(t, p.handle(reply))
	again := p.handle(call)
	require.Equal(t, onlyValue[callbackSent](t, first), onlyValue[callbackSent](t, again))
	require.Contains(t, valuesOf[callAnswered](again), onlyValue[callAnswered](t, first))
	require.Equal(t, onlyValue[callAnswered](t, first), onlyValue[callAnswered](t, p.settle(cancel)))
}

func TestEarlyEndsAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ limit, size, want int }{"count": {5, 1, 5}, "room": {500, 50 << 10, 20}} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t, func(config *Config) { config.RecordLimit, config.RowLimit, config.OpenLimit = 128<<10, 64<<10, c.limit })
			var es effects
			for i := 0; len(es) == 0; i++ {
				require.Less(t, i, 200)
				es = p.handle(p.reply(topics.DelegationReply{
					SessionID: "s1", CallbackID: fmt.Sprint("a/", i), Status: topics.DelegationCompleted, Content: strings.Repeat("x", c.size),
				}))
			}
			require.Equal(t, reasonNoRoom, letter(t, es))
			require.GreaterOrEqual(t, len(p.state().Early), c.want, "long ones are cut")
			p.advance(earlyFor)
			require.Nil(t, p.state())
		})
	}
}

func TestEarlyEndSurvivesAPurgeWithoutItsText(t *testing.T) {
	p := newHarness(t)
	call := p.delegation("a")
	done := p.completed(sent(t, p.handle(call)), "a secret")
	p.row = nil
	p.handle(done)
	p.handle(p.control(topics.ActionPurge))
	require.NotContains(t, string(p.row), "a secret")
	es := p.handle(call)
	require.Equal(t, []topics.DelegationStatus{topics.DelegationCompleted}, statuses(es), "it does not end again at its deadline")
	require.Empty(t, valuesOf[callbackSent](es))
}

// After a crash, the output of a callback message may be read before the reply that the message announces.
func TestOutputThatIsReadBeforeItsMessageIsNotAwaited(t *testing.T) {
	p := newHarness(t)
	a, b := sent(t, p.handle(p.delegation("a"))), sent(t, p.handle(p.delegation("b")))
	row := p.row
	doneA, doneB := p.completed(a, "A"), p.completed(b, "B")
	output := p.output(onlyCallback(t, p.handle(doneA)).request, "ok")
	p.handle(output)

	p.row = row
	require.Empty(t, p.handle(output))
	require.Empty(t, p.handle(output))
	require.Equal(t, "A", onlyCallback(t, p.handle(doneA)).result(), "the turn knows its ID")
	require.Equal(t, "B", onlyCallback(t, p.handle(doneB)).result(), "at once")
	for i := range 2 * maxAnswered {
		p.handle(p.output(fmt.Sprint("callback/", i, strings.Repeat("x", 200)), "ok"))
	}
	require.Len(t, p.state().Answered, maxAnswered)
}

// After a crash, a call may be read again when an older delegation with its tool_use_id is forgotten. It must not be run twice.
func TestCallThatGetsAnotherIDAfterACrashIsTheSameTask(t *testing.T) {
	for _, input := range []string{asking, askingPeer} {
		p := newHarness(t)
		p.handle(p.completed(sent(t, p.handle(p.delegation("call_0"))), "old"))
		row := p.row
		call := p.callOf(SendTool, "call_0", input, from(chat("t2", "U2")))
		call.ID = "turn-2"
		first := p.handle(call)
		_, result := answerOf(t, first)
		require.Regexp(t, "^call_0~", textOf(t, result, "callback_id"))

		p.row = row // a crash
		p.advance(25 * time.Hour)
		require.Nil(t, p.state().GetTasks())
		again := p.handle(call)
		if input == askingPeer {
			require.Equal(t, onlyValue[peerAsked](t, first).TaskID, onlyValue[peerAsked](t, again).TaskID)
			continue
		}
		require.Equal(t, messageOf(t, first), messageOf(t, again), "the target knows the ID of the record")
		done := p.handle(p.completed(sent(t, first), "42 boats"))
		require.Equal(t, "t2", onlyCallback(t, done).origin.Thread, "its reply ends the delegation")
	}
}

// messageOf returns the ID and the key of the message of a task.
func messageOf(t *testing.T, es effects) (id [2]string) {
	t.Helper()
	for _, e := range es {
		if m, ok := e.(emit); ok {
			if _, ok := m.Value.(taskSent); ok {
				id = [2]string{m.ID, m.Key}
			}
		}
	}
	require.NotEmpty(t, id[0])
	return id
}

// The reply may be of a delegation that is forgotten long since: no call comes for it.
func TestEarlyEndDoesNotShortenResultsThatWait(t *testing.T) {
	p := newHarness(t)
	a, b := sent(t, p.handle(p.delegation("a"))), sent(t, p.handle(p.delegation("b")))
	p.handle(p.completed(a, "A"))
	p.handle(p.completed(b, strings.Repeat("b", maxAnnounced)))
	p.handle(p.reply(topics.DelegationReply{
		SessionID: "s1", CallbackID: "forgotten", Status: topics.DelegationCompleted, Content: strings.Repeat("x", 1_000_000),
	}))
	require.Len(t, p.state().Pending[0].Text, maxAnnounced)
	require.Greater(t, len(p.state().Early[0].Content), 800_000, "it is cut itself")
}

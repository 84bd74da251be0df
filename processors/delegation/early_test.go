package delegation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

func TestEndsThatAreReadBeforeTheirCall(t *testing.T) {
	p := newHarness(t)
	call := p.delegation("a")
	first := p.Handle(call)
	done := p.completed(sent(t, first), "42 boats")
	first = append(first, p.Handle(done)...)

	p.Row = nil // a crash
	require.Empty(t, p.Handle(done))
	require.Empty(t, p.Handle(done), "a repeat")
	require.Empty(t, p.Handle(p.completed(sent(t, first), "43 boats")), "the first one counts")
	require.Len(t, p.Read().Early, 1)
	p.Now = p.Now.Add(time.Minute)
	call.At = start
	again := p.Handle(call)
	require.Equal(t, first.Records(), again.Records())
	require.Empty(t, p.Read().Early)
}

func TestCancelThatIsReadBeforeItsCall(t *testing.T) {
	p := newHarness(t)
	call, cancel := p.delegation("a"), p.cancellation("b", "a")
	p.Handle(call)
	es := p.Handle(cancel)
	reply := p.reply(machinetest.Only[topics.DelegationReply](t, es))
	first := p.Handle(reply)

	p.Row = nil
	require.Empty(t, p.Handle(reply))
	again := p.Handle(call)
	require.Equal(t, onlyMessage(t, first), onlyMessage(t, again))
	require.Contains(t, machinetest.Values[topics.ToolUseResult](again), machinetest.Only[topics.ToolUseResult](t, first))
	require.Equal(t, machinetest.Only[topics.ToolUseResult](t, first), machinetest.Only[topics.ToolUseResult](t, p.settle(cancel)))
}

func TestEarlyEndsAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ limit, size, want int }{"count": {5, 1, 5}, "room": {500, 50 << 10, 20}} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t, func(config *Config) { config.RecordLimit, config.RowLimit, config.OpenLimit = 128<<10, 64<<10, c.limit })
			var es effects
			for i := 0; len(es) == 0; i++ {
				require.Less(t, i, 200)
				es = p.Handle(p.reply(topics.DelegationReply{
					SessionID: "s1", CallbackID: fmt.Sprint("a/", i), Status: topics.DelegationCompleted, Content: strings.Repeat("x", c.size),
				}))
			}
			require.Equal(t, reasonNoRoom, letter(t, es))
			require.GreaterOrEqual(t, len(p.Read().Early), c.want, "long ones are cut")
			p.advance(earlyFor)
			require.Nil(t, p.Read())
		})
	}
}

func TestEarlyEndSurvivesAPurgeWithoutItsText(t *testing.T) {
	p := newHarness(t)
	call := p.delegation("a")
	done := p.completed(sent(t, p.Handle(call)), "a secret")
	p.Row = nil
	p.Handle(done)
	p.Handle(p.control(topics.ActionPurge))
	require.NotContains(t, string(p.Row), "a secret")
	es := p.Handle(call)
	require.Equal(t, []topics.DelegationStatus{topics.DelegationCompleted}, statuses(es), "it does not end again at its deadline")
	require.Empty(t, callbacks(es))
}

// After a crash, the output of a callback message may be read before the reply that the message announces.
func TestOutputThatIsReadBeforeItsMessageIsNotAwaited(t *testing.T) {
	p := newHarness(t)
	a, b := sent(t, p.Handle(p.delegation("a"))), sent(t, p.Handle(p.delegation("b")))
	row := p.Row
	doneA, doneB := p.completed(a, "A"), p.completed(b, "B")
	output := p.output(onlyCallback(t, p.Handle(doneA)).request, "ok")
	p.Handle(output)

	p.Row = row
	require.Empty(t, p.Handle(output))
	require.Empty(t, p.Handle(output))
	require.Equal(t, "A", onlyCallback(t, p.Handle(doneA)).result(), "the turn knows its ID")
	require.Equal(t, "B", onlyCallback(t, p.Handle(doneB)).result(), "at once")
	for i := range 2 * maxAnswered {
		p.Handle(p.output(fmt.Sprint("callback/", i, strings.Repeat("x", 200)), "ok"))
	}
	require.Len(t, p.Read().Answered, maxAnswered)
}

// After a crash, a call may be read again when an older delegation with its tool_use_id is forgotten. It must not be run twice.
func TestCallThatGetsAnotherIDAfterACrashIsTheSameTask(t *testing.T) {
	for _, input := range []string{asking, askingPeer} {
		p := newHarness(t)
		p.Handle(p.completed(sent(t, p.Handle(p.delegation("call_0"))), "old"))
		row := p.Row
		call := p.callOf(SendTool, "call_0", input, from(chat("t2", "U2")))
		call.ID = "turn-2"
		first := p.Handle(call)
		_, result := answerOf(t, first)
		require.Regexp(t, "^call_0~", textOf(t, result, "callback_id"))

		p.Row = row // a crash
		p.advance(25 * time.Hour)
		require.Nil(t, p.Read().GetTasks())
		again := p.Handle(call)
		if input == askingPeer {
			require.Equal(t, machinetest.Only[topics.PeerCommand](t, first).TaskID, machinetest.Only[topics.PeerCommand](t, again).TaskID)
			continue
		}
		require.Equal(t, messageOf(t, first), messageOf(t, again), "the target knows the ID of the record")
		done := p.Handle(p.completed(sent(t, first), "42 boats"))
		require.Equal(t, "t2", onlyCallback(t, done).origin.Thread, "its reply ends the delegation")
	}
}

// messageOf returns the ID and the key of the message of a task.
func messageOf(t *testing.T, es effects) [2]string {
	t.Helper()
	s := sent(t, es)
	return [2]string{s.ID, s.Key}
}

// The reply may be of a delegation that is forgotten long since: no call comes for it.
func TestEarlyEndDoesNotShortenResultsThatWait(t *testing.T) {
	p := newHarness(t)
	a, b := sent(t, p.Handle(p.delegation("a"))), sent(t, p.Handle(p.delegation("b")))
	p.Handle(p.completed(a, "A"))
	p.Handle(p.completed(b, strings.Repeat("b", maxAnnounced)))
	p.Handle(p.reply(topics.DelegationReply{
		SessionID: "s1", CallbackID: "forgotten", Status: topics.DelegationCompleted, Content: strings.Repeat("x", 1_000_000),
	}))
	require.Len(t, p.Read().Pending[0].Text, maxAnnounced)
	require.Greater(t, len(p.Read().Early[0].Content), 800_000, "it is cut itself")
}

package channel

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
	reply := p.reply(onlyValue[ReplySent](t, es).Reply)
	first := p.handle(reply)

	p.row = nil
	require.Empty(t, p.handle(reply))
	again := p.handle(call)
	require.Equal(t, onlyValue[CallbackSent](t, first), onlyValue[CallbackSent](t, again))
	require.Contains(t, valuesOf[CallAnswered](again), onlyValue[CallAnswered](t, first))
	require.Equal(t, onlyValue[CallAnswered](t, first), onlyValue[CallAnswered](t, p.settle(cancel)))
}

func TestEarlyEndsAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ limit, size, want int }{"count": {5, 1, 5}, "room": {500, 50 << 10, 20}} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t, func(r *Rules) { r.RecordLimit, r.RowLimit, r.OpenLimit = 128<<10, 64<<10, c.limit })
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
	require.Empty(t, valuesOf[CallbackSent](es))
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

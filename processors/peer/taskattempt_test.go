package peer

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// interrupted returns the receipt of an attempt that the sink ended.
func (p *harness) interrupted(a topics.Delivery) receipted {
	p.TB.Helper()
	return p.receipt(a, topics.OutcomeFailed, peerwire.Answer{}, func(r *topics.Receipt) {
		reason := topics.ReasonInterrupted
		r.Reason, r.Response = &reason, nil
	})
}

// next moves the clock to the next deadline and returns what it brings.
func (p *harness) next() effects {
	p.TB.Helper()
	at, ok := p.Deadline()
	require.True(p.TB, ok)
	return p.advance(at.Sub(p.Now))
}

func TestFailuresAreRetriedOrFinal(t *testing.T) {
	for name, test := range map[string]struct {
		status  int64
		answer  peerwire.Answer
		outcome topics.Outcome
		retried bool
		repeat  bool
		code    peerwire.Code // default: that of the answer
	}{
		"unreachable":      {answer: peerwire.Answer{Code: peerwire.CodeUnreachable}, retried: true},
		"connection lost":  {answer: peerwire.Answer{Code: peerwire.CodeUnreachable, Reached: true}, retried: true, repeat: true},
		"timeout":          {answer: peerwire.Answer{Code: peerwire.CodeTimeout, Reached: true}, retried: true, repeat: true},
		"status 500":       {status: 500, answer: peerwire.Answer{Code: peerwire.CodePeerRefused, Answered: true, Reached: true}, retried: true, repeat: true},
		"status 502":       {status: 502, answer: peerwire.Answer{Code: peerwire.CodeMalformed, Answered: true}, retried: true},
		"status 429":       {status: 429, answer: peerwire.Answer{Code: peerwire.CodePeerBusy, Answered: true}, retried: true},
		"status 503":       {status: 503, answer: peerwire.Answer{Code: peerwire.CodePeerBusy, Answered: true}, retried: true},
		"status 400":       {status: 400, answer: peerwire.Answer{Code: peerwire.CodePeerRefused, Answered: true}},
		"status 401":       {status: 401, answer: peerwire.Answer{Code: peerwire.CodePeerRefused, Answered: true}},
		"status 409":       {status: 409, answer: peerwire.Answer{Code: peerwire.CodePeerRefused, Answered: true}},
		"malformed 200":    {status: 200, answer: peerwire.Answer{Code: peerwire.CodeMalformed, Answered: true, Reached: true}},
		"outcome unknown":  {answer: peerwire.Answer{Code: peerwire.CodeOutcomeUnknown}},
		"peer was removed": {answer: peerwire.Answer{Code: peerwire.CodeUnknownPeer}},
		"refused":          {answer: peerwire.Answer{Code: peerwire.CodeUnreachable}, outcome: topics.OutcomeRefused},
		"reply to another task": {
			status: 200, answer: peerwire.Answer{Reply: peerwire.Reply{TaskID: "other", Status: peerwire.StatusSuccess}.Body(), Answered: true, Reached: true},
			outcome: topics.OutcomeDelivered, code: peerwire.CodeMalformed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.code == "" {
				test.code = test.answer.Code
			}
			if test.outcome == "" {
				test.outcome = topics.OutcomeFailed
			}
			fail := func(p *harness, a topics.Delivery) receipted {
				return p.receipt(a, test.outcome, test.answer, func(r *topics.Receipt) { r.Status = test.status })
			}
			p := newHarness(t)
			es := p.settle(fail(p, attemptOf(t, p.Handle(p.delegation(callID, asking)))))
			if test.retried {
				require.Empty(t, es)
				a := attemptOf(t, p.next())
				require.EqualValues(t, 2, a.Attempt)
				require.Equal(t, test.repeat, sent(t, a).Repeat)
			} else {
				requireFailed(t, es, test.code)
				end := machinetest.Only[topics.PeerAudit](t, es)
				require.Equal(t, topics.PeerSendFailed, end.Event)
				require.Equal(t, string(test.code), end.Code)
				require.Equal(t, test.status, end.HTTPStatus)
			}

			p = newHarness(t)
			es = p.settle(fail(p, attemptOf(t, p.Handle(p.proxied("t1", "w1", once)))))
			reply := machinetest.Only[topics.PeerReply](t, es)
			require.Equal(t, topics.PeerReply{
				TaskID: "t1", PeerID: "tenant-a", State: topics.PeerDone, Hash: reply.Hash, Code: string(test.code),
				HTTPStatus: test.status, Answered: test.answer.Answered,
			}, topics.PeerReply(reply), "one attempt only")
		})
	}
}

func TestReceiptWithoutAnAnswer(t *testing.T) {
	empty := func(reason string) func(*topics.Receipt) {
		return func(r *topics.Receipt) { r.Reason, r.Response = &reason, nil }
	}
	p := newHarness(t)
	a := attemptOf(t, p.Handle(p.delegation(callID, asking)))
	require.Empty(t, p.Handle(p.receipt(a, topics.OutcomeFailed, peerwire.Answer{}, empty("transport panicked"))))
	a = attemptOf(t, p.next())
	require.True(t, sent(t, a).Repeat, "the peer may have got the request")
	require.Empty(t, p.Handle(p.receipt(a, topics.OutcomeFailed, peerwire.Answer{}, empty("timeout"))))
	require.Equal(t, string(peerwire.CodeTimeout), p.Read().Tasks[0].Outcome.Code)
	a = attemptOf(t, p.next())
	es := p.settle(p.receipt(a, topics.OutcomeRefused, peerwire.Answer{}, empty("unknown service")))
	requireFailed(t, es, peerwire.CodeUnreachable)
}

func TestRetriesWaitLonger(t *testing.T) {
	p := newHarness(t)
	es := p.Handle(p.delegation(callID, asking))
	upper := time.Second
	for n := 1; n <= 8; n++ {
		a := attemptOf(t, es)
		require.EqualValues(t, n, a.Attempt)
		failed := p.Now
		require.Empty(t, p.Handle(p.offline(a)))
		es = p.next()
		waited := p.Now.Sub(failed)
		require.GreaterOrEqual(t, waited, upper/2)
		require.LessOrEqual(t, waited, upper)
		upper = min(2*upper, 30*time.Second)
	}
}

func TestPeerThatIsOfflineForTenMinutesIsServed(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.TaskTime = 15 * time.Minute })
	back := p.Now.Add(10 * time.Minute)
	es := p.Handle(p.delegation(callID, asking))
	attempts := 0
	for {
		a := attemptOf(t, es)
		attempts++
		if !p.Now.Before(back) {
			es = p.settle(p.replied(a))
			break
		}
		require.Empty(t, p.Handle(p.offline(a)))
		es = p.next()
	}
	require.LessOrEqual(t, p.Now.Sub(back), 30*time.Second)
	require.Greater(t, attempts, 20)
	require.Equal(t, []topics.PeerEvent{topics.PeerAcknowledged}, events(es))
	status, _ := toolResultOf(t, es)
	require.Equal(t, "success", status)
}

func TestTaskEndsAtItsDeadline(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.TaskTime = 15 * time.Minute })
	began := p.Now
	es := p.Handle(p.delegation(callID, asking))
	for len(machinetest.Values[topics.ToolUseResult](es)) == 0 {
		es = p.settle(p.offline(attemptOf(t, es)))
		if len(machinetest.Values[topics.ToolUseResult](es)) == 0 {
			es = p.next()
		}
	}
	require.Equal(t, []topics.PeerEvent{topics.PeerSendFailed}, events(es))
	requireFailed(t, es, peerwire.CodeUnreachable)
	require.InDelta(t, 15*time.Minute, p.Now.Sub(began), float64(30*time.Second), "the next attempt would come too late")
	require.LessOrEqual(t, p.Now.Sub(began), 15*time.Minute)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	busy := func(ms int64) func(*topics.Receipt) {
		return func(r *topics.Receipt) { r.Status, r.RetryAfterMS = 429, ms }
	}
	p := newHarness(t)
	a := attemptOf(t, p.Handle(p.delegation(callID, asking)))
	asked := p.Now.Add(40 * time.Second)
	require.Empty(t, p.Handle(p.receipt(a, topics.OutcomeFailed, peerwire.Answer{Code: peerwire.CodePeerBusy, Answered: true}, busy(40_000))))
	a = attemptOf(t, p.next())
	require.Equal(t, asked, p.Now)
	es := p.settle(p.receipt(a, topics.OutcomeFailed, peerwire.Answer{Code: peerwire.CodePeerBusy, Answered: true}, busy(1<<60)))
	requireFailed(t, es, peerwire.CodePeerBusy)

	p = newHarness(t)
	a = attemptOf(t, p.Handle(p.proxied("t1", "w1", once)))
	es = p.settle(p.receipt(a, topics.OutcomeFailed, peerwire.Answer{Code: peerwire.CodePeerBusy, Answered: true}, busy(7000)))
	require.EqualValues(t, 7000, machinetest.Only[topics.PeerReply](t, es).RetryAfterMS)
}

func TestDeferredAttemptIsNoFailure(t *testing.T) {
	for _, change := range []func(*peerwire.Request, *topics.PeerCommand){once, unattended} {
		p := newHarness(t)
		es := p.Handle(p.proxied("t1", "w1", change))
		for n := 1; n < 5; n++ {
			require.Empty(t, p.Handle(p.receipt(attemptOf(t, es), topics.OutcomeDeferred, peerwire.Answer{}, func(r *topics.Receipt) { r.Response = nil })))
			before := p.Now
			es = p.next()
			require.LessOrEqual(t, p.Now.Sub(before), time.Second<<(n-1))
			require.Zero(t, p.Read().Tasks[0].Failures)
			require.False(t, sent(t, attemptOf(t, es)).Repeat)
		}
		p.advance(time.Hour)
		require.Equal(t, string(peerwire.CodeTimeout), p.Read().Tasks[0].Outcome.Code, "its deadline has passed")
	}
}

func TestInterruptedAttemptIsRepeated(t *testing.T) {
	p := newHarness(t)
	require.Empty(t, p.Handle(p.interrupted(attemptOf(t, p.Handle(p.proxied("t1", "w1", once))))))
	a := attemptOf(t, p.next())
	require.True(t, sent(t, a).Repeat)
	require.Zero(t, p.Read().Tasks[0].Failures)
	es := p.settle(p.receipt(a, topics.OutcomeRefused, peerwire.Answer{Code: peerwire.CodeOutcomeUnknown}))
	require.Equal(t, string(peerwire.CodeOutcomeUnknown), machinetest.Only[topics.PeerReply](t, es).Code)
}

func TestLostAttemptIsRepeatedAfterItsLease(t *testing.T) {
	p := newHarness(t)
	one := attemptOf(t, p.Handle(p.proxied("t1", "w1", once)))
	require.Empty(t, p.advance(75*time.Second-time.Millisecond))
	two := attemptOf(t, p.advance(time.Millisecond))
	require.EqualValues(t, 2, two.Attempt)
	require.Equal(t, one.DeliveryID, two.DeliveryID)
	require.True(t, sent(t, two).Repeat)
	require.Empty(t, p.Handle(p.offline(one)), "it is not the last attempt")
	es := p.settle(p.replied(one))
	require.NotNil(t, machinetest.Only[topics.PeerReply](t, es).Body, "a reply counts whichever attempt brought it")
	require.Empty(t, p.settle(p.replied(two)))
}

func TestSinkOutageEndsAtTheDeadline(t *testing.T) {
	p := newHarness(t)
	began := p.Now
	p.Handle(p.delegation(callID, asking))
	es := p.advance(10*time.Minute + 15*time.Second)
	requireFailed(t, es, peerwire.CodeTimeout)
	for _, a := range attemptsOf(t, es) {
		require.LessOrEqual(t, time.UnixMilli(a.NotBeforeMS).Add(sent(t, a).Timeout).Sub(began), 10*time.Minute)
	}
	require.Empty(t, attemptsOf(t, p.advance(time.Hour)))
}

func TestTaskOfALateCallIsNotSent(t *testing.T) {
	p := newHarness(t)
	call := p.delegation(callID, asking)
	p.Now = p.Now.Add(time.Hour)
	es := p.settle(call)
	require.Empty(t, machinetest.Values[topics.Delivery](es))
	requireFailed(t, es, peerwire.CodeTimeout)
	require.Equal(t, []topics.PeerEvent{topics.PeerSent, topics.PeerSendFailed}, events(es))
}

func TestTimeoutOfAnAttempt(t *testing.T) {
	p := newHarness(t)
	begin := func(id string, change ...func(*peerwire.Request, *topics.PeerCommand)) time.Duration {
		return sent(t, attemptOf(t, p.Handle(p.proxied(id, "w1", change...)))).Timeout
	}
	require.Equal(t, time.Minute, begin("t1"), "the peer's")
	require.Equal(t, 90*time.Second, begin("t2", func(r *peerwire.Request, _ *topics.PeerCommand) { r.Timeout = 90 * time.Second }))
	require.Equal(t, 5*time.Second, begin("t3", func(_ *peerwire.Request, c *topics.PeerCommand) {
		c.DeadlineMS = p.Now.Add(5 * time.Second).UnixMilli()
	}), "the rest of the task's time")
	require.Equal(t, 10*time.Second, begin("t4", func(r *peerwire.Request, c *topics.PeerCommand) { c.PeerID, r.AgentID = "tenant-b", "front" }))
	p.Handle(p.proxied("t5", "w1", func(_ *peerwire.Request, c *topics.PeerCommand) { c.DeadlineMS = 0 }))
	require.Equal(t, p.Now.Add(p.config.TaskTime).UnixMilli(), p.Read().Tasks[4].ExpiresMs)
}

func TestReceiptsOfOthersChangeNothing(t *testing.T) {
	p := newHarness(t)
	a := attemptOf(t, p.Handle(p.delegation(callID, asking)))
	before := p.Row
	other, final := a, p.offline(a)
	other.DeliveryID = "peer_x"
	final.Receipt.Final = true
	for i, e := range []receipted{p.offline(other), final, {record: record{&machine.Record{}, "harbor"}}} {
		require.Empty(t, p.Handle(e), strconv.Itoa(i))
		require.Equal(t, before, p.Row)
	}
}

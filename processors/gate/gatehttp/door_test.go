package gatehttp

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

const (
	approve = `{"verdict":"approve"}`
	deny    = `{"verdict":"deny","reason":"over budget"}`
)

func TestDecisionsAreAnsweredWithTheStatusOfTheDocumentation(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	cents := 100_000.0
	f.gates(approval.Rule{
		Tool: "pay", Args: map[string]approval.Condition{"/cents": {AtLeast: &cents}}, Effect: approval.Deny, Message: "never so much",
	})
	d := f.door(Config{Door: auth.Door{Authenticate: callers}})
	const mira, ines = as("mira read,answer *"), as("ines read,answer *")
	f.ask("s", "a", editable)
	f.ask("s", "b", func(r *topics.GateRequest) {
		r.Allowed = []topics.GateVerdict{topics.VerdictApprove, topics.VerdictEdit}
	})
	f.ask("s", "q", func(r *topics.GateRequest) {
		r.Kind, r.Tool, r.ResponseSchema = topics.GateInput, "ask_port", topics.Raw(`{"type":"string"}`)
	})
	d.pending("s", "a", "b", "q")
	open := d.do("GET", "/api/gates/a", "", mira).view(t)
	require.Equal(t, gate.StatusPending, open.Status)
	require.JSONEq(t, string(paying), string(open.Args))

	// Refused: the gate stays open.
	for body, want := range map[string]int{
		`{"verdict":"approve","args_sha256":"00"}`:                  412,
		`{"verdict":"answer","answer":1}`:                           422,
		`{"verdict":"approve","option_id":"o"}`:                     422,
		`{"verdict":"approve","edited_args":{"cents":5001}}`:        422,
		`{"verdict":"approve","edited_args":[]}`:                    422,
		`{"verdict":"close"}`:                                       422,
		`{"verdict":"revoke"}`:                                      422,
		`{"verdict":"approve","scope":"all"}`:                       422,
		`{"verdict":"approve","by":"boss"}`:                         400,
		`{"verdict":"approve"`:                                      400,
		`{"verdict":"approve","scope":"agent"}`:                     403,
		`{"verdict":"deny","edited_args":{"to":"otto","cents":10}}`: 422,
	} {
		require.Equal(t, want, d.do("POST", "/api/gates/a/decision", body, mira).status, body)
	}
	require.Equal(t, 422, d.do("POST", "/api/gates/q/decision", `{"verdict":"answer","answer":7}`, mira).status)
	require.Equal(t, 404, d.do("POST", "/api/gates/none/decision", approve, mira).status)
	require.Equal(t, gate.StatusPending, d.do("GET", "/api/gates/a", "", mira).view(t).Status)
	require.NotContains(t, d.seen.take(), "answer")

	// 200, also repeated; 409 for another one, and for the same person with another key.
	edit := `{"verdict":"approve","args_sha256":"` + open.ArgsSHA256 + `","edited_args":{"to":"otto","cents":500}}`
	first := d.do("POST", "/api/gates/a/decision", edit, mira, "Idempotency-Key: 1")
	require.Equal(t, 200, first.status, first.body)
	outcome := first.decided(t).Gate.Outcome
	require.Equal(t, topics.GateApproved, outcome.Status)
	require.Equal(t, "mira", outcome.By)
	require.JSONEq(t, `{"to":"otto","cents":500}`, string(outcome.EffectiveArgs))
	require.Equal(t, first.body, d.do("POST", "/api/gates/a/decision", " "+edit, mira, "Idempotency-Key: 1").body)
	for name, late := range map[string]got{
		"another person": d.do("POST", "/api/gates/a/decision", edit, ines, "Idempotency-Key: 1"),
		"another body":   d.do("POST", "/api/gates/a/decision", deny, mira, "Idempotency-Key: 1"),
		"another key":    d.do("POST", "/api/gates/a/decision", edit, mira, "Idempotency-Key: 2"),
		"other digest":   d.do("POST", "/api/gates/a/decision", `{"verdict":"approve","args_sha256":"00"}`, mira),
	} {
		require.Equal(t, 409, late.status, name)
		require.Equal(t, outcome, late.decided(t).Gate.Outcome, "it contains the outcome")
	}
	require.Equal(t, 200, d.do("POST", "/api/gates/q/decision", `{"verdict":"answer","answer":"Lisbon"}`, mira).status)

	// The policy overrides an approval of edited arguments.
	overridden := d.do("POST", "/api/gates/b/decision", `{"verdict":"approve","edited_args":{"to":"otto","cents":200000}}`, mira)
	require.Equal(t, 409, overridden.status, overridden.body)
	require.Equal(t, topics.CausePolicy, overridden.decided(t).Gate.Outcome.Cause)

	// 409 for one that comes after the deadline, with the deadline's outcome.
	f.ask("s", "late", func(r *topics.GateRequest) { r.ExpiresMS = time.Now().Add(time.Second).UnixMilli() })
	d.known("late", mira)
	timedOut := d.do("GET", "/api/gates/late?wait=55s", "", mira).view(t)
	require.Equal(t, topics.GateTimedOut, timedOut.Status)
	late := d.do("POST", "/api/gates/late/decision", approve, mira)
	require.Equal(t, 409, late.status)
	require.Equal(t, topics.CauseDeadline, late.decided(t).Gate.Outcome.Cause)
	require.Contains(t, d.seen.take(), "answer 200 s a mira")
	require.Contains(t, d.seen.take(), "answer 409 s b mira")
}

// The decision is written while no gate group runs: it is acknowledged, and applied when the group is back.
func TestDecisionWithoutAGroupIsAcceptedAndAppliedLater(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, g processors.Guarantee) {
		f := newField(t, g)
		stop := f.gates()
		d := f.door(Config{})
		f.ask("s", "a")
		d.pending("s", "a")
		stop()
		accepted := d.do("POST", "/api/gates/a/decision?wait=0s", deny)
		require.Equal(t, http.StatusAccepted, accepted.status, accepted.body)
		require.Equal(t, gate.StatusPending, accepted.decided(t).Gate.Status)
		waits := make(chan got, 1)
		go func() {
			a, _ := d.try("POST", "/api/gates/a/decision", deny)
			waits <- a
		}()
		polls := make(chan got, 1)
		go func() {
			a, _ := d.try("GET", "/api/gates/a?wait=55s", "")
			polls <- a
		}()
		f.gates()
		require.Equal(t, topics.GateDenied, (<-polls).view(t).Status)
		require.Equal(t, 200, (<-waits).status)
		repeated := d.do("POST", "/api/gates/a/decision", deny)
		require.Equal(t, 200, repeated.status)
		require.Equal(t, accepted.decided(t).DecisionID, repeated.decided(t).Gate.Outcome.DecisionID)
	})
}

// A person decides about a gate that was closed a moment ago, because its requester could not ask.
func TestDecisionAboutAClosedGateIsAnsweredWithTheRequestInItsPlace(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		f := newField(t, guarantee)
		stop := f.gates()
		d := f.door(Config{Door: auth.Door{Authenticate: callers}})
		const mira = as("mira read,answer *")
		for _, s := range []string{"s1", "s2"} {
			f.ask(s, s+"-a")
			f.ask(s, s+"-b", func(r *topics.GateRequest) { r.Origin.ParentGateID = s + "-a" })
			d.pending(s, s+"-a", s+"-b")
		}
		closeGate := func(s string) {
			publish(f, f.catalog.GateDecisions, s, topics.GateDecision{
				GateID: s + "-a", SessionID: s, DecisionID: "close", Verdict: topics.VerdictClose, Cause: topics.CauseParentCannotAsk,
			})
		}
		closeGate("s1")
		require.Equal(t, topics.GateCancelled, d.do("GET", "/api/gates/s1-a?wait=30s", "", mira).view(t).Status)
		known := d.do("POST", "/api/gates/s1-a/decision", approve, mira)
		require.Equal(t, 200, known.status, known.body)
		require.Equal(t, "s1-b", known.decided(t).Gate.GateID)

		stop() // the door does not know that the gate is closed
		closeGate("s2")
		accepted := d.do("POST", "/api/gates/s2-a/decision?wait=0s", approve, mira)
		require.Equal(t, http.StatusAccepted, accepted.status, accepted.body)
		f.gates()
		stale := d.do("POST", "/api/gates/s2-a/decision?wait=30s", approve, mira)
		require.Equal(t, 200, stale.status, stale.body)
		require.Equal(t, "s2-b", stale.decided(t).Gate.GateID)
		require.Equal(t, topics.GateApproved, stale.decided(t).Gate.Status)
	})
}

func TestConcurrentDecidersOfTwoDoorsGetTheOutcomeThatWon(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, g processors.Guarantee) {
		f := newField(t, g)
		f.gates()
		doors := []*doorway{f.door(Config{Door: auth.Door{Authenticate: callers}}), f.door(Config{Door: auth.Door{Authenticate: callers}})}
		ids := []string{"a", "b", "c", "d", "e"}
		for _, id := range ids {
			f.ask("s", id)
		}
		for _, d := range doors {
			d.pending("s", ids...)
		}
		type result struct {
			got
			id, by string
			err    error
		}
		results := make(chan result, 100)
		var deciders sync.WaitGroup
		for _, id := range ids {
			for i, by := range []string{"mira", "ines", "otto", "lena"} {
				deciders.Go(func() {
					body := approve
					if i%2 == 1 {
						body = deny
					}
					a, err := doors[i/2].try("POST", "/api/gates/"+id+"/decision", body, as(by+" answer *"))
					results <- result{a, id, by, err}
				})
			}
		}
		deciders.Wait()
		close(results)
		outcomes, winners := map[string]*gate.OutcomeView{}, map[string]int{}
		for r := range results {
			require.NoError(t, r.err)
			got := r.decided(t)
			if outcomes[r.id] == nil {
				outcomes[r.id] = got.Gate.Outcome
			}
			require.Equal(t, outcomes[r.id], got.Gate.Outcome, "everyone gets the same outcome")
			won := got.Gate.Outcome.DecisionID == got.DecisionID
			require.Equal(t, won, got.Gate.Outcome.By == r.by)
			if won {
				winners[r.id]++
				require.Equal(t, 200, r.status)
			} else {
				require.Equal(t, 409, r.status)
			}
		}
		require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}, winners)
	})
}

func TestDoorThatStartsLaterHasTheSameGates(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, g processors.Guarantee) {
		f := newField(t, g)
		f.gates()
		first := f.door(Config{})
		f.ask("s", "a")
		f.ask("s", "b")
		f.ask("u", "c")
		first.pending("s", "a", "b")
		first.pending("u", "c")
		require.Equal(t, 200, first.do("POST", "/api/gates/a/decision", approve).status)
		want := first.do("GET", "/api/gates?session_id=s", "").body
		first.stop()

		second := f.closedDoor(Config{})
		for _, path := range []string{"/api/gates?session_id=s", "/api/gates/a", "/api/gates/grants"} {
			a := second.do("GET", path, "")
			require.Equal(t, http.StatusServiceUnavailable, a.status, "it has not read the table")
			require.NotEmpty(t, a.header.Get("Retry-After"))
		}
		second = f.door(Config{})
		require.Equal(t, want, second.do("GET", "/api/gates?session_id=s", "").body)
		pending, _ := second.do("GET", "/api/gates?session_id=s&status=pending", "").listed(t)
		require.Equal(t, []string{"b"}, pending)
		require.Equal(t, 409, second.do("POST", "/api/gates/a/decision", deny).status)
		require.Equal(t, 200, second.do("POST", "/api/gates/a/decision", approve).status, "a repeat at another process")
		require.Equal(t, 200, second.do("POST", "/api/gates/c/decision", deny).status)
	})
}

func TestLongPollsEndWithTheOutcomeOrAfterTheirTime(t *testing.T) {
	t.Parallel()
	f := newField(t, processors.AtLeastOnce)
	f.gates()
	d := f.door(Config{})
	c := d.clock // of which the index has a ticker, too
	poll := func(path string) <-chan got {
		answers := make(chan got, 1)
		go func() {
			a, err := d.try("GET", path, "")
			if err == nil {
				answers <- a
			}
			close(answers)
		}()
		return answers
	}
	// A list waits for the first gate.
	listing := poll("/api/gates?session_id=s&status=pending&wait=20s")
	require.NoError(t, c.WaitTickers(t.Context(), 2))
	f.ask("other", "x")
	d.pending("other", "x")
	f.ask("s", "a")
	ids, _ := (<-listing).listed(t)
	require.Equal(t, []string{"a"}, ids)
	none := poll("/api/gates?session_id=none&status=pending&wait=20s")
	require.NoError(t, c.WaitTickers(t.Context(), 2))
	c.Advance(20 * time.Second)
	require.Equal(t, `{"gates":[]}`, (<-none).body)

	// A gate's poll ends after its time, or with the outcome. A longer wait than 55 s is 55 s.
	waiting := poll("/api/gates/a?wait=10m")
	require.NoError(t, c.WaitTickers(t.Context(), 2))
	c.Advance(54 * time.Second)
	select {
	case <-waiting:
		require.FailNow(t, "it ended early")
	default:
	}
	c.Advance(time.Second)
	require.Equal(t, gate.StatusPending, (<-waiting).view(t).Status)
	waiting = poll("/api/gates/a?wait=55s")
	require.NoError(t, c.WaitTickers(t.Context(), 2))
	require.Equal(t, 200, d.do("POST", "/api/gates/a/decision", approve).status)
	require.Equal(t, topics.GateApproved, (<-waiting).view(t).Status)

	// Waits end with the index.
	f.ask("s", "b")
	d.pending("s", "b")
	waiting = poll("/api/gates/b?wait=55s")
	require.NoError(t, c.WaitTickers(t.Context(), 2))
	d.stop()
	require.Equal(t, gate.StatusPending, (<-waiting).view(t).Status)
}

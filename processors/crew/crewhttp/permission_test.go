package crewhttp

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// asks gives an agent open permission requests.
func asks(ids ...string) func(*agentRow) {
	return func(a *agentRow) {
		for i, id := range ids {
			a.view.Permissions = append(a.view.Permissions, view.PermissionAsked{
				ID: id, ToolName: "execute:make", Arguments: topics.Raw(`{}`), Dangerous: id == "danger",
				Timestamp: view.Time(noon.Add(time.Duration(i) * time.Second).UnixMilli()),
				Options:   topics.Raw(`[{"optionId":"once","name":"Allow","kind":"allow_once"}]`),
			})
		}
	}
}

// decisions returns the decisions that were written.
func (r *rig) decisions() (list []topics.GateDecision) {
	r.t.Helper()
	for _, o := range r.sent.all() {
		if o.Topic == r.door.topics.GateDecisions.Name() {
			d := r.door.topics.GateDecisions.Codec().Unmarshal(o.Value)
			require.NoError(r.t, d.Err)
			require.Equal(r.t, d.Value.SessionID, o.Key)
			list = append(list, d.Value)
		}
	}
	return list
}

func (r *rig) resolved(agent, id, outcome, by string) {
	r.event(resolvedEvent, "agent/"+agent, "", "", string(entrance.Object("agentId", agent, "requestId", id, "outcome", outcome, "by", by)))
}

func TestPermissionIsAnsweredWithTheOutcomeThatStands(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "", asks("g1", "g2"))
	answers := make(chan got, 1)
	go func() {
		answers <- r.do("POST", "/api/agents/a/permission", `{"approved":true,"requestId":"g1","optionId":"once"}`)
	}()
	require.Eventually(t, func() bool { return len(r.sent.all()) == 1 }, waitLimit, time.Millisecond)
	r.resolved("a", "g1", "approved", "user")
	a := <-answers
	require.Equal(t, 200, a.status, a.body)
	d := r.decisions()[0]
	require.Equal(t, topics.GateDecision{
		GateID: "g1", SessionID: "a", DecisionID: d.DecisionID, Verdict: topics.VerdictApprove, OptionID: "once", By: "user", Via: via,
	}, d)

	go func() { answers <- r.do("POST", "/api/agents/a/permission", `{"approved":true,"requestId":"g2"}`) }()
	require.Eventually(t, func() bool { return len(r.sent.all()) == 2 }, waitLimit, time.Millisecond)
	r.resolved("a", "g2", "timed_out", "deadline")
	a = <-answers
	require.Equal(t, 409, a.status)
	require.Contains(t, a.body, `"outcome":"timed_out"`)

	// The requests have ended.
	r.agent("a", "c", "")
	require.Equal(t, 200, r.do("POST", "/api/agents/a/permission", `{"approved":true,"requestId":"g1"}`).status)
	require.Equal(t, 409, r.do("POST", "/api/agents/a/permission", `{"approved":false,"requestId":"g1"}`).status)
	r.agent("b", "c", "")
	require.Equal(t, 404, r.do("POST", "/api/agents/b/permission", `{"approved":true,"requestId":"g1"}`).status)
	require.Len(t, r.decisions(), 2)
}

func TestPermissionWithoutAnOutcomeIsAccepted(t *testing.T) {
	r := newRig(t, func(c *Config) { c.DecisionWait = -1 })
	r.agent("a", "c", "", asks("g", "danger"))
	a := r.do("POST", "/api/agents/a/permission", `{"approved":true,"requestId":"g","alwaysAllow":true}`)
	require.Equal(t, 202, a.status, a.body)
	require.Equal(t, topics.ScopeSession, r.decisions()[0].Scope)
	require.Equal(t, 202, r.do("POST", "/api/agents/a/permission", `{"approved":true,"requestId":"g","alwaysAllow":true,"scope":"agent"}`).status)
	require.Equal(t, topics.ScopeAgent, r.decisions()[1].Scope)
	require.Equal(t, 202, r.do("POST", "/api/agents/a/permission", `{"approved":false,"requestId":"g","alwaysAllow":true}`).status)
	require.Empty(t, r.decisions()[2].Scope)
	require.Equal(t, 422, r.do("POST", "/api/agents/a/permission", `{"approved":true,"requestId":"danger","alwaysAllow":true}`).status)
	require.Equal(t, 422, r.do("POST", "/api/agents/a/permission", `{"approved":true,"requestId":"g","optionId":"other"}`).status)
	require.Equal(t, 202, r.do("POST", "/api/agents/a/permission", `{"approved":true,"requestId":"danger"}`).status)
	require.Empty(t, r.index.outcomes.waiting)
}

// The clients of the seed send no ID: they mean the newest request. Over HTTP an ID is required.
func TestSocketAnswersTheNewestPermissionRequestWithoutAnID(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "", asks("g1", "g2"))
	b, _ := r.open()
	b.send(`{"type":"permission_response","agentId":"a","approved":false}`)
	b.send(`{"type":"permission_response","agentId":"a","approved":true,"requestId":"g1"}`)
	b.send(`{"type":"permission_response","agentId":"a","approved":true,"requestId":"old"}`)
	b.send(`{"type":"permission_response","agentId":"none","approved":true}`)
	b.done()
	d := r.decisions()
	require.Len(t, d, 2)
	require.Equal(t, []any{"g2", topics.VerdictDeny, "g1", topics.VerdictApprove}, []any{d[0].GateID, d[0].Verdict, d[1].GateID, d[1].Verdict})
	b.send(`{"type":"permission_response","agentId":"a"}`)
	b.next("error")
	b.send(`{"type":"input","agentId":"a","text":"go"}`)
	b.send(`{"type":"input","agentId":"none","text":"go"}`)
	require.Equal(t, "unknown agent", b.next("error").Message)
	in := r.inputs(r.door.topics.CrewAgentInputs)
	require.Equal(t, crewbody.Prompt{Text: "go", Priority: true, FromID: "user"}, bodyOf[crewbody.Prompt](t, in[0]))
}

func TestOpenQueueHoldsTheDecisionsUntilTheConnectionEnds(t *testing.T) {
	r := newRig(t)
	r.index.setCrew("c", crewFake{}.row())
	b, _ := r.open()
	b.send(`{"type":"queue_open"}`)
	b.send(`{"type":"queue_open"}`)
	b.done()
	require.NoError(t, r.clock.WaitTickers(t.Context(), 1))
	r.index.setCrew("d", crewFake{}.row())
	r.clock.Advance(holdEvery)
	held := func() (list []crewbody.QueueHeld) {
		for _, in := range r.inputs(r.door.topics.CrewInputs) {
			list = append(list, bodyOf[crewbody.QueueHeld](t, in))
		}
		return list
	}
	require.Eventually(t, func() bool { return len(held()) == 3 }, waitLimit, time.Millisecond)
	require.Equal(t, noon.Add(holdEvery+holdFor).UnixMilli(), held()[2].UntilMS)
	require.NoError(t, b.CloseNow())
	require.Eventually(t, func() bool { return len(held()) == 5 }, waitLimit, time.Millisecond)
	for _, h := range held()[3:] {
		require.False(t, h.Held)
		require.Equal(t, held()[0].Client, h.Client)
	}
}

// At least once, an event can be seen before its row.
func TestPermissionCanBeAnsweredBeforeItsRowIsSeen(t *testing.T) {
	r := newRig(t, func(c *Config) { c.DecisionWait = -1 })
	r.agent("a", "c", "")
	r.event(askedEvent, "agent/a", "c", "", `{"agentId":"a","request":{"id":"g","toolName":"t","arguments":{},"timestamp":"2026"},"dangerous":true}`)
	require.Equal(t, 422, r.do("POST", "/api/agents/a/permission", `{"approved":true,"requestId":"g","alwaysAllow":true}`).status)
	require.Equal(t, 202, r.do("POST", "/api/agents/a/permission", `{"approved":true,"requestId":"g"}`).status)
	r.agent("b", "c", "")
	require.Equal(t, 404, r.do("POST", "/api/agents/b/permission", `{"approved":true,"requestId":"g"}`).status)
	r.agent("a", "c", "", asks("g"))
	r.resolved("a", "g", "denied", "otto")
	require.Equal(t, 409, r.do("POST", "/api/agents/a/permission", `{"approved":true,"requestId":"g"}`).status, "the row is late")
	require.Empty(t, r.index.asked)
	for i := range maxAsked + 10 {
		r.event(askedEvent, "agent/a", "c", "", fmt.Sprintf(`{"agentId":"a","request":{"id":"g%d"}}`, i))
	}
	require.Len(t, r.index.asked, maxAsked)
}

package gate

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

func scope(s topics.GateScope) func(*topics.GateDecision) {
	return func(d *topics.GateDecision) { d.Scope = s }
}

func TestSessionGrantCountsUntilItIsRevoked(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.request("g1"))
	p.Handle(p.approve("g1", scope(topics.ScopeSession)))
	o := outcome(t, p.settle(p.request("g2")))
	require.Equal(t, topics.GateApproved, o.Status)
	require.Equal(t, topics.CauseGrant, o.Cause)
	require.Equal(t, "ines", o.By)
	require.Equal(t, topics.ArgsSHA256(paying), o.EffectiveArgsSHA256)

	revoke := p.decision("g1", "r1", topics.VerdictRevoke)
	require.Empty(t, p.Handle(revoke))
	require.Empty(t, p.Handle(revoke), "a repeat")
	require.Empty(t, p.settle(p.request("g3")), "revoked between two calls")
	require.Len(t, p.Read().Open, 1)
	require.Empty(t, p.Handle(p.approve("g1", scope(topics.ScopeSession))), "the approval of g1 was used once")
	require.Empty(t, p.Read().Grants)
}

func TestSessionGrantCoversItsToolAndAgentOnly(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.request("g1"))
	p.Handle(p.approve("g1", scope(topics.ScopeSession)))
	for name, change := range map[string]func(*topics.GateRequest){
		"other tool":             func(r *topics.GateRequest) { r.Tool = "pay_all" },
		"dangerous":              func(r *topics.GateRequest) { r.Dangerous = true },
		"a question":             func(r *topics.GateRequest) { r.Kind = topics.GateInput },
		"only permanent options": func(r *topics.GateRequest) { r.Options = topics.Raw(`[{"optionId":"a","kind":"allow_always"}]`) },
	} {
		require.Empty(t, p.settle(p.request(name, change)), name)
	}
	p.Handle(p.withdrawal("none", topics.CauseSuperseded))
	other := p.request("other args", func(r *topics.GateRequest) { r.Args, r.ArgsSHA256 = topics.Raw(`{"cents":9}`), "" })
	require.Equal(t, topics.CauseGrant, outcome(t, p.settle(other)).Cause)
	p.advance(p.config.SessionGrant)
	require.Empty(t, p.settle(p.request("later")), "expired")
}

func TestAgentGrantIsWrittenToItsTopic(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.request("g1"))
	es := p.Handle(p.approve("g1", scope(topics.ScopeAgent)))
	require.Equal(t, []topics.GateGrant{{
		Action: topics.ActionGrant, GrantID: "g1", Agent: "quay", Tool: "pay", By: "ines",
		ExpiresMS: p.Now.Add(p.config.AgentGrant).UnixMilli(),
	}}, machinetest.Values[topics.GateGrant](es))
	p.grants = &gaterow.Grants{Grants: []*gaterow.Grant{{Id: "g1", Agent: "quay", Tool: "pay", By: "ines"}}}
	require.Equal(t, topics.CauseGrant, outcome(t, p.settle(p.request("g2"))).Cause)
	p.grants.Grants[0].ArgsSha256 = "00"
	require.Empty(t, p.settle(p.request("g3")), "a grant for other arguments")
	p.grants.Grants[0].ArgsSha256 = topics.ArgsSHA256(paying)
	require.Equal(t, topics.CauseGrant, outcome(t, p.settle(p.request("g4"))).Cause)
	p.grants.Grants[0].ExpiresMs = p.Now.UnixMilli()
	require.Empty(t, p.settle(p.request("g5")), "expired")
	p.grants = nil
	require.Empty(t, p.settle(p.request("g6")), "revoked between two calls")
}

func TestPolicyOverridesAGrant(t *testing.T) {
	granted := func(c *Config) { c.Policy.Rules = []approval.Rule{{Tool: "pay", Effect: approval.Ask}} }
	for name, c := range map[string]struct {
		rule  approval.Rule
		cause topics.GateCause // empty: a person is asked
	}{
		"denies":    {approval.Rule{Tool: "pay", Effect: approval.Deny}, topics.CausePolicy},
		"dangerous": {approval.Rule{Tool: "pay", Effect: approval.Ask, Dangerous: true}, ""},
	} {
		p := newHarness(t, granted)
		p.grants = &gaterow.Grants{Grants: []*gaterow.Grant{{Id: "g0", Agent: "quay", Tool: "pay"}}}
		asked := closes(p.Handle(p.request("g1")))
		require.Len(t, asked, 1, name)
		p.config.Policy.Rules = []approval.Rule{c.rule}
		es := p.Handle(p.decided(topics.GateDecision(asked[0])))
		if c.cause != "" {
			o := outcome(t, es)
			require.Equal(t, topics.GateDenied, o.Status, name)
			require.Equal(t, c.cause, o.Cause, name)
			continue
		}
		require.Empty(t, es, name)
		require.Equal(t, topics.GateTimedOut, outcome(t, p.advance(time.Hour)).Status, "it still has its deadline")
	}
	p := newHarness(t, granted)
	p.Handle(p.request("g1"))
	p.config.Policy.Rules[0].Dangerous = true
	outcome(t, p.Handle(p.approve("g1", scope(topics.ScopeSession))))
	require.Empty(t, p.Read().Grants, "the policy now says that it is dangerous")
}

// A withdrawal counts although the record that approves the gate by a grant is on its way, and then approves nothing.
func TestWithdrawalIsNotLostBehindAGrant(t *testing.T) {
	p := newHarness(t, withRules(approval.Rule{Tool: "pay", Effect: approval.Ask}))
	p.grants = &gaterow.Grants{Grants: []*gaterow.Grant{{Id: "g0", Agent: "quay", Tool: "pay"}}}
	byGrant := closes(p.Handle(p.request("g1")))
	require.Len(t, byGrant, 1)
	withdrawn := closes(p.Handle(p.withdrawal("g1", topics.CauseParentEnded)))
	require.Len(t, withdrawn, 1)
	p.config.Policy.Rules[0].Dangerous = true
	require.Empty(t, p.Handle(p.decided(topics.GateDecision(byGrant[0]))), "the grant does not suffice any more")
	require.Equal(t, string(topics.CauseParentEnded), p.Read().Open[0].Closing)
	require.Equal(t, topics.CauseParentEnded, outcome(t, p.Handle(p.decided(topics.GateDecision(withdrawn[0])))).Cause)
}

func TestGrantsOfASessionAreBounded(t *testing.T) {
	p := newHarness(t)
	for i := range maxOwnGrants + 5 {
		id := fmt.Sprint("g", i)
		p.Handle(p.request(id, func(r *topics.GateRequest) { r.Tool = id }))
		p.Handle(p.approve(id, scope(topics.ScopeSession)))
	}
	require.Len(t, p.Read().Grants, maxOwnGrants)
	require.Equal(t, "g5", p.Read().Grants[0].Id)
}

// agentRow applies records to the row of an agent.
type agentRow struct {
	machinetest.World[*gaterow.Grants, *grantChange]
	config Config
}

func (a *agentRow) apply(g *topics.GateGrant) string {
	a.TB.Helper()
	var change *grantChange
	if g != nil {
		change = &grantChange{&machine.Record{Value: []byte("{}")}, *g}
	}
	if es := a.Handle(change); len(es) > 0 {
		return machinetest.Reason(a.TB, es)
	}
	return ""
}

func (a *agentRow) ids() (ids []string) {
	for _, g := range a.Read().GetGrants() {
		ids = append(ids, g.Id)
	}
	return ids
}

func newAgentRow(t *testing.T) *agentRow {
	a := &agentRow{}
	require.NoError(t, a.config.complete())
	a.World = machinetest.World[*gaterow.Grants, *grantChange]{
		TB: t, Table: gaterow.GrantTable, RowLimit: a.config.RowLimit, Endless: true, Now: time.UnixMilli(1_790_000_000_000),
		Apply: func(row *gaterow.Grants, e *grantChange) (machine.Outcome[*gaterow.Grants], error) {
			return applyGrant(row, "quay", e, a.Now, a.config), nil
		},
	}
	return a
}

func TestRevokedGrantDoesNotReturn(t *testing.T) {
	grant := topics.GateGrant{Action: topics.ActionGrant, GrantID: "a1", Agent: "quay", Tool: "pay"}
	revoke := topics.GateGrant{Action: topics.ActionRevoke, GrantID: "a1", Agent: "quay"}
	for name, records := range map[string][]topics.GateGrant{
		"revoked":              {grant, revoke},
		"repeated":             {grant, revoke, grant},
		"revoked twice":        {grant, revoke, revoke, grant},
		"revoked before":       {revoke, grant},
		"repeated from before": {grant, grant, revoke, grant, revoke},
	} {
		a := newAgentRow(t)
		for _, r := range records {
			require.Empty(t, a.apply(&r), name)
		}
		require.Empty(t, a.ids(), name)
	}
}

func TestGrantsOfAnAgentExpireAndAreBounded(t *testing.T) {
	a := newAgentRow(t)
	a.apply(&topics.GateGrant{Action: topics.ActionGrant, GrantID: "a1", Agent: "quay", Tool: "pay", ExpiresMS: a.Now.UnixMilli() + 1000})
	require.Equal(t, []string{"a1"}, a.ids())
	at, ok := rows.Deadline(a.Row)
	require.True(t, ok)
	require.Equal(t, a.Now.UnixMilli()+1000, at)
	a.Now = a.Now.Add(time.Second)
	a.apply(nil)
	require.Empty(t, a.ids())
	a.Now = a.Now.Add(a.config.RememberFor)
	a.apply(nil)
	require.Nil(t, a.Row, "the row of an idle agent is deleted")

	require.Equal(t, reasonAgent, a.apply(&topics.GateGrant{Action: topics.ActionGrant, GrantID: "a2", Agent: "pier", Tool: "pay"}))
	row := &gaterow.Grants{Version: rowVersion}
	for i := range maxGrants - 1 {
		row.Grants = append(row.Grants, &gaterow.Grant{Id: fmt.Sprint(i), Agent: "quay", Tool: "pay"})
	}
	a.Set(row)
	add := func(id string) string {
		return a.apply(&topics.GateGrant{Action: topics.ActionGrant, GrantID: id, Agent: "quay", Tool: "pay"})
	}
	require.Empty(t, add("last"))
	require.Equal(t, reasonGrantRoom, add("one more"))
	require.Len(t, a.ids(), maxGrants)
	require.Empty(t, a.apply(&topics.GateGrant{Action: topics.ActionRevoke, GrantID: "7", Agent: "quay"}), "a full row can be emptied")
	require.Len(t, a.ids(), maxGrants-1)
}

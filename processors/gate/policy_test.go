package gate

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

func TestPolicyIsEvaluatedOnArrival(t *testing.T) {
	policy := withRules(
		approval.Rule{Tool: "look", Effect: approval.Allow},
		approval.Rule{Tool: "drop", Effect: approval.Deny, Message: "never"},
		approval.Rule{Tool: "pay", Effect: approval.Ask, TTL: time.Hour, Message: "May it pay?"},
	)
	tool := func(name string, change ...func(*topics.GateRequest)) []func(*topics.GateRequest) {
		return append([]func(*topics.GateRequest){func(r *topics.GateRequest) { r.Tool, r.Effect = name, "" }}, change...)
	}
	for name, c := range map[string]struct {
		change []func(*topics.GateRequest)
		status topics.GateStatus // empty: a person is asked
		cause  topics.GateCause
	}{
		"allowed":                        {tool("look"), topics.GateApproved, topics.CausePolicy},
		"denied":                         {tool("drop"), topics.GateDenied, topics.CausePolicy},
		"asked":                          {tool("pay"), "", ""},
		"unknown tool":                   {tool("open"), "", ""},
		"allowed, the requester asks":    {tool("look", func(r *topics.GateRequest) { r.Effect = "ask" }), "", ""},
		"allowed, the requester denies":  {tool("look", func(r *topics.GateRequest) { r.Effect = "deny" }), topics.GateDenied, topics.CausePolicy},
		"asked, the requester allows":    {tool("pay", func(r *topics.GateRequest) { r.Effect = "allow" }), "", ""},
		"unknown effect":                 {tool("look", func(r *topics.GateRequest) { r.Effect = "sure" }), topics.GateDenied, topics.CausePolicy},
		"allowed but dangerous":          {tool("look", func(r *topics.GateRequest) { r.Dangerous = true }), "", ""},
		"allowed, but it is a question":  {tool("look", func(r *topics.GateRequest) { r.Kind = topics.GateInput }), "", ""},
		"allowed, but only permanently":  {tool("look", func(r *topics.GateRequest) { r.Options = topics.Raw(`[{"optionId":"a","kind":"allow_always"}]`) }), "", ""},
		"allowed, with an option for it": {tool("look", func(r *topics.GateRequest) { r.Options = topics.Raw(`[{"optionId":"a","kind":"allow_once"}]`) }), topics.GateApproved, topics.CausePolicy},
		"shadow, allowed":                {tool("look", func(r *topics.GateRequest) { r.Shadow = true }), topics.GateApproved, topics.CausePolicy},
		"shadow, denied":                 {tool("drop", func(r *topics.GateRequest) { r.Shadow = true }), topics.GateDenied, topics.CausePolicy},
		"shadow, asked":                  {tool("pay", func(r *topics.GateRequest) { r.Shadow = true }), topics.GateCancelled, topics.CausePolicy},
		"already expired":                {tool("look", func(r *topics.GateRequest) { r.ExpiresMS = 1 }), topics.GateTimedOut, topics.CauseDeadline},
	} {
		p := newHarness(t, policy)
		r := p.request("g1", c.change...)
		es := p.Handle(r)
		if c.status == "" {
			require.Empty(t, es, name)
			require.Len(t, p.Read().Open, 1, name)
			continue
		}
		o := outcome(t, es)
		require.Equal(t, c.status, o.Status, name)
		require.Equal(t, c.cause, o.Cause, name)
		require.Equal(t, strings.HasPrefix(name, "shadow"), o.Shadow, name)
		require.Empty(t, p.Read().Open, name)
		require.Empty(t, p.Handle(r), name)
		if name == "allowed, with an option for it" {
			require.Equal(t, "a", o.OptionID)
		}
	}
	p := newHarness(t, policy)
	p.Handle(p.request("g1"))
	g := p.Read().Open[0]
	require.Equal(t, "May it pay?", g.Message)
	require.Equal(t, time.Hour.Milliseconds(), g.ExpiresMs-g.OpenedMs)
}

func TestDeadlineIsAtMostThirtyDays(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.request("g1", func(r *topics.GateRequest) { r.ExpiresMS = p.Now.AddDate(1, 0, 0).UnixMilli() }))
	g := p.Read().Open[0]
	require.Equal(t, 30*24*time.Hour.Milliseconds(), g.ExpiresMs-g.OpenedMs)
}

func TestPolicyThatDeniesOverridesAnApproval(t *testing.T) {
	limit := 500.0
	deny := withRules(
		approval.Rule{Tool: "pay", Effect: approval.Ask, Edit: true},
		approval.Rule{
			Tool: "pay", Effect: approval.Deny, Message: "too much",
			Args: map[string]approval.Condition{"/cents": {AtLeast: &limit}},
		})
	t.Run("edited", func(t *testing.T) {
		p := newHarness(t, deny)
		p.Handle(p.request("g1", func(r *topics.GateRequest) {
			r.Allowed = []topics.GateVerdict{topics.VerdictApprove, topics.VerdictEdit}
		}))
		o := outcome(t, p.Handle(p.approve("g1", func(d *topics.GateDecision) { d.EditedArgs = topics.Raw(`{"cents":501}`) })))
		require.Equal(t, topics.GateDenied, o.Status)
		require.Equal(t, topics.CausePolicy, o.Cause)
		require.Equal(t, "too much", o.Reason)
		require.Nil(t, o.EffectiveArgs)
		require.Empty(t, o.EffectiveArgsSHA256)
	})
	t.Run("changed after the approval was written", func(t *testing.T) {
		p := newHarness(t)
		p.Handle(p.request("g1"))
		decision := p.approve("g1")
		p.config.Policy = approval.Policy{Default: approval.Deny}
		o := outcome(t, p.Handle(decision))
		require.Equal(t, topics.GateDenied, o.Status)
		require.Equal(t, topics.CausePolicy, o.Cause)
	})
}

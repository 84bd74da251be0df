package approval_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

func number(n float64) *float64 { return &n }

func call(tool, args string) approval.Call {
	c := approval.Call{Tool: tool}
	if args != "" {
		c.Args = topics.Raw(args)
	}
	return c
}

func TestMostSpecificRuleDecides(t *testing.T) {
	p := approval.Policy{
		ReadOnly: []string{"look_*", "read"},
		Rules: []approval.Rule{
			{Tool: "pay*", Effect: approval.Deny},
			{Tool: "pay_port_*", Effect: approval.Ask},
			{Tool: "pay_port_fee", Effect: approval.Allow},
			{Tool: "pay_port_fee", Effect: approval.Ask, Args: map[string]approval.Condition{"/cents": {AtLeast: number(1000)}}},
			{Tool: "look_inside", Effect: approval.Ask},
			{Tool: "same", Effect: approval.Allow},
			{Tool: "same", Effect: approval.Deny},
			{Tool: "same", Effect: approval.Ask},
		},
	}
	require.NoError(t, p.Validate())
	for _, c := range []struct {
		tool, args string
		effect     approval.Effect
		rule       int
	}{
		{"unknown", "", approval.Ask, 0},
		{"read", "", approval.Allow, 0},
		{"look_around", "{}", approval.Allow, 0},
		{"look_inside", "{}", approval.Ask, 5},
		{"pay", "{}", approval.Deny, 1},
		{"pay_port_tax", "{}", approval.Ask, 2},
		{"pay_port_fee", `{"cents":999}`, approval.Allow, 3},
		{"pay_port_fee", `{"cents":1000}`, approval.Ask, 4},
		{"pay_port_fee", `{"cents":1e3}`, approval.Ask, 4},
		{"pay_port_fee", `{"cents":"1000"}`, approval.Deny, 4}, // a bound on a text
		{"pay_port_fee", `{"cents":1,"cents":2000}`, approval.Deny, 4},
		{"pay_port_fee", `{`, approval.Deny, 4},
		{"pay_port_fee", "", approval.Allow, 3},
		{"same", "", approval.Deny, 7},
	} {
		d := p.Evaluate(call(c.tool, c.args))
		require.Equal(t, c.effect, d.Effect, "%s %s", c.tool, c.args)
		require.Equal(t, c.rule, d.Rule, "%s %s", c.tool, c.args)
	}
}

func TestConditionsAreEvaluatedOnTheValueThatThePointerNames(t *testing.T) {
	holds := func(pointer string, c approval.Condition, args string) approval.Effect {
		p := approval.Policy{
			Default: approval.Allow,
			Rules:   []approval.Rule{{Tool: "t", Effect: approval.Ask, Args: map[string]approval.Condition{pointer: c}}},
		}
		require.NoError(t, p.Validate())
		return p.Evaluate(call("t", args)).Effect
	}
	deep := strings.Repeat(`{"a":`, topics.MaxDepth+1) + "1" + strings.Repeat("}", topics.MaxDepth+1)
	for _, c := range []struct {
		pointer   string
		condition approval.Condition
		args      string
		effect    approval.Effect
	}{
		{"/a", approval.Condition{}, `{"a":null}`, approval.Ask},
		{"/a", approval.Condition{}, `{"b":1}`, approval.Allow},
		{"/a", approval.Condition{}, ``, approval.Allow},
		{"/a/1/b~1c", approval.Condition{Equals: topics.Raw(`"x"`)}, `{"a":[0,{"b/c":"x"}]}`, approval.Ask},
		{"/a/01", approval.Condition{}, `{"a":[0,1]}`, approval.Allow},
		{"/a/2", approval.Condition{}, `{"a":[0,1]}`, approval.Allow},
		{"/a/b", approval.Condition{}, `{"a":5}`, approval.Allow},
		{"", approval.Condition{Equals: topics.Raw(`{"b":1.0,"a":"é"}`)}, `{"a":"\u00e9","b":1}`, approval.Ask},
		{"/a", approval.Condition{Equals: topics.Raw(`null`)}, `{"a":null}`, approval.Ask},
		{"/to", approval.Condition{Like: "*@example.com"}, `{"to":"mira@example.com"}`, approval.Ask},
		{"/to", approval.Condition{Like: "*@example.com"}, `{"to":"mira@example.com.evil.org"}`, approval.Allow},
		{"/to", approval.Condition{Like: "*@example.com"}, `{"to":["mira@example.com"]}`, approval.Deny},
		{"/n", approval.Condition{AtLeast: number(1), AtMost: number(2)}, `{"n":1.5}`, approval.Ask},
		{"/n", approval.Condition{AtLeast: number(1), AtMost: number(2)}, `{"n":2.5}`, approval.Allow},
		{"/n", approval.Condition{AtMost: number(2)}, `{"n":1e999}`, approval.Deny},
		{"/n", approval.Condition{AtMost: number(2)}, `{"n":null}`, approval.Deny},
		{"/a", approval.Condition{}, deep, approval.Deny},
		{"/a", approval.Condition{}, `{"a":1} {}`, approval.Deny},
	} {
		require.Equal(t, c.effect, holds(c.pointer, c.condition, c.args), "%s in %.40s", c.pointer, c.args)
	}
}

func TestDecisionCarriesWhatTheRuleSays(t *testing.T) {
	schema := topics.Raw(`{"type":"object"}`)
	p := approval.Policy{
		TTL: time.Hour, Shadow: true,
		Rules: []approval.Rule{
			{Tool: "pay", Effect: approval.Ask, Dangerous: true, Edit: true, Schema: schema, Message: "Pay?", TTL: time.Minute},
			{Tool: "move", Effect: approval.Ask},
		},
	}
	require.NoError(t, p.Validate())
	require.Equal(t, approval.Decision{
		Effect: approval.Ask, Rule: 1, Dangerous: true, Edit: true, Schema: schema, Message: "Pay?", TTL: time.Minute, Shadow: true,
	}, p.Evaluate(call("pay", "{}")))
	require.Equal(t, time.Hour, p.Evaluate(call("move", "{}")).TTL)
	require.Equal(t, approval.DefaultTTL, approval.Policy{}.Evaluate(call("move", "{}")).TTL)
	require.True(t, p.Covers("pay"))
	require.False(t, p.Covers("fly"))
}

func TestBadPoliciesAreRejectedWithTheNumberOfTheRule(t *testing.T) {
	for want, p := range map[string]approval.Policy{
		"default":              {Default: "perhaps"},
		"read_only":            {ReadOnly: []string{" "}},
		"ttl":                  {TTL: time.Millisecond},
		"rule 1: tool":         {Rules: []approval.Rule{{Effect: approval.Ask}}},
		"rule 1: effect":       {Rules: []approval.Rule{{Tool: "a"}}},
		"rule 2: ttl":          {Rules: []approval.Rule{{Tool: "a", Effect: approval.Ask}, {Tool: "a", Effect: approval.Ask, TTL: -1}}},
		"schema: not":          {Rules: []approval.Rule{{Tool: "a", Effect: approval.Ask, Edit: true, Schema: topics.Raw(`[]`)}}},
		"schema: set":          {Rules: []approval.Rule{{Tool: "a", Effect: approval.Ask, Schema: topics.Raw(`{}`)}}},
		"dangerous":            {Rules: []approval.Rule{{Tool: "a", Effect: approval.Allow, Dangerous: true}}},
		"JSON Pointer":         {Rules: []approval.Rule{{Tool: "a", Effect: approval.Ask, Args: map[string]approval.Condition{"a": {}}}}},
		"followed by":          {Rules: []approval.Rule{{Tool: "a", Effect: approval.Ask, Args: map[string]approval.Condition{"/~2": {}}}}},
		"args /a: equals":      {Rules: []approval.Rule{{Tool: "a", Effect: approval.Ask, Args: map[string]approval.Condition{"/a": {Equals: topics.Raw("{")}}}}},
		"args /a: at_most":     {Rules: []approval.Rule{{Tool: "a", Effect: approval.Ask, Args: map[string]approval.Condition{"/a": {AtMost: number(1), AtLeast: number(2)}}}}},
		"args /a: a bound":     {Rules: []approval.Rule{{Tool: "a", Effect: approval.Allow, Args: map[string]approval.Condition{"/a": {AtMost: number(math.NaN())}}}}},
		"args /a: like and bo": {Rules: []approval.Rule{{Tool: "a", Effect: approval.Ask, Args: map[string]approval.Condition{"/a": {AtMost: number(1), Like: "x"}}}}},
	} {
		err := p.Validate()
		require.ErrorIs(t, err, approval.ErrPolicy, want)
		require.ErrorContains(t, err, want)
	}
}

func TestUnknownEffectsDeny(t *testing.T) {
	require.Equal(t, approval.Deny, approval.Policy{Default: "alow"}.Evaluate(call("t", "")).Effect)
	p := approval.Policy{Rules: []approval.Rule{{Tool: "t", Effect: "alow"}}}
	require.Equal(t, approval.Deny, p.Evaluate(call("t", "")).Effect)
	require.Equal(t, approval.Deny, approval.Stricter("alow", approval.Allow))
}

// The result must not depend on the order of rules, and no rule more lenient than an equally specific one may win.
func TestOrderOfRulesDoesNotMatter(t *testing.T) {
	effects := []approval.Effect{approval.Allow, approval.Ask, approval.Deny}
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) approval.Rule {
			r := approval.Rule{
				Tool:   rapid.SampledFrom([]string{"*", "a*", "*b", "ab", "a*b", "x"}).Draw(t, "tool"),
				Effect: rapid.SampledFrom(effects).Draw(t, "effect"),
			}
			if rapid.Bool().Draw(t, "bound") {
				r.Args = map[string]approval.Condition{"/n": {AtLeast: number(float64(rapid.IntRange(0, 3).Draw(t, "n")))}}
			}
			return r
		}), 0, 6).Draw(t, "rules")
		shuffled := rapid.Permutation(rules).Draw(t, "shuffled")
		c := call(rapid.SampledFrom([]string{"ab", "a", "b", "x", "aab"}).Draw(t, "called"),
			rapid.SampledFrom([]string{"", "{}", `{"n":1}`, `{"n":2}`, `{"n":"1"}`}).Draw(t, "args"))
		one, other := approval.Policy{Rules: rules}.Evaluate(c), approval.Policy{Rules: shuffled}.Evaluate(c)
		require.Equal(t, one.Effect, other.Effect)
		if one.Rule > 0 && !one.Failed {
			decided := rules[one.Rule-1]
			for _, r := range rules {
				if r.Tool == decided.Tool && len(r.Args) == 0 && len(decided.Args) == 0 {
					require.Equal(t, one.Effect, approval.Stricter(one.Effect, r.Effect))
				}
			}
		}
	})
}

func FuzzEvaluate(f *testing.F) {
	f.Add("pay_*", "/a/0", `{"a":[1]}`, "pay_x")
	f.Add("*", "", `{"a":{"a":1,"a":2}}`, "")
	f.Add("a**b", "/~1", `{"/":"\ud800"}`, "a*b")
	f.Fuzz(func(t *testing.T, pattern, pointer, args, tool string) {
		p := approval.Policy{Default: approval.Allow, Rules: []approval.Rule{{
			Tool: pattern, Effect: approval.Deny, Args: map[string]approval.Condition{pointer: {Like: pattern, Equals: topics.Raw(args)}},
		}}}
		if p.Validate() != nil {
			return
		}
		require.NotEqual(t, approval.Ask, p.Evaluate(call(tool, args)).Effect)
	})
}

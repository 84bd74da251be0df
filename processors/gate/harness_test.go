package gate

import (
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

type (
	tb      = machinetest.TB
	effects = machinetest.Effects
)

// harness applies events to the row of one session.
type harness struct {
	machinetest.World[*gaterow.State, event]
	topics topics.Catalog
	config Config
	key    string
	grants *gaterow.Grants // the agent's
}

func newHarness(t tb, change ...func(*Config)) *harness {
	c, err := topics.For("quay")
	require.NoError(t, err)
	p := &harness{topics: c, key: "s1"}
	for _, f := range change {
		f(&p.config)
	}
	require.NoError(t, p.config.complete())
	p.World = machinetest.World[*gaterow.State, event]{
		TB: t, Table: gaterow.Table, Due: deadlineCame{}, RowLimit: p.config.RowLimit, Now: time.UnixMilli(1_790_000_000_000).UTC(),
		// A decision that is read again after its gate has ended can be answered as one that came too late.
		Repeats: func(e machine.Effect) bool { return strings.HasPrefix(e.ID, "gate-answer-") },
		Apply: func(row *gaterow.State, e event) (machine.Outcome[*gaterow.State], error) {
			p.RowLimit = p.config.RowLimit // which a test may change
			return apply(row, p.key, e, func(agent string) *gaterow.Grants {
				require.Equal(t, "quay", agent)
				return p.grants
			}, p.Now, c, p.config), nil
		},
	}
	return p
}

// withRules sets the rules of the policy.
func withRules(rules ...approval.Rule) func(*Config) {
	return func(c *Config) { c.Policy.Rules = rules }
}

var paying = topics.Raw(`{"cents":250}`)

// request returns the request of the gate with an ID: to pay, unless changed.
func (p *harness) request(id string, change ...func(*topics.GateRequest)) requested {
	p.TB.Helper()
	r := topics.GateRequest{
		GateID: id, SessionID: p.key, TurnID: "t1", CallID: "t1/0/tool-use/" + id, Kind: topics.GateTool, Tool: "pay",
		ToolUseID: "toolu_" + id, Args: paying, Origin: topics.GateOrigin{Agent: "quay", Via: "turn"}, Effect: "ask",
	}
	for _, f := range change {
		f(&r)
	}
	record, r := machinetest.Record(&p.World, p.topics.GateRequests, r)
	return requested{record, r}
}

func (p *harness) withdrawal(id string, cause topics.GateCause) requested {
	return p.request(id, func(r *topics.GateRequest) {
		*r = topics.GateRequest{GateID: id, SessionID: p.key, Withdrawn: cause}
	})
}

// decision returns a person's decision about a gate.
func (p *harness) decision(id, decisionID string, verdict topics.GateVerdict, change ...func(*topics.GateDecision)) decided {
	p.TB.Helper()
	d := topics.GateDecision{GateID: id, SessionID: p.key, DecisionID: decisionID, Verdict: verdict, By: "ines", Via: "door"}
	for _, f := range change {
		f(&d)
	}
	return p.decided(d)
}

func (p *harness) decided(d topics.GateDecision) decided {
	p.TB.Helper()
	record, d := machinetest.Record(&p.World, p.topics.GateDecisions, d)
	return decided{record, d}
}

// inRoom returns the origin of a message in a thread of a room.
func inRoom(thread, user string) topics.Origin {
	return topics.Origin{Channel: "slack", Account: "main", Recipient: "C7", Thread: thread, User: user, Group: true}
}

func (p *harness) approve(id string, change ...func(*topics.GateDecision)) decided {
	return p.decision(id, "d-"+strconv.FormatInt(p.Offset, 10), topics.VerdictApprove, change...)
}

func (p *harness) control(action string) controlled {
	record, c := machinetest.Record(&p.World, p.topics.SessionControl, topics.Control{Action: action})
	return controlled{record, c}
}

// settle applies an event and then the records that it wrote to gate-decisions.
func (p *harness) settle(e event) effects {
	p.TB.Helper()
	all := p.Handle(e)
	for _, d := range machinetest.Values[topics.GateDecision](all) {
		all = append(all, p.Handle(p.decided(d))...)
	}
	return all
}

// advance moves the clock by d and applies the deadlines in that time.
func (p *harness) advance(d time.Duration) effects {
	p.TB.Helper()
	return p.Advance(d, p.settle)
}

// closes returns the records that end a gate, resolves those that name the gate of a code.
func closes(es effects) []topics.GateDecision { return decisions(es, true) }

func resolves(es effects) []topics.GateDecision { return decisions(es, false) }

func decisions(es effects, closing bool) (list []topics.GateDecision) {
	for _, d := range machinetest.Values[topics.GateDecision](es) {
		if (d.Verdict == topics.VerdictClose) == closing {
			list = append(list, d)
		}
	}
	return list
}

func outcomes(es effects) []topics.GateOutcome { return machinetest.Values[topics.GateOutcome](es) }

// outcome returns the only outcome among effects.
func outcome(t tb, es effects) topics.GateOutcome {
	t.Helper()
	return machinetest.Only[topics.GateOutcome](t, es)
}

// letter returns the reason of the only effect, which is a dead letter.
func letter(t tb, es effects) string { return machinetest.Reason(t, es) }

package gate

import (
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// tb is implemented by *testing.T and *rapid.T.
type tb interface {
	require.TestingT
	Helper()
}

// harness applies events to the row of one session. The row is encoded and decoded between two events, as in a broker.
type harness struct {
	tb     tb
	topics topics.Catalog
	config Config
	key    string
	now    time.Time
	row    []byte
	grants *gaterow.Grants // the agent's
	offset int64
}

func newHarness(t tb, change ...func(*Config)) *harness {
	c, err := topics.For("quay")
	require.NoError(t, err)
	p := &harness{tb: t, topics: c, key: "s1", now: time.UnixMilli(1_790_000_000_000).UTC()}
	for _, f := range change {
		f(&p.config)
	}
	require.NoError(t, p.config.complete())
	return p
}

// withRules sets the rules of the policy.
func withRules(rules ...approval.Rule) func(*Config) {
	return func(c *Config) { c.Policy.Rules = rules }
}

func (p *harness) record(topic string, value []byte) *record {
	p.offset++
	return &record{Session: p.key, At: p.now, Topic: topic, Offset: p.offset, Value: value}
}

var paying = topics.Raw(`{"cents":250}`)

// request returns the request of the gate with an ID: to pay, unless changed.
func (p *harness) request(id string, change ...func(*topics.GateRequest)) requested {
	p.tb.Helper()
	r := topics.GateRequest{
		GateID: id, SessionID: p.key, TurnID: "t1", CallID: "t1/0/tool-use/" + id, Kind: topics.GateTool, Tool: "pay",
		ToolUseID: "toolu_" + id, Args: paying, Origin: topics.GateOrigin{Agent: "quay", Via: "turn"}, Effect: "ask",
	}
	for _, f := range change {
		f(&r)
	}
	value, err := p.topics.GateRequests.Codec().Marshal(r)
	require.NoError(p.tb, err)
	d := p.topics.GateRequests.Codec().Unmarshal(value)
	require.NoError(p.tb, d.Err)
	return requested{p.record(p.topics.GateRequests.Name(), value), d.Value}
}

func (p *harness) withdrawal(id string, cause topics.GateCause) requested {
	return p.request(id, func(r *topics.GateRequest) {
		*r = topics.GateRequest{GateID: id, SessionID: p.key, Withdrawn: cause}
	})
}

// decision returns a person's decision about a gate.
func (p *harness) decision(id, decisionID string, verdict topics.GateVerdict, change ...func(*topics.GateDecision)) decided {
	p.tb.Helper()
	d := topics.GateDecision{GateID: id, SessionID: p.key, DecisionID: decisionID, Verdict: verdict, By: "ines", Via: "door"}
	for _, f := range change {
		f(&d)
	}
	return p.decided(d)
}

func (p *harness) decided(d topics.GateDecision) decided {
	p.tb.Helper()
	value, err := p.topics.GateDecisions.Codec().Marshal(d)
	require.NoError(p.tb, err)
	read := p.topics.GateDecisions.Codec().Unmarshal(value)
	require.NoError(p.tb, read.Err)
	return decided{p.record(p.topics.GateDecisions.Name(), value), read.Value}
}

// inRoom returns the origin of a message in a thread of a room.
func inRoom(thread, user string) topics.Origin {
	return topics.Origin{Channel: "slack", Account: "main", Recipient: "C7", Thread: thread, User: user, Group: true}
}

func (p *harness) approve(id string, change ...func(*topics.GateDecision)) decided {
	return p.decision(id, "d-"+strconv.FormatInt(p.offset, 10), topics.VerdictApprove, change...)
}

func (p *harness) control(action string) controlled {
	return controlled{p.record(p.topics.SessionControl.Name(), []byte("{}")), topics.Control{Action: action}}
}

// handle applies an event, checks the row and returns the effects.
func (p *harness) handle(e event) effects {
	p.tb.Helper()
	var state *gaterow.State
	if p.row != nil {
		var err error
		state, err = gaterow.Table.Unmarshal(p.row)
		require.NoError(p.tb, err)
	}
	had := state != nil
	out := apply(state, e, func(agent string) *gaterow.Grants {
		require.Equal(p.tb, "quay", agent)
		return p.grants
	}, p.now, "quay", p.config)
	switch {
	case !out.Changed:
	case out.State == nil:
		require.True(p.tb, had, "only an existing row is deleted")
		p.row = nil
	default:
		raw, err := gaterow.Table.Marshal(out.State)
		require.NoError(p.tb, err)
		require.LessOrEqual(p.tb, len(raw), p.config.RowLimit)
		p.row = raw
		at, ok := rows.Deadline(raw)
		require.True(p.tb, ok, "every row has a deadline")
		if _, timer := e.(deadlineCame); timer {
			require.Greater(p.tb, at, p.now.UnixMilli(), "the next deadline is in the future")
		}
	}
	return out.Effects
}

// settle applies an event and then the records that it wrote to gate-decisions.
func (p *harness) settle(e event) effects {
	p.tb.Helper()
	all := p.handle(e)
	for _, c := range valuesOf[closeAsked](all) {
		all = append(all, p.handle(p.decided(topics.GateDecision(c)))...)
	}
	for _, d := range valuesOf[decisionResolved](all) {
		all = append(all, p.handle(p.decided(topics.GateDecision(d)))...)
	}
	return all
}

// set replaces the row.
func (p *harness) set(s *gaterow.State) {
	p.tb.Helper()
	var err error
	p.row, err = gaterow.Table.Marshal(s)
	require.NoError(p.tb, err)
}

func (p *harness) state() *gaterow.State {
	if p.row == nil {
		return nil
	}
	s, err := gaterow.Table.Unmarshal(p.row)
	require.NoError(p.tb, err)
	return s
}

// advance moves the clock by d and applies the deadlines in that time.
func (p *harness) advance(d time.Duration) (all effects) {
	p.tb.Helper()
	end := p.now.Add(d)
	for {
		at, ok := rows.Deadline(p.row)
		if !ok || at > end.UnixMilli() {
			p.now = end
			return all
		}
		p.now = time.UnixMilli(max(at, p.now.UnixMilli())).UTC()
		all = append(all, p.settle(deadlineCame{p.key})...)
	}
}

type effects []effect

// valuesOf returns the values of one topic.
func valuesOf[V value](es effects) (list []V) {
	for _, e := range es {
		if m, ok := e.(emit); ok {
			if v, ok := m.Value.(V); ok {
				list = append(list, v)
			}
		}
	}
	return list
}

// outcome returns the only outcome among effects.
func outcome(t tb, es effects) topics.GateOutcome {
	t.Helper()
	list := valuesOf[gateEnded](es)
	require.Len(t, list, 1, "%v", es)
	return topics.GateOutcome(list[0])
}

// letter returns the reason of the only effect, which is a dead letter.
func letter(t tb, es effects) string {
	t.Helper()
	require.Len(t, es, 1)
	return es[0].(deadLetter).Reason
}

package peer

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

type effects = machinetest.Effects

// harness applies events to the row of one session.
type harness struct {
	machinetest.World[*peerrow.State, event]
	topics   topics.Catalog
	agents   map[string]topics.Catalog
	config   Config
	settings *Settings // in force
	key      string    // the session
	label    *harness  // the row of partner-b's approvals
}

func newHarness(t machinetest.TB, change ...func(*Config)) *harness {
	p := &harness{
		agents: map[string]topics.Catalog{}, key: "s1",
		settings: &Settings{
			Enabled: true, InstanceID: "hq-1", MaxHops: defaultMaxHops,
			Outbound: []Outbound{
				{ID: "tenant-a", Timeout: time.Minute},
				{ID: "tenant-b", Timeout: 10 * time.Second, AllowedAgents: []string{"front"}},
			},
			Inbound: []Inbound{{ID: "partner-b"}},
		},
	}
	p.config.Agents = []string{"harbor", "pilot"}
	p.config.Settings = func() *Settings { return p.settings }
	require.NoError(t, p.config.complete())
	for _, f := range change {
		f(&p.config)
	}
	var err error
	p.topics, err = topics.For("harbor")
	require.NoError(t, err)
	for _, name := range p.config.Agents {
		p.agents[name], err = topics.For(name)
		require.NoError(t, err)
	}
	p.World = machinetest.World[*peerrow.State, event]{
		// The answer to a claim that is read again can say less of the gates that had an approval. The run has read the first one then.
		Repeats: func(e machine.Effect) bool {
			c, ok := e.Value.(topics.PeerCommand)
			return ok && c.Kind == topics.PeerClaimed
		},
		TB: t, Table: peerrow.Table, Due: deadlineCame{}, Now: time.UnixMilli(1_790_000_000_000).UTC(), Apply: p.apply,
	}
	return p
}

func (p *harness) apply(row *peerrow.State, e event) (machine.Outcome[*peerrow.State], error) {
	reads, config := 0, p.config
	config.Settings = func() *Settings { reads++; return p.settings }
	p.RowLimit, p.RecordLimit = config.RowLimit, config.RecordLimit
	out := apply(row, p.key, e, p.Now, catalogs{own: p.topics, agents: p.agents, events: p.topics.PeerEvents}, config)
	require.LessOrEqual(p.TB, reads, 1, "an event sees one configuration")
	return out, nil
}

// another returns the harness of another row of the same group. It shares the approvals.
func (p *harness) another(key string) *harness {
	h := *p
	h.key, h.Row, h.Apply = key, nil, h.apply
	return &h
}

// configure changes the configuration in force.
func (p *harness) configure(change func(*Settings)) {
	next := *p.settings
	change(&next)
	p.settings = &next
}

// read returns a value as the group reads it from a topic, and the record of it.
func read[T any](p *harness, t topics.Topic[T], id string, v T) (record, T) {
	p.TB.Helper()
	r, v := machinetest.Record(&p.World, t, v)
	r.ID = id
	return record{r, p.topics.Agent}, v
}

// toolCall returns a call of a tool. id is the record's turntable.id; that of a turn is {turn}/{step}/tool-use/{number}.
func (p *harness) toolCall(id, tool, input string, change ...func(*topics.ToolUseItem)) called {
	p.TB.Helper()
	use := "toolu_" + id
	v := topics.ToolUseItem{ToolUseID: &use, Name: &tool, SessionID: &p.key, TotalTools: 1}
	if input != "" {
		v.Input = topics.Raw(input)
	}
	for _, f := range change {
		f(&v)
	}
	r, v := read(p, p.topics.ToolUse, id, v)
	return called{r, v}
}

// command returns a record of peer-commands.
func (p *harness) command(c topics.PeerCommand) commanded {
	p.TB.Helper()
	r, c := read(p, p.topics.PeerCommands, "", c)
	return commanded{r, c}
}

// output returns the output of a turn. id is the record's turntable.id; that of a turn is {turn}/{step}/answer/0.
func (p *harness) output(id, text string, change ...func(*topics.Output)) outputArrived {
	p.TB.Helper()
	v := topics.Output{SessionID: &p.key, Content: text, SourceAgent: p.topics.Agent, Timestamp: topics.Timestamp(p.Now)}
	for _, f := range change {
		f(&v)
	}
	r, v := read(p, p.topics.MessageOutput, id, v)
	return outputArrived{r, v}
}

// gateRequest returns the request of a gate.
func (p *harness) gateRequest(id, tool, message string, change ...func(*topics.GateRequest)) gateAsked {
	p.TB.Helper()
	v := topics.GateRequest{
		GateID: id, SessionID: p.key, Kind: topics.GateTool, Tool: tool, Message: message,
		Origin: topics.GateOrigin{Agent: p.topics.Agent, Via: "turn"},
	}
	for _, f := range change {
		f(&v)
	}
	r, v := read(p, p.topics.GateRequests, "", v)
	return gateAsked{r, v}
}

// gateOutcome returns the outcome of a gate.
func (p *harness) gateOutcome(id string, status topics.GateStatus, change ...func(*topics.GateOutcome)) gateEnded {
	p.TB.Helper()
	v := topics.GateOutcome{GateID: id, SessionID: p.key, Kind: topics.GateTool, Status: status, Cause: topics.CauseHuman}
	for _, f := range change {
		f(&v)
	}
	r, v := read(p, p.topics.GateOutcomes, "", v)
	return gateEnded{r, v}
}

// control returns a record of session-control.
func (p *harness) control(action string) controlled {
	p.TB.Helper()
	r, v := read(p, p.topics.SessionControl, "", topics.Control{Action: action})
	return controlled{r, v}
}

// receipt returns the sink's receipt of an attempt, with what the attempt brought.
func (p *harness) receipt(a topics.Delivery, outcome topics.Outcome, answer peerwire.Answer, change ...func(*topics.Receipt)) receipted {
	p.TB.Helper()
	v := topics.Receipt{
		DeliveryID: a.DeliveryID, SessionID: a.SessionID, Attempt: a.Attempt, Route: a.Route, Outcome: outcome,
		AtMS: p.Now.UnixMilli(), Response: answer.Body(),
	}
	for _, f := range change {
		f(&v)
	}
	r, v := read(p, p.topics.PeerReceipts, "", v)
	return receipted{r, v}
}

// settle applies an event, and then the records that the group wrote to itself, and what the gates and the turn make of its others.
// It returns all effects.
func (p *harness) settle(e event) effects {
	p.TB.Helper()
	all := p.Handle(e)
	for i := 0; i < len(all); i++ {
		switch v := all[i].Value.(type) {
		case topics.PeerCommand:
			if all[i].Key == p.key {
				all = append(all, p.Handle(p.own(all[i].ID, v))...)
			} else if all[i].Key == labelKey("partner-b") {
				all = append(all, p.ofLabel(v)...)
			}
		case topics.GateRequest:
			all = append(all, p.gated(v)...)
		case topics.GateDecision:
			all = append(all, p.Handle(p.gateOutcome(v.GateID, topics.GateApproved))...)
		}
	}
	return all
}

// gated applies a request of the group as it is read, and, if it closes a gate, how the gate and its turn end.
func (p *harness) gated(g topics.GateRequest) effects {
	p.TB.Helper()
	r, g := read(p, p.topics.GateRequests, "", g)
	all := p.Handle(gateAsked{r, g})
	if g.Withdrawn != topics.CauseParentCannotAsk {
		return all
	}
	all = append(all, p.Handle(p.gateOutcome(g.GateID, topics.GateCancelled, because(g.Withdrawn)))...)
	return append(all, p.Handle(p.output("turn-1/0/answer/0", "", func(o *topics.Output) {
		o.RequestID, o.Error = &p.Read().Run.RunId, &topics.OutputError{Code: topics.CodeParentCannotAsk, Message: "cannot ask"}
	}))...)
}

func because(cause topics.GateCause) func(*topics.GateOutcome) {
	return func(o *topics.GateOutcome) { o.Cause = cause }
}

// ofLabel applies a command to the row of the approvals.
func (p *harness) ofLabel(c topics.PeerCommand) effects {
	p.TB.Helper()
	if p.label == nil {
		p.label = p.another(labelKey("partner-b"))
	}
	p.label.Now = p.Now
	return p.label.Handle(p.label.command(c))
}

// own returns the record of a command that the group has written to itself.
func (p *harness) own(id string, c topics.PeerCommand) commanded {
	p.TB.Helper()
	e := p.command(c)
	e.ID = id
	return e
}

// advance moves the clock by d. It applies the deadlines in that time, and the records that the group writes to itself.
func (p *harness) advance(d time.Duration) effects {
	p.TB.Helper()
	return p.Advance(d, p.settle)
}

// events returns what the audit records.
func events(es effects) (list []topics.PeerEvent) {
	for _, a := range machinetest.Values[topics.PeerAudit](es) {
		list = append(list, a.Event)
	}
	return list
}

// letter returns the reason of the only effect, which is a dead letter.
func letter(t machinetest.TB, es effects) string { return machinetest.Reason(t, es) }

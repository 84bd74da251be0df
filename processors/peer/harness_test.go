package peer

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/topics"
)

// tb is implemented by *testing.T and *rapid.T.
type tb interface {
	require.TestingT
	Helper()
}

// harness applies events to the row of one session. The row is encoded and decoded between two events, as in a broker, and so
// is every record that is read or written.
type harness struct {
	tb       tb
	topics   topics.Catalog
	config   Config
	settings *Settings // in force
	key      string    // the session
	now      time.Time
	row      []byte
	label    *harness // the row of partner-b's approvals
}

func newHarness(t tb, change ...func(*Config)) *harness {
	c, err := topics.For("harbor")
	require.NoError(t, err)
	p := &harness{
		tb: t, topics: c, key: "s1", now: time.UnixMilli(1_790_000_000_000).UTC(),
		settings: &Settings{
			Enabled: true, InstanceID: "hq-1", MaxHops: defaultMaxHops,
			Outbound: []Outbound{
				{ID: "tenant-a", Timeout: time.Minute},
				{ID: "tenant-b", Timeout: 10 * time.Second, AllowedAgents: []string{"front"}},
			},
			Inbound: []Inbound{{ID: "partner-b"}},
		},
	}
	p.config.Settings = func() *Settings { return p.settings }
	require.NoError(t, p.config.complete())
	for _, f := range change {
		f(&p.config)
	}
	return p
}

// configure changes the configuration in force.
func (p *harness) configure(change func(*Settings)) {
	next := *p.settings
	change(&next)
	p.settings = &next
}

// read returns a value as the group reads it from a topic, and the record of it.
func read[T any](p *harness, t topics.Topic[T], id string, v T) (*record, T) {
	p.tb.Helper()
	raw, err := t.Codec().Marshal(v)
	require.NoError(p.tb, err)
	d := t.Codec().Unmarshal(raw)
	require.NoError(p.tb, d.Err)
	return &record{Session: p.key, ID: id, Agent: p.topics.Agent, At: p.now, Value: raw}, d.Value
}

// toolCall returns a call of a tool. id is the record's turntable.id; that of a turn is {turn}/{step}/tool-use/{number}.
func (p *harness) toolCall(id, tool, input string, change ...func(*topics.ToolUseItem)) called {
	p.tb.Helper()
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
	p.tb.Helper()
	r, c := read(p, p.topics.PeerCommands, "", c)
	return commanded{r, c}
}

// output returns the output of a turn. id is the record's turntable.id; that of a turn is {turn}/{step}/answer/0.
func (p *harness) output(id, text string, change ...func(*topics.Output)) outputArrived {
	p.tb.Helper()
	v := topics.Output{SessionID: &p.key, Content: text, SourceAgent: p.topics.Agent, Timestamp: topics.Timestamp(p.now)}
	for _, f := range change {
		f(&v)
	}
	r, v := read(p, p.topics.MessageOutput, id, v)
	return outputArrived{r, v}
}

// gateRequest returns the request of a gate.
func (p *harness) gateRequest(id, tool, message string, change ...func(*topics.GateRequest)) gateAsked {
	p.tb.Helper()
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
	p.tb.Helper()
	v := topics.GateOutcome{GateID: id, SessionID: p.key, Kind: topics.GateTool, Status: status, Cause: topics.CauseHuman}
	for _, f := range change {
		f(&v)
	}
	r, v := read(p, p.topics.GateOutcomes, "", v)
	return gateEnded{r, v}
}

// control returns a record of session-control.
func (p *harness) control(action string) controlled {
	p.tb.Helper()
	r, v := read(p, p.topics.SessionControl, "", topics.Control{Action: action})
	return controlled{r, v}
}

// receipt returns the sink's receipt of an attempt, with what the attempt brought.
func (p *harness) receipt(a attemptAsked, outcome topics.Outcome, answer peerwire.Answer, change ...func(*topics.Receipt)) receipted {
	p.tb.Helper()
	v := topics.Receipt{
		DeliveryID: a.DeliveryID, SessionID: a.SessionID, Attempt: a.Attempt, Route: a.Route, Outcome: outcome,
		AtMS: p.now.UnixMilli(), Response: answer.Body(),
	}
	for _, f := range change {
		f(&v)
	}
	r, v := read(p, p.topics.PeerReceipts, "", v)
	return receipted{r, v}
}

// handle applies an event, checks the row and the records that were written, and returns the effects.
func (p *harness) handle(e event) effects {
	p.tb.Helper()
	state := p.state()
	had := state != nil
	reads := 0
	config := p.config
	config.Settings = func() *Settings { reads++; return p.settings }
	out := apply(state, e, p.now, config)
	require.LessOrEqual(p.tb, reads, 1, "an event sees one configuration")
	switch {
	case !out.Changed:
	case out.State == nil:
		require.True(p.tb, had, "only an existing row is deleted")
		p.row = nil
	default:
		p.set(out.State)
		require.LessOrEqual(p.tb, len(p.row), p.config.RowLimit)
		at, ok := rows.Deadline(p.row)
		require.True(p.tb, ok, "every row has a deadline")
		if _, timer := e.(deadlineCame); timer {
			require.Greater(p.tb, at, p.now.UnixMilli(), "the next deadline is in the future")
		}
	}
	for _, effect := range out.Effects {
		if m, ok := effect.(emit); ok {
			p.writes(m)
		}
	}
	return out.Effects
}

// writes checks that the record of an effect can be written and read.
func (p *harness) writes(m emit) {
	p.tb.Helper()
	require.NotEmpty(p.tb, m.ID, "%T", m.Value)
	switch v := m.Value.(type) {
	case attemptAsked:
		wrote(p, p.topics.PeerAttempts, topics.Delivery(v))
	case asked:
		wrote(p, p.topics.PeerCommands, topics.PeerCommand(v))
	case replySent:
		wrote(p, p.topics.PeerReplies, topics.PeerReply(v))
	case callbackAsked:
		wrote(p, p.topics.PeerCallbacks, topics.Output(v))
	case audited:
		require.NotEmpty(p.tb, v.InstanceID, "the key")
		wrote(p, p.topics.PeerEvents, topics.PeerAudit(v))
	case toolAnswered:
		wrote(p, p.topics.ToolUseResult, v.Result)
	case messageSent:
		wrote(p, p.topics.MessageInput, v.Message)
	case turnCancelled:
		wrote(p, p.topics.SessionControl, v.Control)
	case gateRequested:
		wrote(p, p.topics.GateRequests, v.Request)
	case gateDecided:
		wrote(p, p.topics.GateDecisions, v.Decision)
	}
}

func wrote[T any](p *harness, t topics.Topic[T], v T) {
	p.tb.Helper()
	raw, err := t.Codec().Marshal(v)
	require.NoError(p.tb, err)
	require.NoError(p.tb, t.Codec().Unmarshal(raw).Err, "%s: %s", t.Name(), raw)
	require.LessOrEqual(p.tb, len(raw)+1024, p.config.RecordLimit, "%s: with key and headers", t.Name())
}

// settle applies an event, and then the records that the group wrote to itself, and what the gates and the turn make of its others.
// It returns all effects.
func (p *harness) settle(e event) effects {
	p.tb.Helper()
	all := p.handle(e)
	for i := 0; i < len(all); i++ {
		m, ok := all[i].(emit)
		if !ok {
			continue
		}
		switch v := m.Value.(type) {
		case asked:
			if m.Key == "" || m.Key == p.key {
				all = append(all, p.handle(p.own(m.ID, v))...)
			} else if m.Key == labelKey("partner-b") {
				all = append(all, p.ofLabel(topics.PeerCommand(v))...)
			}
		case gateRequested:
			all = append(all, p.gated(v.Request)...)
		case gateDecided:
			all = append(all, p.handle(p.gateOutcome(v.Decision.GateID, topics.GateApproved))...)
		}
	}
	return all
}

// gated applies a request of the group as it is read, and, if it closes a gate, how the gate and its turn end.
func (p *harness) gated(g topics.GateRequest) effects {
	p.tb.Helper()
	r, g := read(p, p.topics.GateRequests, "", g)
	all := p.handle(gateAsked{r, g})
	if g.Withdrawn != topics.CauseParentCannotAsk {
		return all
	}
	all = append(all, p.handle(p.gateOutcome(g.GateID, topics.GateCancelled, because(g.Withdrawn)))...)
	return append(all, p.handle(p.output("turn-1/0/answer/0", "", func(o *topics.Output) {
		o.RequestID, o.Error = &p.state().Run.RunId, &topics.OutputError{Code: topics.CodeParentCannotAsk, Message: "cannot ask"}
	}))...)
}

func because(cause topics.GateCause) func(*topics.GateOutcome) {
	return func(o *topics.GateOutcome) { o.Cause = cause }
}

// ofLabel applies a command to the row of the approvals.
func (p *harness) ofLabel(c topics.PeerCommand) effects {
	p.tb.Helper()
	if p.label == nil {
		p.label = &harness{tb: p.tb, topics: p.topics, config: p.config, settings: p.settings, key: labelKey("partner-b")}
	}
	p.label.now = p.now
	return p.label.handle(p.label.command(c))
}

// own returns the record of a command that the group has written to itself.
func (p *harness) own(id string, c asked) commanded {
	p.tb.Helper()
	e := p.command(topics.PeerCommand(c))
	e.ID = id
	return e
}

// set replaces the row.
func (p *harness) set(s *peerrow.State) {
	p.tb.Helper()
	raw, err := peerrow.Table.Marshal(s)
	require.NoError(p.tb, err)
	p.row = raw
}

// state returns the row, nil if there is none.
func (p *harness) state() *peerrow.State {
	p.tb.Helper()
	if p.row == nil {
		return nil
	}
	s, err := peerrow.Table.Unmarshal(p.row)
	require.NoError(p.tb, err)
	return s
}

// due returns the earliest deadline of the row.
func (p *harness) due() (at time.Time, ok bool) {
	if p.row == nil {
		return time.Time{}, false
	}
	ms, ok := rows.Deadline(p.row)
	return time.UnixMilli(ms).UTC(), ok
}

// advance moves the clock by d. It applies the deadlines in that time, and the records that the group writes to itself.
func (p *harness) advance(d time.Duration) (all effects) {
	p.tb.Helper()
	end := p.now.Add(d)
	for {
		at, ok := p.due()
		if !ok || at.After(end) {
			p.now = end
			return all
		}
		if at.After(p.now) {
			p.now = at
		}
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

// onlyValue returns the only value of one topic.
func onlyValue[V value](t tb, es effects) V {
	t.Helper()
	list := valuesOf[V](es)
	require.Len(t, list, 1, "%v", es)
	return list[0]
}

// events returns what the audit records.
func events(es effects) (list []topics.PeerEvent) {
	for _, a := range valuesOf[audited](es) {
		list = append(list, a.Event)
	}
	return list
}

// letter returns the reason of the only effect, which is a dead letter.
func letter(t tb, es effects) string {
	t.Helper()
	require.Len(t, es, 1, "%v", es)
	require.IsType(t, deadLetter{}, es[0])
	return es[0].(deadLetter).Reason
}

package delegation

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
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
	tb     tb
	topics topics.Catalog
	agent  string
	config Config
	key    string // the session
	now    time.Time
	row    []byte
}

func newHarness(t tb, change ...func(*Config)) *harness {
	c, err := topics.For("front")
	require.NoError(t, err)
	p := &harness{
		tb: t, topics: c, agent: "front", key: "s1", now: time.UnixMilli(1_790_000_000_000).UTC(),
	}
	p.config.Agents, p.config.Peers = []string{"research", "books"}, true
	for _, f := range change {
		f(&p.config)
	}
	require.NoError(t, p.config.complete())
	return p
}

// read returns a value as the group reads it from a topic, and the record of it.
func read[T any](p *harness, t topics.Topic[T], id string, v T) (*record, T) {
	p.tb.Helper()
	raw, err := t.Codec().Marshal(v)
	require.NoError(p.tb, err)
	d := t.Codec().Unmarshal(raw)
	require.NoError(p.tb, d.Err)
	return &record{Session: p.key, ID: id, At: p.now, Value: raw}, d.Value
}

func chat(thread, user string) topics.Origin {
	return topics.Origin{
		Channel: "slack", Account: "main", Recipient: "C1", Thread: thread, MessageID: "m-" + thread, User: user, UserName: "Mira",
		Adapter: topics.Raw(`{"ts":"1.2"}`),
	}
}

// from gives a call an origin.
func from(o topics.Origin) func(*topics.ToolUseItem) {
	return func(i *topics.ToolUseItem) { i.Origin = topics.EncodeOrigin(o) }
}

// deep gives a call a depth.
func deep(n int64) func(*topics.ToolUseItem) {
	return func(i *topics.ToolUseItem) { i.Depth = n }
}

// callOf returns a call of a tool. Its tool_use_id is use, its record's turntable.id is "turn/" and use.
func (p *harness) callOf(tool, use, input string, change ...func(*topics.ToolUseItem)) called {
	p.tb.Helper()
	v := topics.ToolUseItem{ToolUseID: &use, Name: &tool, SessionID: &p.key, TotalTools: 1}
	if input != "" {
		v.Input = topics.Raw(input)
	}
	for _, f := range change {
		f(&v)
	}
	r, v := read(p, p.topics.ToolUse, "turn/"+use, v)
	return called{r, v}
}

const asking = `{"agent_id":"research","message":"count the boats"}`

// delegation returns a call of agent_send_async that comes from a conversation.
func (p *harness) delegation(use string, change ...func(*topics.ToolUseItem)) called {
	p.tb.Helper()
	return p.callOf(SendTool, use, asking, append([]func(*topics.ToolUseItem){from(chat("t1", "U1"))}, change...)...)
}

func (p *harness) cancellation(use, callbackID string) called {
	p.tb.Helper()
	return p.callOf(CancelTool, use, string(object(member{"callback_id", callbackID})))
}

// reply returns a record of delegation-replies.
func (p *harness) reply(r topics.DelegationReply) replied {
	p.tb.Helper()
	record, r := read(p, p.topics.DelegationReplies, "", r)
	return replied{record, r}
}

// completed returns the reply of the target of a delegation.
func (p *harness) completed(s taskSent, text string) replied {
	p.tb.Helper()
	task := taskOf(p.tb, s)
	return p.reply(topics.DelegationReply{
		SessionID: task.SessionID, CallbackID: task.CallbackID, Status: topics.DelegationCompleted, Content: text,
		AtMS: p.now.UnixMilli(),
	})
}

// output returns the output of a turn of the session.
func (p *harness) output(requestID, text string, change ...func(*topics.Output)) outputArrived {
	p.tb.Helper()
	v := topics.Output{SessionID: &p.key, Content: text, SourceAgent: p.topics.Agent, Timestamp: topics.Timestamp(p.now)}
	if requestID != "" {
		v.RequestID = &requestID
	}
	for _, f := range change {
		f(&v)
	}
	r, v := read(p, p.topics.MessageOutput, "turn/"+requestID+"/output", v)
	return outputArrived{r, v}
}

func (p *harness) control(action string) controlled {
	p.tb.Helper()
	r, v := read(p, p.topics.SessionControl, "", topics.Control{Action: action})
	return controlled{r, v}
}

func (p *harness) peerReply(r topics.PeerReply) peerReplied {
	p.tb.Helper()
	record, r := read(p, p.topics.PeerReplies, "peer-reply", r)
	return peerReplied{record, r}
}

// handle applies an event, checks the row and the records that were written, and returns the effects.
func (p *harness) handle(e event) effects {
	p.tb.Helper()
	state := p.state()
	had := state != nil
	out := apply(state, e, p.agent, p.now, p.config)
	switch {
	case !out.Changed:
	case out.State == nil:
		require.True(p.tb, had, "only an existing row is deleted")
		p.row = nil
	default:
		raw, err := delegationrow.Table.Marshal(out.State)
		require.NoError(p.tb, err)
		p.row = raw
		require.LessOrEqual(p.tb, len(p.row), p.config.RowLimit)
		at, ok := rows.Deadline(p.row)
		require.True(p.tb, ok, "every row has a deadline")
		if _, timer := e.(deadlineCame); timer {
			require.Greater(p.tb, at, p.now.UnixMilli(), "the next deadline is in the future")
		}
		require.True(p.tb, len(out.State.Pending) == 0 || out.State.InFlight != nil, "what waits, waits for something")
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
	require.NotEmpty(p.tb, m.Key, "%T", m.Value)
	switch v := m.Value.(type) {
	case callAnswered:
		wrote(p, p.topics.ToolUseResult, topics.ToolUseResult(v))
	case statusWritten:
		wrote(p, p.topics.DelegationStatus, topics.Delegation(v))
	case callbackSent:
		wrote(p, p.topics.MessageInput, topics.Message(v))
	case peerAsked:
		wrote(p, p.topics.PeerCommands, topics.PeerCommand(v))
	case replySent:
		wrote(p, p.topics.DelegationReplies, v.Reply)
	case taskSent:
		wrote(p, p.topics.MessageInput, v.Message)
	case taskCancelled:
		wrote(p, p.topics.SessionControl, v.Control)
	default:
		require.Failf(p.tb, "no topic", "%T", v)
	}
}

func wrote[T any](p *harness, t topics.Topic[T], v T) {
	p.tb.Helper()
	raw, err := t.Codec().Marshal(v)
	require.NoError(p.tb, err)
	require.NoError(p.tb, t.Codec().Unmarshal(raw).Err, "%s: %s", t.Name(), raw)
	require.LessOrEqual(p.tb, len(raw)+1024, p.config.RecordLimit, "%s: with key and headers", t.Name())
}

// settle applies an event, and then the replies that the group wrote to itself. It returns all effects.
func (p *harness) settle(e event) effects {
	p.tb.Helper()
	all := p.handle(e)
	for i := 0; i < len(all); i++ {
		if r, ok := ownReply(all[i]); ok {
			all = append(all, p.handle(p.reply(r))...)
		}
	}
	return all
}

// ownReply returns the reply of an effect if the group wrote it to itself.
func ownReply(e effect) (r topics.DelegationReply, ok bool) {
	m, ok := e.(emit)
	if !ok {
		return r, false
	}
	sent, ok := m.Value.(replySent)
	return sent.Reply, ok && sent.Agent == "front"
}

// state returns the row, nil if there is none.
func (p *harness) state() *delegationrow.State {
	p.tb.Helper()
	if p.row == nil {
		return nil
	}
	s, err := delegationrow.Table.Unmarshal(p.row)
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

// advance moves the clock by d. It applies the deadlines in that time, and the replies that the group writes to itself.
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

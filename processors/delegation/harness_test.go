package delegation

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

type effects = machinetest.Effects

// start is the time of a harness when it begins.
var start = time.UnixMilli(1_790_000_000_000).UTC()

// harness applies events to the row of one session.
type harness struct {
	machinetest.World[*delegationrow.State, event]
	topics topics.Catalog
	agents map[string]topics.Catalog
	config Config
	key    string // the session
}

// newHarness returns the row of a session of front.
func newHarness(t machinetest.TB, change ...func(*Config)) *harness {
	return newAgent(t, "front", change...)
}

func newAgent(t machinetest.TB, agent string, change ...func(*Config)) *harness {
	p := &harness{agents: map[string]topics.Catalog{}, key: "s1"}
	p.config.Agents, p.config.Peers = []string{"research", "books"}, true
	for _, f := range change {
		f(&p.config)
	}
	require.NoError(t, p.config.complete())
	var err error
	p.topics, err = topics.For(agent)
	require.NoError(t, err)
	for _, name := range p.config.Agents {
		p.agents[name], err = topics.For(name)
		require.NoError(t, err)
	}
	p.World = machinetest.World[*delegationrow.State, event]{
		TB: t, Table: delegationrow.Table, Due: deadlineCame{}, Now: start,
		Apply: func(row *delegationrow.State, e event) (machine.Outcome[*delegationrow.State], error) {
			p.RowLimit, p.RecordLimit = p.config.RowLimit, p.config.RecordLimit
			out := apply(row, p.key, e, p.Now, p.topics, p.agents, p.config)
			require.True(t, len(out.Row.GetPending()) == 0 || out.Row.InFlight != nil, "what waits, waits for something")
			return out, nil
		},
	}
	return p
}

// read returns a value as the group reads it from a topic, and the record of it.
func read[T any](p *harness, t topics.Topic[T], id string, v T) (*machine.Record, T) {
	p.TB.Helper()
	r, v := machinetest.Record(&p.World, t, v)
	r.ID = id
	return r, v
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
	p.TB.Helper()
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
	p.TB.Helper()
	return p.callOf(SendTool, use, asking, append([]func(*topics.ToolUseItem){from(chat("t1", "U1"))}, change...)...)
}

func (p *harness) cancellation(use, callbackID string) called {
	p.TB.Helper()
	return p.callOf(CancelTool, use, string(object(member{"callback_id", callbackID})))
}

// reply returns a record of delegation-replies.
func (p *harness) reply(r topics.DelegationReply) replied {
	p.TB.Helper()
	record, r := read(p, p.topics.DelegationReplies, "", r)
	return replied{record, r}
}

// completed returns the reply of the target of a delegation.
func (p *harness) completed(s sentTask, text string) replied {
	p.TB.Helper()
	task := taskOf(p.TB, s)
	return p.reply(topics.DelegationReply{
		SessionID: task.SessionID, CallbackID: task.CallbackID, Status: topics.DelegationCompleted, Content: text,
		AtMS: p.Now.UnixMilli(),
	})
}

// output returns the output of a turn of the session.
func (p *harness) output(requestID, text string, change ...func(*topics.Output)) outputArrived {
	p.TB.Helper()
	v := topics.Output{SessionID: &p.key, Content: text, SourceAgent: p.topics.Agent, Timestamp: topics.Timestamp(p.Now)}
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
	p.TB.Helper()
	r, v := read(p, p.topics.SessionControl, "", topics.Control{Action: action})
	return controlled{r, v}
}

func (p *harness) peerReply(r topics.PeerReply) peerReplied {
	p.TB.Helper()
	record, r := read(p, p.topics.PeerReplies, "peer-reply", r)
	return peerReplied{record, r}
}

// settle applies an event, and then the replies that the group wrote to itself. It returns all effects.
func (p *harness) settle(e event) effects {
	p.TB.Helper()
	all := p.Handle(e)
	for i := 0; i < len(all); i++ {
		if r, ok := all[i].Value.(topics.DelegationReply); ok && all[i].Topic == p.topics.DelegationReplies.Name() {
			all = append(all, p.Handle(p.reply(r))...)
		}
	}
	return all
}

// advance moves the clock by d. It applies the deadlines in that time, and the replies that the group writes to itself.
func (p *harness) advance(d time.Duration) effects {
	p.TB.Helper()
	return p.Advance(d, p.settle)
}

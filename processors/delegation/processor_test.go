package delegation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_000).UTC()

// pair runs the groups of two agents without a broker: front delegates to research, and research to front.
type pair struct {
	*processortest.Driver
	front, research topics.Catalog
	calls           *processortest.Input[topics.ToolUseItem]
	answers         *processortest.Output[topics.ToolUseResult]
	status          *processortest.Output[topics.Delegation]
	callbacks       *processortest.Output[topics.Message]
	tasks           *processortest.Output[topics.Message]
	cancels         *processortest.Output[topics.Control]
	letters         *processortest.Output[[]byte]
	table           *processortest.GroupTable[*delegationrow.State]
}

func newPair(t *testing.T, config delegation.Config) *pair {
	t.Helper()
	front, err := topics.For("front", topics.WithChannels())
	require.NoError(t, err)
	research, err := topics.For("research", topics.WithChannels())
	require.NoError(t, err)
	config.Agents = []string{"research"}
	one, err := delegation.Graph("front", config)
	require.NoError(t, err)
	two, err := delegation.Graph("research", delegation.Config{Agents: []string{"front"}})
	require.NoError(t, err)
	d := processortest.New(t, noon, one, two)
	return &pair{
		Driver: d, front: front, research: research, calls: processortest.In(d, front.ToolUse),
		answers: processortest.Out(d, front.ToolUseResult), status: processortest.Out(d, front.DelegationStatus),
		callbacks: processortest.Out(d, front.MessageInput), tasks: processortest.Out(d, research.MessageInput),
		cancels: processortest.Out(d, research.SessionControl), letters: processortest.OutRaw(d, "front-delegations-dlq"),
		table: processortest.Table(d, front.DelegationsGroup(), delegationrow.Table.Codec()),
	}
}

var origin = topics.Origin{Channel: "slack", Account: "main", Recipient: "C1", Thread: "7.1", User: "U1"}

// delegate writes a call of agent_send_async and returns the message of its task.
func (p *pair) delegate(session, use string) processortest.Record[topics.Message] {
	name := delegation.SendTool
	p.calls.Pipe(session, topics.ToolUseItem{
		ToolUseID: &use, Name: &name, Input: topics.Raw(`{"agent_id":"research","message":"count the boats"}`), SessionID: &session,
		TotalTools: 1, Origin: topics.EncodeOrigin(origin),
	}, processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte("turn/" + use)}))
	return p.tasks.Next()
}

// answer writes the output of the task, as the turn of research does.
func (p *pair) answer(task processortest.Record[topics.Message], text string) {
	request, _ := topics.Lookup(task.Value.Metadata, "request_id")
	metadata, _ := topics.Lookup(task.Value.Metadata, topics.MetaTask)
	session := task.Key
	processortest.In(p.Driver, p.research.MessageOutput).Pipe(session, topics.Output{
		SessionID: &session, Content: text, SourceAgent: "research", RequestID: topics.TextOf(request), ReplyTo: topics.DelegationRoute(metadata),
	}, processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte("turn-of-" + session)}))
}

func TestResultComesBackToTheOrigin(t *testing.T) {
	p := newPair(t, delegation.Config{Prompts: func(o topics.Origin) string { return "Be brief in " + o.Recipient + "." }})
	task := p.delegate("s1", "call_1")
	a := p.answers.Next()
	require.Equal(t, "turn/call_1/result", a.ID())
	require.Equal(t, "success", *a.Value.Status)
	require.Equal(t, topics.DelegationOpen, p.status.Next().Value.Status)
	require.Equal(t, *task.Value.SessionID, task.Key)
	p.Advance(time.Second)
	p.answer(task, "42 boats")

	reply := processortest.Out(p.Driver, p.front.DelegationReplies).Next()
	require.Equal(t, "s1", reply.Key, "research writes to the topic of front")
	d := p.status.Next()
	require.Equal(t, "42 boats", d.Value.Result)
	require.Equal(t, "s1", d.Key)
	m := p.callbacks.Next()
	require.Equal(t, "s1", m.Key)
	raw, _ := topics.Lookup(m.Value.Metadata, topics.MetaOrigin)
	to, err := topics.DecodeOrigin(raw)
	require.NoError(t, err)
	require.Equal(t, origin, to)
	prompt, _ := topics.Lookup(m.Value.Metadata, topics.MetaPrompt)
	require.Equal(t, "Be brief in C1.\n\n"+delegation.CallbackPrompt, *topics.TextOf(prompt))
	require.Equal(t, "[From: hand:research] Result of the delegation call_1 (completed), not written by the user:\n42 boats",
		topics.Text(m.Value.Content))
	require.NoError(t, p.Replay())
	require.Zero(t, p.letters.Len())
}

func TestDeadlineCancelsTheTask(t *testing.T) {
	p := newPair(t, delegation.Config{Deadline: time.Minute, RememberFor: time.Hour, CallbackWait: time.Hour})
	task := p.delegate("s1", "call_1")
	p.Advance(time.Minute)
	c := p.cancels.Next()
	require.Equal(t, task.Key, c.Key)
	require.Equal(t, topics.ActionCancel, c.Value.Action)
	require.Contains(t, topics.Text(p.callbacks.Next().Value.Content), "(timed_out)")
	p.answer(task, "late")
	p.answers.Drain()
	require.Len(t, p.status.Drain(), 2)
	require.Len(t, processortest.Out(p.Driver, p.front.DelegationReplies).Drain(), 2)
	require.Zero(t, p.callbacks.Len())
	p.Advance(2 * time.Hour)
	require.Empty(t, p.table.Keys())
}

func TestPurgeOfTheSessionAnnouncesNothing(t *testing.T) {
	p := newPair(t, delegation.Config{})
	task := p.delegate("s1", "call_1")
	processortest.In(p.Driver, p.front.SessionControl).Pipe("s1", topics.Control{Action: topics.ActionPurge})
	require.Equal(t, task.Key, p.cancels.Next().Key)
	p.answer(task, "late")
	require.Zero(t, p.callbacks.Len())
	p.answers.Drain()
	list := p.status.Drain()
	require.Equal(t, topics.DelegationCancelled, list[len(list)-1].Value.Status)
	processortest.Out(p.Driver, p.front.DelegationReplies).Drain()
	p.Advance(time.Hour)
	require.Empty(t, p.table.Keys())
}

func TestDamagedRowOfASessionIsKeptAndAPurgeDeletesIt(t *testing.T) {
	p := newPair(t, delegation.Config{})
	raw := processortest.Table(p.Driver, p.front.DelegationsGroup(), bytesCodec{})
	raw.Put("s1", []byte{0xff})
	name, use := delegation.SendTool, "a"
	p.calls.Pipe("s1", topics.ToolUseItem{ToolUseID: &use, Name: &name, Input: topics.Raw(`{}`)})
	require.Contains(t, string(p.letters.Next().Headers[topics.HeaderErrorReason]), "cannot be decoded")
	require.Equal(t, []byte{0xff}, raw.Raw("s1"))
	processortest.In(p.Driver, p.front.SessionControl).Pipe("s1", topics.Control{Action: topics.ActionPurge})
	require.Nil(t, raw.Raw("s1"))
}

// bytesCodec reads and writes the bytes of rows.
type bytesCodec struct{}

func (bytesCodec) Marshal(raw []byte) ([]byte, error) { return raw, nil }

func (bytesCodec) Unmarshal(raw []byte) codec.Decoded[[]byte] {
	return codec.Decoded[[]byte]{Value: raw}
}

func TestPoisonIsDeadLetteredAndProcessingContinues(t *testing.T) {
	p := newPair(t, delegation.Config{})
	p.calls.PipeRaw("s1", []byte(`{`))
	in := processortest.In(p.Driver, p.front.DelegationReplies)
	in.PipeRaw("s1", []byte(`{"session_id":"s1","callback_id":"a","status":"open"}`))
	in.Pipe("s2", topics.DelegationReply{SessionID: "s1", CallbackID: "a", Status: topics.DelegationCompleted, Content: "a secret"})
	letters := p.letters.Drain()
	require.Len(t, letters, 3)
	for _, l := range letters[1:] {
		require.Empty(t, l.Value, "results are not in dead letters")
	}
	p.answer(p.delegate("s1", "call_1"), "42 boats")
	p.callbacks.Next()
	p.answers.Drain()
	p.status.Drain()
	processortest.Out(p.Driver, p.front.DelegationReplies).Drain()
}

func TestAgentMayDelegateToItself(t *testing.T) {
	graph, err := delegation.Graph("front", delegation.Config{Agents: []string{"front"}, Peers: true})
	require.NoError(t, err)
	require.NoError(t, graph.Validate())
	c, err := topics.For("front", topics.WithChannels(), topics.WithPeers())
	require.NoError(t, err)
	d := processortest.New(t, noon, graph)
	name, use, session := delegation.SendTool, "a", "s1"
	processortest.In(d, c.ToolUse).Pipe(session, topics.ToolUseItem{
		ToolUseID: &use, Name: &name, SessionID: &session, Input: topics.Raw(`{"agent_id":"front","message":"x","timeout_seconds":1}`),
	})
	require.NotEqual(t, session, processortest.Out(d, c.MessageInput).Next().Key)
	d.Advance(time.Second)
	require.Equal(t, topics.ActionCancel, processortest.Out(d, c.SessionControl).Next().Value.Action)
	processortest.In(d, c.ToolUse).Pipe(session, topics.ToolUseItem{
		ToolUseID: &use, Name: &name, SessionID: &session, Input: topics.Raw(`{"agent_id":"peer:hq-2","message":"x"}`),
	})
	asked := processortest.Out(d, c.PeerCommands).Next()
	require.Equal(t, session, asked.Key)
	processortest.In(d, c.PeerReplies).Pipe(session, topics.PeerReply{
		TaskID: asked.Value.TaskID, PeerID: "hq-2", State: topics.PeerDone, Body: topics.Raw(`{"status":"success","result":"42 boats"}`),
	})
	list := processortest.Out(d, c.DelegationStatus).Drain()
	require.Equal(t, "42 boats", list[len(list)-1].Value.Result)
	processortest.Out(d, c.ToolUseResult).Drain()
	processortest.Out(d, c.DelegationReplies).Drain()
}

func TestGraphChecksItsArguments(t *testing.T) {
	for want, c := range map[string]delegation.Config{
		`Agents has "a" twice`: {Agents: []string{"a", "a"}}, "Deadline is -1ns": {Deadline: -1}, "OpenLimit is -1": {OpenLimit: -1},
		"DepthLimit is -1": {DepthLimit: -1}, "CallbackWait is -1ns": {CallbackWait: -1}, "RememberFor is -1ns": {RememberFor: -1},
		"CallbackPrompt has 8193 bytes": {CallbackPrompt: strings.Repeat("x", 8193)}, "RecordLimit is 1000": {RecordLimit: 1000},
		"RowLimit is 2097152": {RowLimit: 2 << 20},
	} {
		_, err := delegation.Graph("front", c)
		require.ErrorIs(t, err, delegation.ErrConfig)
		require.ErrorContains(t, err, want)
	}
	_, err := delegation.Graph(" ", delegation.Config{})
	require.Error(t, err)
	_, err = delegation.Graph("front", delegation.Config{Agents: []string{" "}})
	require.Error(t, err)
}

func TestTools(t *testing.T) {
	tools := delegation.Tools("research", "books")
	require.Len(t, tools, 2)
	require.Equal(t, delegation.SendTool, tools[0].Name)
	require.Contains(t, tools[0].Description, "Agents: research, books.")
	require.Equal(t, delegation.CancelTool, tools[1].Name)
	for _, tool := range tools {
		kind, ok := topics.Lookup(tool.InputSchema, "type")
		require.True(t, ok, "%s is JSON", tool.InputSchema)
		require.Equal(t, `"object"`, string(kind))
	}
	require.NotContains(t, delegation.Tools()[0].Description, "Agents:")
}

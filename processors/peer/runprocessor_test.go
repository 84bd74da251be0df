package peer_test

import (
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// instance runs the groups of an instance without a broker: the tasks and the chain.
type instance struct {
	*processortest.Driver
	topics   topics.Catalog
	commands *processortest.Input[topics.PeerCommand]
	outputs  *processortest.Input[topics.Output]
	controls *processortest.Input[topics.Control]
	gates    *processortest.Input[topics.GateRequest]
	outcomes *processortest.Input[topics.GateOutcome]
	requests *processortest.Output[topics.GateRequest]
	messages *processortest.Output[topics.Message]
	replies  *processortest.Output[topics.PeerReply]
	audit    *processortest.Output[topics.PeerAudit]
	letters  *processortest.Output[[]byte]
	table    *processortest.GroupTable[*peerrow.State]
}

func configuration() *peer.Settings {
	return &peer.Settings{Enabled: true, InstanceID: "hq-1", MaxHops: 4, Inbound: []peer.Inbound{{ID: "partner-b"}}}
}

func newInstance(t *testing.T, config peer.Config) *instance {
	t.Helper()
	c, err := topics.For("harbor", topics.WithPeers())
	require.NoError(t, err)
	config.Settings, config.Gates = configuration, true
	tasks, err := peer.Graph("harbor", config)
	require.NoError(t, err)
	chain, err := peer.ChainGraph("harbor")
	require.NoError(t, err)
	d := processortest.New(t, noon, tasks, chain)
	return &instance{
		Driver: d, topics: c, commands: processortest.In(d, c.PeerCommands), outputs: processortest.In(d, c.MessageOutput),
		controls: processortest.In(d, c.SessionControl), gates: processortest.In(d, c.GateRequests),
		outcomes: processortest.In(d, c.GateOutcomes), requests: processortest.Out(d, c.GateRequests),
		messages: processortest.Out(d, c.MessageInput), replies: processortest.Out(d, c.PeerReplies),
		audit: processortest.Out(d, c.PeerAudit), letters: processortest.OutRaw(d, "harbor-peer-tasks-dlq"),
		table: processortest.Table(d, c.PeerTasksGroup(), peerrow.Table.Codec()),
	}
}

// run writes the command of a door, and returns the session and the ID of the run.
func (b *instance) run(t *testing.T, task, agent string, change ...func(*topics.PeerCommand)) (session, runID string) {
	t.Helper()
	req := peerwire.Request{TaskID: task, ParentInstanceID: "a-1", Content: "count the rows", Path: peerwire.Path{Hops: 1}}
	c := topics.PeerCommand{
		Kind: topics.PeerRun, TaskID: task, InboundID: "partner-b", Agent: agent, Request: req.Body(), Hash: req.Hash(), Waiter: "w1",
	}
	for _, f := range change {
		f(&c)
	}
	session = peerwire.SessionID("partner-b", task)
	b.commands.Pipe(session, c)
	row, _ := b.table.Get(session)
	return session, row.GetRun().GetRunId()
}

func (b *instance) answer(session, runID, text string) {
	b.outputs.Pipe(session, topics.Output{SessionID: &session, Content: text, SourceAgent: "harbor", RequestID: &runID},
		processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte("turn-1/0/answer/0")}))
}

func TestTaskOfAPeerIsRunAnsweredAuditedAndCalledBack(t *testing.T) {
	b := newInstance(t, peer.Config{})
	session, id := b.run(t, "t-9", "harbor", func(c *topics.PeerCommand) {
		c.Detached, c.CallbackService, c.CallbackToken = true, "partner-b-cb", "T7"
	})
	m := b.messages.Next()
	require.Equal(t, session, m.Key)
	require.Equal(t, id+"/message", m.ID())
	b.Advance(time.Second)
	b.answer(session, id, "42 rows")

	done := b.replies.Next()
	require.Equal(t, session, done.Key)
	require.Equal(t, topics.PeerDone, done.Value.State)
	reply, err := peerwire.ReadReply(done.Value.Body, "t-9")
	require.NoError(t, err)
	require.Equal(t, "42 rows", reply.Result)

	var records []topics.PeerAudit
	for _, r := range b.audit.Drain() {
		require.Equal(t, "t-9", r.Key)
		records = append(records, r.Value)
	}
	require.Len(t, records, 2)
	require.Equal(t, topics.PeerReceived, records[0].Event)
	require.Equal(t, topics.PeerCompleted, records[1].Event)
	require.Empty(t, peer.Verify(peer.Chain{Records: records}))

	callback := processortest.Out(b.Driver, b.topics.PeerCallbacks).Next()
	require.Equal(t, id+"/callback", callback.ID())
	require.Equal(t, "partner-b-cb", topics.ServiceOf(callback.Value.ReplyTo))
	require.Equal(t, "T7", topics.TokenOf(callback.Value.ReplyTo))
	require.Equal(t, string(done.Value.Body), callback.Value.Content)

	b.run(t, "t-9", "harbor")
	require.Equal(t, "w1", b.replies.Next().Value.Waiter, "the stored reply")
	require.Zero(t, b.messages.Len())
	require.NoError(t, b.Replay())
	require.Zero(t, b.letters.Len())
}

func TestEndedRunIsForgotten(t *testing.T) {
	b := newInstance(t, peer.Config{RememberFor: time.Hour})
	session, id := b.run(t, "t-9", "harbor")
	b.answer(session, id, "42 rows")
	b.Advance(time.Hour)
	require.Empty(t, b.table.Keys())
	_, again := b.run(t, "t-9", "harbor")
	require.NotEqual(t, id, again)
	require.Len(t, b.messages.Drain(), 2, "it is a new task")
	require.Len(t, b.replies.Drain(), 1)
	require.Len(t, b.audit.Drain(), 3)
}

func TestRunOfAnotherAgentUsesItsTopics(t *testing.T) {
	b := newInstance(t, peer.Config{Agents: []string{"pilot"}})
	pilot, err := topics.For("pilot")
	require.NoError(t, err)
	session, id := b.run(t, "t-9", "pilot")
	require.Equal(t, session, processortest.Out(b.Driver, pilot.MessageInput).Next().Key)
	require.Zero(t, b.messages.Len())
	b.answer(session, id, "the answer of another agent")
	require.Zero(t, b.replies.Len())
	b.commands.Pipe(session, topics.PeerCommand{Kind: topics.PeerLeave, TaskID: "t-9", InboundID: "partner-b", Waiter: "w1"})
	cancel := processortest.Out(b.Driver, pilot.SessionControl).Next().Value
	require.Equal(t, id, *cancel.RequestID)
	require.Equal(t, topics.PeerDone, b.replies.Next().Value.State)
	require.Len(t, b.audit.Drain(), 2)
}

func TestRunOfAnAgentThatIsNotConfiguredEndsAtOnce(t *testing.T) {
	b := newInstance(t, peer.Config{RunTime: time.Minute})
	b.run(t, "t-9", "unknown")
	require.Contains(t, string(b.replies.Next().Value.Body), "the agent does not run tasks")
	require.Len(t, b.audit.Drain(), 2)
}

func TestOpenGateRejectsTheRunAtItsDeadline(t *testing.T) {
	b := newInstance(t, peer.Config{GateGrace: time.Second})
	session, id := b.run(t, "t-9", "harbor")
	b.gates.Pipe(session, topics.GateRequest{
		GateID: "g1", SessionID: session, Kind: topics.GateTool, Tool: "pay", Message: "May the agent pay?",
	})
	b.Advance(999 * time.Millisecond)
	require.Zero(t, b.replies.Len())
	b.Advance(time.Millisecond)
	requests := b.requests.Drain()
	require.Len(t, requests, 2)
	require.Equal(t, "g1", requests[0].Value.Origin.ParentGateID, "what can be approved later")
	require.Equal(t, topics.CauseParentCannotAsk, requests[1].Value.Withdrawn)
	require.Zero(t, b.replies.Len(), "the gate may have been approved before")
	b.outcomes.Pipe(session, topics.GateOutcome{
		GateID: "g1", SessionID: session, Kind: topics.GateTool, Status: topics.GateCancelled, Cause: topics.CauseParentCannotAsk,
	})
	reply, err := peerwire.ReadReply(b.replies.Next().Value.Body, "t-9")
	require.NoError(t, err)
	require.Equal(t, peerwire.StatusRejected, reply.Status)
	require.Equal(t, "pay: May the agent pay?", reply.PendingApprovalSummary)
	b.answer(session, id, "paid")
	require.Zero(t, b.replies.Len())
	require.Len(t, b.messages.Drain(), 1)
	require.True(t, b.audit.Drain()[1].Value.PendingApproval)
}

func TestDamagedRowOfASessionIsKeptAndAPurgeDeletesIt(t *testing.T) {
	b := newInstance(t, peer.Config{})
	raw := processortest.Table(b.Driver, b.topics.PeerTasksGroup(), bytesCodec{})
	session := peerwire.SessionID("partner-b", "t-9")
	raw.Put(session, []byte{0xff})
	b.commands.Pipe(session, topics.PeerCommand{Kind: topics.PeerAsk, TaskID: "t-9", InboundID: "partner-b", Waiter: "w1"})
	require.Contains(t, string(b.letters.Next().Headers[topics.HeaderErrorReason]), "cannot be decoded")
	require.Equal(t, []byte{0xff}, raw.Raw(session))
	b.controls.Pipe(session, topics.Control{Action: topics.ActionPurge})
	require.Nil(t, raw.Raw(session))
}

func TestGraphChecksItsArguments(t *testing.T) {
	_, err := peer.Graph("harbor", peer.Config{})
	require.ErrorContains(t, err, "Settings is nil")
	for want, c := range map[string]peer.Config{
		`Agents has "harbor" twice`: {Agents: []string{"harbor"}}, "TaskLimit is -1": {TaskLimit: -1}, "RunTime is -1ns": {RunTime: -1},
		"RecordLimit is 1000": {RecordLimit: 1000}, "RowLimit is 2097152": {RowLimit: 2 << 20},
	} {
		c.Settings = configuration
		_, err := peer.Graph("harbor", c)
		require.ErrorIs(t, err, peer.ErrConfig)
		require.ErrorContains(t, err, want)
	}
	_, err = peer.Graph(" ", peer.Config{Settings: configuration})
	require.Error(t, err)
	_, err = peer.Graph("harbor", peer.Config{Settings: configuration, AuditAgent: " "})
	require.Error(t, err)
}

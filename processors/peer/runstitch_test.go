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

// twoInstances runs the groups of two instances without brokers. The test is the sink of the first and the door of the second.
type twoInstances struct {
	*processortest.Driver
	t          *testing.T
	hq, client topics.Catalog
	calls      *processortest.Input[topics.ToolUseItem]
	receipts   *processortest.Input[topics.Receipt]
	commands   *processortest.Input[topics.PeerCommand] // of the client
	outputs    *processortest.Input[topics.Output]      // of the client
	attempts   *processortest.Output[topics.Delivery]
	results    *processortest.Output[topics.ToolUseResult]
	messages   *processortest.Output[topics.Message]
	replies    *processortest.Output[topics.PeerReply] // of the client
	hqReplies  *processortest.Output[topics.PeerReply]
	audits     [2]*processortest.Output[topics.PeerAudit]
	records    [2][]topics.PeerAudit
}

func newTwoInstances(t *testing.T) *twoInstances {
	t.Helper()
	var graphs []*goka.GroupGraph
	start := func(agent string, s peer.Settings) topics.Catalog {
		c, err := topics.For(agent, topics.WithPeers())
		require.NoError(t, err)
		tasks, err := peer.Graph(agent, peer.Config{Settings: func() *peer.Settings { return &s }})
		require.NoError(t, err)
		chain, err := peer.ChainGraph(agent)
		require.NoError(t, err)
		graphs = append(graphs, tasks, chain)
		return c
	}
	hq := start("harbor", peer.Settings{
		Enabled: true, InstanceID: "hq-1", MaxHops: 4, Outbound: []peer.Outbound{{ID: "tenant-a", Timeout: time.Minute}},
	})
	client := start("quay", peer.Settings{
		Enabled: true, InstanceID: "a-1", MaxHops: 4, Inbound: []peer.Inbound{{ID: "partner-hq"}},
	})
	d := processortest.New(t, noon, graphs...)
	return &twoInstances{
		Driver: d, t: t, hq: hq, client: client, calls: processortest.In(d, hq.ToolUse), receipts: processortest.In(d, hq.PeerReceipts),
		commands: processortest.In(d, client.PeerCommands), outputs: processortest.In(d, client.MessageOutput),
		attempts: processortest.Out(d, hq.PeerAttempts), results: processortest.Out(d, hq.ToolUseResult),
		messages: processortest.Out(d, client.MessageInput), replies: processortest.Out(d, client.PeerReplies),
		hqReplies: processortest.Out(d, hq.PeerReplies),
		audits:    [2]*processortest.Output[topics.PeerAudit]{processortest.Out(d, hq.PeerAudit), processortest.Out(d, client.PeerAudit)},
	}
}

// call lets a turn call the tool, and returns the attempt that it makes.
func (b *twoInstances) call(turn string) topics.Delivery {
	b.t.Helper()
	session, use, name := "s1", "toolu_1", peer.ToolName
	b.calls.Pipe(session, topics.ToolUseItem{
		SessionID: &session, ToolUseID: &use, Name: &name, TotalTools: 1,
		Input: topics.Raw(`{"peerId":"tenant-a","content":"count the rows"}`),
	}, processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte(turn + "/0/tool-use/0")}))
	return b.attempts.Next().Value
}

// deliver hands an attempt to the group of the client, as the transport and the door do, and returns the run's session and ID.
func (b *twoInstances) deliver(a topics.Delivery) (session, run string) {
	b.t.Helper()
	attempt, err := peerwire.ReadAttempt(a.Body)
	require.NoError(b.t, err)
	req, refusal := peerwire.ReadRequest(attempt.Request)
	require.Nil(b.t, refusal)
	session = peerwire.SessionID("partner-hq", req.TaskID)
	b.commands.Pipe(session, topics.PeerCommand{
		Kind: topics.PeerRun, TaskID: req.TaskID, InboundID: "partner-hq", Agent: "quay", Request: req.Body(), Hash: req.Hash(),
		Waiter: "w1", DeadlineMS: attempt.Deadline.UnixMilli(),
	})
	row, _ := processortest.Table(b.Driver, b.client.PeerTasksGroup(), peerrow.Table.Codec()).Get(session)
	return session, row.GetRun().GetRunId()
}

// report writes the receipt of an attempt.
func (b *twoInstances) report(a topics.Delivery, outcome topics.Outcome, answer peerwire.Answer) {
	b.receipts.Pipe(a.SessionID, topics.Receipt{
		DeliveryID: a.DeliveryID, SessionID: a.SessionID, Attempt: a.Attempt, Route: a.Route, Outcome: outcome,
		AtMS: b.Now().UnixMilli(), Response: answer.Body(),
	})
}

// stitched checks the chains of both instances and that they state the same, and returns the events of each.
func (b *twoInstances) stitched() (events [2][]topics.PeerEvent) {
	b.t.Helper()
	var halves [2]peer.Half
	for i, labels := range []peer.Half{{PeerID: "tenant-a"}, {InboundID: "partner-hq"}} {
		for _, r := range b.audits[i].Drain() {
			b.records[i] = append(b.records[i], r.Value)
		}
		for _, r := range b.records[i] {
			events[i] = append(events[i], r.Event)
		}
		labels.Chain = peer.Chain{Records: b.records[i]}
		require.Empty(b.t, peer.Verify(labels.Chain))
		halves[i] = labels
	}
	require.Empty(b.t, peer.Stitch(halves[0], halves[1]))
	return events
}

func TestBothAuditsOfADelegationFit(t *testing.T) {
	b := newTwoInstances(t)
	attempt := b.call("turn-1")
	session, run := b.deliver(attempt)
	require.Len(t, b.messages.Drain(), 1)
	b.Advance(time.Second)
	b.outputs.Pipe(session, topics.Output{SessionID: &session, Content: "42 rows 😀", SourceAgent: "quay", RequestID: &run})
	reply := b.replies.Next().Value
	b.report(attempt, topics.OutcomeDelivered, peerwire.Answer{Reply: reply.Body, Answered: true, Reached: true})

	result := b.results.Next()
	require.Equal(t, "turn-1/0/tool-use/0/result", result.ID())
	require.Equal(t, "success", *result.Value.Status)
	require.Contains(t, string(result.Value.Result), "42 rows 😀")
	require.Equal(t, [2][]topics.PeerEvent{
		{topics.PeerSent, topics.PeerAcknowledged}, {topics.PeerReceived, topics.PeerCompleted},
	}, b.stitched())
	b.hqReplies.Drain()

	b.deliver(attempt)
	require.Equal(t, reply.Body, b.replies.Next().Value.Body, "a repeated attempt gets the stored reply")
	require.NoError(t, b.Replay())
}

func TestBothAuditsOfALostReplyFit(t *testing.T) {
	b := newTwoInstances(t)
	first := b.call("turn-1")
	session, run := b.deliver(first)
	require.Len(t, b.messages.Drain(), 1)
	b.report(first, topics.OutcomeFailed, peerwire.Answer{Code: peerwire.CodeUnreachable, Reached: true})
	b.outputs.Pipe(session, topics.Output{SessionID: &session, Content: "42 rows", SourceAgent: "quay", RequestID: &run})
	b.replies.Drain()
	b.Advance(time.Minute)
	second := b.attempts.Next().Value
	attempt, err := peerwire.ReadAttempt(second.Body)
	require.NoError(t, err)
	require.True(t, attempt.Repeat)
	b.deliver(second)
	require.Zero(t, b.messages.Len(), "the task is run once")
	b.report(second, topics.OutcomeDelivered, peerwire.Answer{Reply: b.replies.Next().Value.Body, Reached: true})
	require.Equal(t, "success", *b.results.Next().Value.Status)
	b.hqReplies.Drain()
	require.Equal(t, [2][]topics.PeerEvent{
		{topics.PeerSent, topics.PeerAcknowledged}, {topics.PeerReceived, topics.PeerCompleted},
	}, b.stitched())
}

func TestCancelledRunFailsTheCall(t *testing.T) {
	b := newTwoInstances(t)
	attempt := b.call("turn-1")
	session, _ := b.deliver(attempt)
	b.messages.Drain()
	b.commands.Pipe(session, topics.PeerCommand{
		Kind: topics.PeerLeave, InboundID: "partner-hq", Waiter: "w1", TaskID: b.replyTask(attempt),
	})
	reply := b.replies.Next().Value
	b.report(attempt, topics.OutcomeDelivered, peerwire.Answer{Reply: reply.Body, Reached: true})
	result := b.results.Next().Value
	require.Equal(t, "error", *result.Status)
	require.Contains(t, string(result.Result), "cancelled")
	require.Len(t, processortest.Out(b.Driver, b.client.SessionControl).Drain(), 1)
	b.hqReplies.Drain()
	b.stitched()
}

func (b *twoInstances) replyTask(a topics.Delivery) string {
	attempt, err := peerwire.ReadAttempt(a.Body)
	require.NoError(b.t, err)
	return attempt.TaskID
}

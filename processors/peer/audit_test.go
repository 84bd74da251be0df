package peer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/peer/internal/audit"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_120)

func TestRecordsOfADelegation(t *testing.T) {
	req := peerwire.Request{
		TaskID: "t-9", ParentInstanceID: "hq-1", ParentRunID: "r", ParentSessionID: "s", Content: "😀 count", Model: "m",
	}
	sent := audit.Sent(req, "tenant-a", "s", "t-9/1", noon)
	require.Equal(t, topics.PeerAudit{
		Event: topics.PeerSent, TaskID: "t-9", AtMS: noon.UnixMilli(), SessionID: "s", RunID: "t-9/1", ParentRunID: "r",
		PeerID: "tenant-a", Model: "m", ContentLength: 8,
	}, sent)
	received := audit.Received(req, "hq", "main", "peer:hq:1", "peer_1", noon)
	require.Equal(t, topics.PeerAudit{
		Event: topics.PeerReceived, TaskID: "t-9", AtMS: noon.UnixMilli(), SessionID: "peer:hq:1", RunID: "peer_1", ParentRunID: "r",
		ParentSessionID: "s", ParentInstanceID: "hq-1", InboundID: "hq", AgentID: "main", Model: "m", ContentLength: 8,
	}, received)
	reply := peerwire.Reply{
		TaskID: "t-9", PeerInstanceID: "a-1", PeerRunID: "peer_1", Status: peerwire.StatusSuccess, Result: "42 rows", ToolsUsed: []string{"read"},
	}
	require.Equal(t, topics.PeerAudit{
		Event: topics.PeerAcknowledged, TaskID: "t-9", AtMS: noon.UnixMilli(), SessionID: "s", RunID: "t-9/1", PeerID: "tenant-a",
		PeerInstanceID: "a-1", PeerRunID: "peer_1", Status: "success", ResultLength: 7,
	}, audit.Acknowledged(sent, reply, noon))
	completed := topics.PeerAudit{
		Event: topics.PeerCompleted, TaskID: "t-9", AtMS: noon.UnixMilli(), SessionID: "peer:hq:1", RunID: "peer_1", InboundID: "hq",
		Status: "success", ResultLength: 7, ToolsUsed: []string{"read"},
	}
	require.Equal(t, completed, audit.Completed(received, reply, noon))

	// A pending approval is a rejection without a result.
	reply.PendingApprovalSummary = "pay: May I?"
	completed.Status, completed.ResultLength, completed.PendingApproval = "rejected", 0, true
	require.Equal(t, completed, audit.Completed(received, reply, noon))
	require.Equal(t, "rejected", audit.Acknowledged(sent, reply, noon).Status)

	reply.Thrown = true
	failed := audit.Completed(received, reply, noon)
	require.Equal(t, topics.PeerFailed, failed.Event)
	require.Equal(t, "internal", failed.Code)
	require.Empty(t, failed.Status)

	lost := audit.SendFailed(sent, "timeout", 504, noon)
	require.Equal(t, topics.PeerSendFailed, lost.Event)
	require.Equal(t, "timeout", lost.Code)
	require.EqualValues(t, 504, lost.HTTPStatus)
	require.Equal(t, "tenant-a", lost.PeerID)

	refused := audit.Refused(peerwire.Request{}, "", peerwire.UnknownToken(), noon)
	require.Equal(t, topics.PeerAudit{Event: topics.PeerRefused, AtMS: noon.UnixMilli(), Code: "unknown_token", HTTPStatus: 401}, refused)
	refused = audit.Refused(req, "hq", peerwire.AgentForbidden("hq", "x"), noon)
	require.Equal(t, "t-9", refused.TaskID)
	require.Equal(t, "hq-1", refused.ParentInstanceID)
	require.EqualValues(t, 403, refused.HTTPStatus)
}

// A delegation whose request and reply pass over the wire leaves two halves that fit, and no content in the records.
func TestRecordsOfADelegationFitTogetherWithoutContents(t *testing.T) {
	const secret = "zq7-content"
	catalog, err := topics.For("harbor", topics.WithPeers())
	require.NoError(t, err)
	text := rapid.StringN(0, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		p := &pair{}
		for i := range rapid.IntRange(1, 3).Draw(t, "tasks") {
			req := peerwire.Request{
				TaskID: fmt.Sprintf("t%d", i), ParentInstanceID: "hq-1", ParentRunID: text.Draw(t, "run"), ParentSessionID: "s1",
				Content: secret + text.Draw(t, "content"), AgentID: peerwire.Trim(text.Draw(t, "agent")), Model: text.Draw(t, "model"),
				Path: peerwire.Path{}.Via("hq-1"),
			}
			sent := audit.Sent(req, "tenant", "s1", "run", noon)
			got, refusal := peerwire.ReadRequest(req.Body())
			require.Nil(t, refusal)
			if rapid.Bool().Draw(t, "refused") {
				p.theirs = append(p.theirs, audit.Refused(got, "hq", peerwire.ConcurrencyLimit(), noon))
				p.ours = append(p.ours, sent, audit.SendFailed(sent, peerwire.CodeConcurrencyLimit, 429, noon))
				continue
			}
			agent := got.AgentID
			if agent == "" {
				agent = "main"
			}
			received := audit.Received(got, "hq", agent, peerwire.SessionID("hq", got.TaskID), "peer_1", noon)
			reply := peerwire.Reply{
				TaskID: got.TaskID, PeerInstanceID: "a-1", PeerRunID: "peer_1",
				Status: rapid.SampledFrom([]peerwire.Status{peerwire.StatusSuccess, peerwire.StatusError, peerwire.StatusRejected}).Draw(t, "status"),
				Result: secret + text.Draw(t, "result"), Error: secret, Thrown: rapid.Bool().Draw(t, "thrown"),
				PendingApprovalSummary: rapid.SampledFrom([]string{"", secret}).Draw(t, "summary"),
			}
			read, err := peerwire.ReadReply(reply.Body(), req.TaskID)
			require.NoError(t, err)
			p.theirs = append(p.theirs, received, audit.Completed(received, reply, noon))
			p.ours = append(p.ours, sent, audit.Acknowledged(sent, read, noon))
		}
		require.Empty(t, p.stitch())
		ours, theirs := p.halves()
		for _, r := range append(ours.Chain.Records, theirs.Chain.Records...) {
			raw, err := catalog.PeerAudit.Codec().Marshal(r)
			require.NoError(t, err)
			require.NotContains(t, string(raw), secret)
		}
	})
}

package peer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

// pair is the audits of two instances before they are chained.
type pair struct{ ours, theirs []topics.PeerAudit }

// run adds a task that was run, and whose reply arrived.
func (p *pair) run(id, status string, result int64) {
	p.ours = append(p.ours, topics.PeerAudit{
		Event: topics.PeerSent, TaskID: id, SessionID: "s1", RunID: id + "/1", PeerID: "tenant", ParentRunID: "r1",
		AgentID: "front", Model: "m", ContentLength: 5,
	})
	p.theirs = append(p.theirs, topics.PeerAudit{
		Event: topics.PeerReceived, TaskID: id, SessionID: "peer:" + id, RunID: "peer_" + id, InboundID: "hq",
		ParentInstanceID: "hq-1", ParentSessionID: "s1", ParentRunID: "r1", AgentID: "front", Model: "m", ContentLength: 5,
	})
	end := topics.PeerAudit{
		Event: topics.PeerCompleted, TaskID: id, RunID: "peer_" + id, InboundID: "hq", Status: status, ResultLength: result,
		PendingApproval: status == "rejected",
	}
	if status == "failed" {
		status, end.Event, end.Status, end.Code = "error", topics.PeerFailed, "", "internal"
	}
	p.theirs = append(p.theirs, end)
	p.ours = append(p.ours, topics.PeerAudit{
		Event: topics.PeerAcknowledged, TaskID: id, RunID: id + "/1", PeerID: "tenant", PeerInstanceID: "a-1",
		PeerRunID: "peer_" + id, Status: status, ResultLength: result,
	})
}

// fail adds a task without a reply: it never arrived, was refused, or its reply was lost.
func (p *pair) fail(id, how string) {
	n := len(p.ours)
	p.run(id, "success", 1)
	p.ours[n+1] = topics.PeerAudit{Event: topics.PeerSendFailed, TaskID: id, PeerID: "tenant", Code: "timeout"}
	switch how {
	case "not arrived":
		p.theirs = p.theirs[:len(p.theirs)-2]
	case "refused":
		p.theirs = append(p.theirs[:len(p.theirs)-2], topics.PeerAudit{
			Event: topics.PeerRefused, TaskID: id, InboundID: "hq", Code: "agent_forbidden", HTTPStatus: 403,
		})
	}
}

func (p *pair) halves() (ours, theirs peer.Half) {
	return peer.Half{Chain: chained("hq-1", p.ours...), PeerID: "tenant", InboundID: "tenant-token"},
		peer.Half{Chain: chained("a-1", p.theirs...), PeerID: "headquarters", InboundID: "hq"}
}

func (p *pair) stitch() []peer.Finding { return peer.Stitch(p.halves()) }

// complete draws a complete pair with tasks of every outcome, and records that concern others.
func complete(t *rapid.T) *pair {
	p := &pair{}
	for i := range rapid.IntRange(1, 4).Draw(t, "tasks") {
		id := fmt.Sprintf("t%d", i)
		switch how := rapid.SampledFrom([]string{
			"success", "error", "rejected", "failed", "not arrived", "refused", "lost",
		}).Draw(t, "outcome"); how {
		case "not arrived", "refused", "lost":
			p.fail(id, how)
		case "failed":
			p.run(id, how, 0)
		default:
			p.run(id, how, 7)
		}
	}
	if rapid.Bool().Draw(t, "others") {
		p.ours = append(p.ours, topics.PeerAudit{Event: topics.PeerSent, TaskID: "t0", PeerID: "another"})
		p.theirs = append(p.theirs,
			topics.PeerAudit{Event: topics.PeerReceived, TaskID: "t0", InboundID: "another"},
			topics.PeerAudit{Event: topics.PeerRefused, InboundID: "hq", Code: "concurrency_limit", HTTPStatus: 429},
			topics.PeerAudit{Event: "peer.delegate.new", TaskID: "t0", InboundID: "hq"},
		)
	}
	return p
}

func TestCompletePairHasNoFindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := complete(t)
		require.Empty(t, p.stitch())
		ours, theirs := p.halves()
		require.Empty(t, peer.Stitch(theirs, ours), "it does not matter whose half is first")
		require.Empty(t, peer.Verify(ours.Chain))
	})
}

// related are the indexes of the records that a complete pair needs.
func related(records []topics.PeerAudit) (at []int) {
	for i, r := range records {
		if r.TaskID != "" && (r.PeerID == "tenant" || r.InboundID == "hq") && r.Event != topics.PeerRefused &&
			strings.Count(string(r.Event), "new") == 0 {
			at = append(at, i)
		}
	}
	return at
}

func TestEveryRecordThatOneHalfLacksIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := complete(t)
		half := &p.ours
		if rapid.Bool().Draw(t, "theirs") && len(related(p.theirs)) > 0 {
			half = &p.theirs
		}
		at := rapid.SampledFrom(related(*half)).Draw(t, "record")
		gone := (*half)[at]
		*half = slices.Delete(slices.Clone(*half), at, at+1)
		found := p.stitch()
		require.Len(t, found, 1, "%v", found)
		require.Equal(t, peer.Missing, found[0].Kind)
		require.Equal(t, gone.TaskID, found[0].TaskID)
	})
}

func TestEveryRecordThatOneHalfRepeatsIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := complete(t)
		half := &p.ours
		if rapid.Bool().Draw(t, "theirs") && len(related(p.theirs)) > 0 {
			half = &p.theirs
		}
		*half = append(*half, (*half)[rapid.SampledFrom(related(*half)).Draw(t, "record")])
		require.Contains(t, kinds(p.stitch()), peer.Repeated)
	})
}

func TestContradictionsOfHalvesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *pair)
		want   string
	}{
		"content":          {func(p *pair) { p.theirs[0].ContentLength++ }, "content length: 5 of the dispatcher, 6 of the receiver"},
		"agent":            {func(p *pair) { p.theirs[0].AgentID = "back" }, `agent: "front" and "back"`},
		"model":            {func(p *pair) { p.theirs[0].Model = "x" }, `model: "m" and "x"`},
		"parent":           {func(p *pair) { p.theirs[0].ParentInstanceID = "x" }, `dispatcher's instance: "hq-1" and "x"`},
		"session":          {func(p *pair) { p.theirs[0].ParentSessionID = "x" }, `dispatcher's session: "s1" and "x"`},
		"parent run":       {func(p *pair) { p.theirs[0].ParentRunID = "x" }, `dispatcher's run: "r1" and "x"`},
		"status":           {func(p *pair) { p.theirs[1].Status = "error" }, `status: "success" of the dispatcher, "error" of the receiver`},
		"result":           {func(p *pair) { p.ours[1].ResultLength = 9 }, "result length: 9 of the dispatcher, 7 of the receiver"},
		"instance":         {func(p *pair) { p.ours[1].PeerInstanceID = "x" }, `receiver's instance: "x" and "a-1"`},
		"run of the reply": {func(p *pair) { p.ours[1].PeerRunID = "x" }, `receiver's run: "x" and "peer_t"`},
		"run":              {func(p *pair) { p.theirs[1].RunID = "x" }, `run: "peer_t" and "x"`},
		"failed": {func(p *pair) {
			p.theirs[1].Event, p.theirs[1].ResultLength = topics.PeerFailed, 7
		}, `status: "success" of the dispatcher, "error" of the receiver`},
		"pending approval": {func(p *pair) { p.theirs[1].PendingApproval = true }, `an approval was pending, and the status is "success"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pair{}
			p.run("t", "success", 7)
			require.Empty(t, p.stitch())
			c.change(p)
			found := p.stitch()
			require.Len(t, found, 1)
			require.Equal(t, peer.Contradiction, found[0].Kind)
			require.Equal(t, "t", found[0].TaskID)
			require.Equal(t, c.want, found[0].Text)
		})
	}
}

func TestFactsThatASideLeavesOutAreNoContradiction(t *testing.T) {
	p := &pair{}
	p.run("t", "success", 7)
	p.ours[0].AgentID, p.ours[0].Model, p.ours[0].ParentRunID, p.ours[1].PeerRunID = "", "", "", ""
	p.theirs[0].ParentInstanceID, p.theirs[0].ParentSessionID = "", ""
	require.Empty(t, p.stitch())
}

func TestGapsOfHalvesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *pair)
		want   []string
	}{
		"refused, and acknowledged": {func(p *pair) {
			p.theirs = []topics.PeerAudit{{Event: topics.PeerRefused, TaskID: "t", InboundID: "hq"}}
		}, []string{"a-1 peer.delegate.received", "a-1 peer.delegate.completed"}},
		"refused, and not sent": {func(p *pair) {
			p.ours, p.theirs = nil, []topics.PeerAudit{{Event: topics.PeerRefused, TaskID: "t", InboundID: "hq"}}
		}, []string{"hq-1 peer.delegate.sent"}},
		"not sent":               {func(p *pair) { p.ours = nil }, []string{"hq-1 peer.delegate.sent"}},
		"open at the dispatcher": {func(p *pair) { p.ours = p.ours[:1] }, []string{"hq-1 peer.delegate.acknowledged"}},
		"open at both": {
			func(p *pair) { p.ours, p.theirs = p.ours[:1], p.theirs[:1] },
			[]string{"hq-1 peer.delegate.acknowledged", "a-1 peer.delegate.completed"},
		},
		"only the end": {func(p *pair) { p.ours, p.theirs = p.ours[1:], nil }, []string{
			"hq-1 peer.delegate.sent", "a-1 peer.delegate.received", "a-1 peer.delegate.completed",
		}},
	} {
		p := &pair{ours: []topics.PeerAudit{{Event: "x", TaskID: "y"}}, theirs: []topics.PeerAudit{{Event: "x", TaskID: "y"}}}
		p.run("t", "success", 7)
		p.ours, p.theirs = p.ours[1:], p.theirs[1:]
		c.change(p)
		ours, theirs := p.halves()
		var got []string
		for _, f := range peer.Stitch(ours, theirs) {
			require.Equal(t, peer.Missing, f.Kind, name)
			require.Equal(t, "t", f.TaskID, name)
			got = append(got, f.InstanceID+" "+string(f.Event))
		}
		require.Equal(t, c.want, got, name)
	}
}

func TestStepsInTheWrongOrderAreFound(t *testing.T) {
	p := &pair{}
	p.run("t", "success", 7)
	slices.Reverse(p.ours)
	require.Equal(t, []peer.Kind{peer.Reordered}, kinds(p.stitch()))
	slices.Reverse(p.theirs)
	require.Equal(t, []peer.Kind{peer.Reordered, peer.Reordered}, kinds(p.stitch()))
}

func TestTasksAreStitchedInBothDirections(t *testing.T) {
	p := &pair{}
	p.run("t", "success", 7)
	// The other instance sends a task with the same ID back, and gets no reply.
	p.theirs = append(p.theirs,
		topics.PeerAudit{Event: topics.PeerSent, TaskID: "t", PeerID: "headquarters", ContentLength: 1},
		topics.PeerAudit{Event: topics.PeerSendFailed, TaskID: "t", PeerID: "headquarters", Code: "timeout"},
	)
	p.ours = append(p.ours, topics.PeerAudit{Event: topics.PeerReceived, TaskID: "t", InboundID: "tenant-token", ContentLength: 1})
	require.Equal(t, []string{
		`missing: instance "hq-1", task "t", peer.delegate.completed: the task has no end`,
	}, []string{p.stitch()[0].String()})
}

func TestFindingsAreOrderedByTask(t *testing.T) {
	p := &pair{}
	for _, id := range []string{"b", "c", "a"} {
		p.run(id, "success", 7)
	}
	p.theirs = nil
	var order []string
	for _, f := range p.stitch() {
		order = append(order, f.TaskID)
	}
	require.True(t, slices.IsSorted(order))
	require.Len(t, order, 6)
}

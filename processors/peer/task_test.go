package peer

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

const (
	callID = "turn-1/0/tool-use/0"
	asking = `{"peerId":"tenant-a","content":"count the boats"}`
)

// delegation returns a call of the tool.
func (p *harness) delegation(id, input string) called {
	p.TB.Helper()
	return p.toolCall(id, ToolName, input)
}

// proxied returns the command of a door for a caller of the proxy.
func (p *harness) proxied(taskID, waiter string, change ...func(*peerwire.Request, *topics.PeerCommand)) commanded {
	p.TB.Helper()
	req := peerwire.Request{TaskID: taskID, Content: "count the boats", ParentSessionID: p.key}
	c := topics.PeerCommand{
		Kind: topics.PeerDelegate, TaskID: taskID, PeerID: "tenant-a", Waiter: waiter,
		DeadlineMS: p.Now.Add(10 * time.Minute).UnixMilli(),
	}
	for _, f := range change {
		f(&req, &c)
	}
	c.Request, c.Hash = req.Body(), req.Hash()
	return p.command(c)
}

func once(_ *peerwire.Request, c *topics.PeerCommand)       { c.Once = true }
func unattended(_ *peerwire.Request, c *topics.PeerCommand) { c.Detached = true }

// waiting returns a command of a waiter about a delegated task.
func (p *harness) waiting(kind topics.PeerCommandKind, taskID, waiter string) commanded {
	p.TB.Helper()
	return p.command(topics.PeerCommand{Kind: kind, TaskID: taskID, PeerID: "tenant-a", Waiter: waiter})
}

// sent returns what the sink is asked to send.
func sent(t machinetest.TB, a topics.Delivery) peerwire.Attempt {
	t.Helper()
	body, err := peerwire.ReadAttempt(a.Body)
	require.NoError(t, err)
	return body
}

// attemptsOf returns the attempts among effects that are no cancellations.
func attemptsOf(t machinetest.TB, es effects) (list []topics.Delivery) {
	t.Helper()
	for _, a := range machinetest.Values[topics.Delivery](es) {
		if !sent(t, a).Cancel {
			list = append(list, a)
		}
	}
	return list
}

// attemptOf returns the only attempt among effects.
func attemptOf(t machinetest.TB, es effects) topics.Delivery {
	t.Helper()
	list := attemptsOf(t, es)
	require.Len(t, list, 1, "%v", es)
	return list[0]
}

// replied returns the receipt of an attempt with a reply.
func (p *harness) replied(a topics.Delivery, change ...func(*peerwire.Reply)) receipted {
	p.TB.Helper()
	reply := peerwire.Reply{
		TaskID: sent(p.TB, a).TaskID, PeerInstanceID: "tenant-a-1", PeerRunID: "peer_1_0a", Status: peerwire.StatusSuccess, Result: "42 boats",
	}
	for _, f := range change {
		f(&reply)
	}
	return p.receipt(a, topics.OutcomeDelivered, peerwire.Answer{Reply: reply.Body(), Answered: true, Reached: true})
}

// failedWith returns the receipt of an attempt that failed.
func (p *harness) failedWith(a topics.Delivery, status int64, answer peerwire.Answer) receipted {
	p.TB.Helper()
	return p.receipt(a, topics.OutcomeFailed, answer, func(r *topics.Receipt) { r.Status = status })
}

// offline returns the receipt of an attempt without a connection.
func (p *harness) offline(a topics.Delivery) receipted {
	p.TB.Helper()
	return p.failedWith(a, 0, peerwire.Answer{Code: peerwire.CodeUnreachable})
}

// toolResultOf returns the only tool result among effects.
func toolResultOf(t machinetest.TB, es effects) (status string, result map[string]string) {
	t.Helper()
	r := machinetest.Only[topics.ToolUseResult](t, es)
	require.NoError(t, json.Unmarshal(r.Result, &result))
	return *r.Status, result
}

// requireFailed checks that a call failed with a code.
func requireFailed(t machinetest.TB, es effects, code peerwire.Code) string {
	t.Helper()
	status, result := toolResultOf(t, es)
	require.Equal(t, "error", status)
	require.Equal(t, string(code), result["reason"])
	require.NotEmpty(t, result["error"])
	return result["error"]
}

func TestCommandOfAnUnknownKindIsDeadLettered(t *testing.T) {
	p := newHarness(t)
	es := p.Handle(p.command(topics.PeerCommand{Kind: "sail", TaskID: "t1", PeerID: "tenant-a"}))
	require.Equal(t, reasonCommand, letter(t, es))
	require.Nil(t, p.Read())
}

func TestCallIsSentAndAnswered(t *testing.T) {
	p := newHarness(t)
	began := p.Now
	es := p.Handle(p.delegation(callID, asking))
	require.Equal(t, []topics.PeerEvent{topics.PeerSent}, events(es))
	begin := machinetest.Only[topics.PeerAudit](t, es)
	a := attemptOf(t, es)
	body := sent(t, a)
	req, refusal := peerwire.ReadRequest(body.Request)
	require.Nil(t, refusal)
	require.Equal(t, peerwire.Request{
		TaskID: body.TaskID, ParentInstanceID: "hq-1", Content: "count the boats", ParentRunID: "turn-1", ParentSessionID: "s1",
		Path: peerwire.Path{Hops: 1, Chain: []string{"hq-1"}},
	}, req)
	require.Len(t, body.TaskID, 32, "HybridClaw distinguishes 32 characters")
	require.False(t, body.Repeat)
	require.Equal(t, time.Minute, body.Timeout)
	require.Equal(t, began.Add(p.config.TaskTime), body.Deadline.UTC())
	require.Equal(t, topics.Destination{Kind: "peer", Service: "tenant-a"}, a.Route)
	require.Equal(t, began.Add(75*time.Second).UnixMilli(), a.LeaseUntilMS)
	require.EqualValues(t, 1, a.Attempt)

	p.Now = p.Now.Add(3 * time.Second)
	es = p.Handle(p.replied(a))
	settle := machinetest.Only[topics.PeerCommand](t, es)
	require.Len(t, es, 1, "the task has not ended yet")
	require.Empty(t, p.Read().Tasks[0].Request)
	es = p.Handle(p.own("", settle))
	require.Equal(t, []topics.PeerEvent{topics.PeerAcknowledged}, events(es))
	end := machinetest.Only[topics.PeerAudit](t, es)
	require.Equal(t, begin.RunID, end.RunID)
	require.Equal(t, body.TaskID, end.TaskID)
	require.Equal(t, "tenant-a-1", end.PeerInstanceID)
	require.EqualValues(t, 8, end.ResultLength)
	answer := machinetest.Only[topics.ToolUseResult](t, es)
	require.Equal(t, callID+"/result", es[1].ID)
	require.Equal(t, "harbor-tool-use-result", es[1].Topic)
	require.Equal(t, "toolu_"+callID, *answer.ToolUseID)
	require.EqualValues(t, 3000, answer.LatencyMS)
	status, result := toolResultOf(t, es)
	require.Equal(t, "success", status)
	require.Contains(t, result["result"], "42 boats")
	require.Contains(t, result["result"], "Text from another instance")

	require.Equal(t, es[1:].Records(), p.Handle(p.delegation(callID, asking)).Records(), "a repeat gets the same result")
	require.Empty(t, p.Handle(p.own("", settle)), "only the first end counts")
	require.Empty(t, p.Handle(p.replied(a)))
	p.advance(25 * time.Hour)
	require.Nil(t, p.Read())
}

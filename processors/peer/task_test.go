package peer

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/topics"
)

const (
	callID = "turn-1/0/tool-use/0"
	asking = `{"peerId":"tenant-a","content":"count the boats"}`
)

// delegation returns a call of the tool.
func (p *harness) delegation(id, input string) called {
	p.tb.Helper()
	return p.toolCall(id, ToolName, input)
}

// proxied returns the command of a door for a caller of the proxy.
func (p *harness) proxied(taskID, waiter string, change ...func(*peerwire.Request, *topics.PeerCommand)) commanded {
	p.tb.Helper()
	req := peerwire.Request{TaskID: taskID, Content: "count the boats", ParentSessionID: p.key}
	c := topics.PeerCommand{
		Kind: topics.PeerDelegate, TaskID: taskID, PeerID: "tenant-a", Waiter: waiter,
		DeadlineMS: p.now.Add(10 * time.Minute).UnixMilli(),
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
	p.tb.Helper()
	return p.command(topics.PeerCommand{Kind: kind, TaskID: taskID, PeerID: "tenant-a", Waiter: waiter})
}

// sent returns what the sink is asked to send.
func sent(t tb, a attemptAsked) peerwire.Attempt {
	t.Helper()
	body, err := peerwire.ReadAttempt(a.Body)
	require.NoError(t, err)
	return body
}

// attemptsOf returns the attempts among effects that are no cancellations.
func attemptsOf(t tb, es effects) (list []attemptAsked) {
	t.Helper()
	for _, a := range valuesOf[attemptAsked](es) {
		if !sent(t, a).Cancel {
			list = append(list, a)
		}
	}
	return list
}

// attemptOf returns the only attempt among effects.
func attemptOf(t tb, es effects) attemptAsked {
	t.Helper()
	list := attemptsOf(t, es)
	require.Len(t, list, 1, "%v", es)
	return list[0]
}

// replied returns the receipt of an attempt with a reply.
func (p *harness) replied(a attemptAsked, change ...func(*peerwire.Reply)) receipted {
	p.tb.Helper()
	reply := peerwire.Reply{
		TaskID: sent(p.tb, a).TaskID, PeerInstanceID: "tenant-a-1", PeerRunID: "peer_1_0a", Status: peerwire.StatusSuccess, Result: "42 boats",
	}
	for _, f := range change {
		f(&reply)
	}
	return p.receipt(a, topics.OutcomeDelivered, peerwire.Answer{Reply: reply.Body(), Answered: true, Reached: true})
}

// failedWith returns the receipt of an attempt that failed.
func (p *harness) failedWith(a attemptAsked, status int64, answer peerwire.Answer) receipted {
	p.tb.Helper()
	return p.receipt(a, topics.OutcomeFailed, answer, func(r *topics.Receipt) { r.Status = status })
}

// offline returns the receipt of an attempt without a connection.
func (p *harness) offline(a attemptAsked) receipted {
	p.tb.Helper()
	return p.failedWith(a, 0, peerwire.Answer{Code: peerwire.CodeUnreachable})
}

// toolResultOf returns the only tool result among effects.
func toolResultOf(t tb, es effects) (status string, result map[string]string) {
	t.Helper()
	r := onlyValue[toolAnswered](t, es).Result
	require.NoError(t, json.Unmarshal(r.Result, &result))
	return *r.Status, result
}

// requireFailed checks that a call failed with a code.
func requireFailed(t tb, es effects, code peerwire.Code) string {
	t.Helper()
	status, result := toolResultOf(t, es)
	require.Equal(t, "error", status)
	require.Equal(t, string(code), result["reason"])
	require.NotEmpty(t, result["error"])
	return result["error"]
}

func TestCommandOfAnUnknownKindIsDeadLettered(t *testing.T) {
	p := newHarness(t)
	es := p.handle(p.command(topics.PeerCommand{Kind: "sail", TaskID: "t1", PeerID: "tenant-a"}))
	require.Equal(t, reasonCommand, letter(t, es))
	require.Nil(t, p.state())
}

func TestCallIsSentAndAnswered(t *testing.T) {
	p := newHarness(t)
	began := p.now
	es := p.handle(p.delegation(callID, asking))
	require.Equal(t, []topics.PeerEvent{topics.PeerSent}, events(es))
	begin := onlyValue[audited](t, es)
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

	p.now = p.now.Add(3 * time.Second)
	es = p.handle(p.replied(a))
	settle := onlyValue[asked](t, es)
	require.Len(t, es, 1, "the task has not ended yet")
	require.Empty(t, p.state().Tasks[0].Request)
	es = p.handle(p.own("", settle))
	require.Equal(t, []topics.PeerEvent{topics.PeerAcknowledged}, events(es))
	end := onlyValue[audited](t, es)
	require.Equal(t, begin.RunID, end.RunID)
	require.Equal(t, body.TaskID, end.TaskID)
	require.Equal(t, "tenant-a-1", end.PeerInstanceID)
	require.EqualValues(t, 8, end.ResultLength)
	answer := onlyValue[toolAnswered](t, es)
	require.Equal(t, callID+"/result", es[1].(emit).ID)
	require.Equal(t, "harbor", answer.Agent)
	require.Equal(t, "toolu_"+callID, *answer.Result.ToolUseID)
	require.EqualValues(t, 3000, answer.Result.LatencyMS)
	status, result := toolResultOf(t, es)
	require.Equal(t, "success", status)
	require.Contains(t, result["result"], "42 boats")
	require.Contains(t, result["result"], "Text from another instance")

	require.Equal(t, effects{es[1]}, p.handle(p.delegation(callID, asking)), "a repeat gets the same result")
	require.Empty(t, p.handle(p.own("", settle)), "only the first end counts")
	require.Empty(t, p.handle(p.replied(a)))
	p.advance(25 * time.Hour)
	require.Nil(t, p.state())
}

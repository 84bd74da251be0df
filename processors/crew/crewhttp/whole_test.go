package crewhttp

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// requests are the records of permission requests.
type requests struct {
	r    *rig
	list []topics.GateRequest
}

func (q requests) Replay(
	ctx context.Context, topic, key string, since time.Time, take func(context.Context, processors.Inbound) bool,
) (int64, error) {
	require.Equal(q.r.t, q.r.door.topics.GateRequests.Name(), topic)
	require.True(q.r.t, since.Before(noon))
	for _, g := range q.list {
		out, err := processors.OutboundOf(q.r.door.topics.GateRequests, key, g, "")
		require.NoError(q.r.t, err)
		if g.SessionID == key && !take(ctx, processors.Inbound{Topic: topic, Key: []byte(key), Value: out.Value}) {
			break
		}
	}
	return 0, nil
}

var longArgs = topics.Raw(`{"tool":"t","title":"Run","kind":"execute","arguments":{"command":"` + strings.Repeat("a", 3000) + `; touch x"},"content":[]}`)

// long adds an open request of an agent that is shown by its beginning, and its record.
func (r *rig) long(agent, id string, inRow bool) {
	digest := topics.ArgsSHA256(longArgs)
	if inRow {
		r.agent(agent, "c", "", func(a *agentRow) {
			a.view.Permissions = []view.PermissionAsked{{
				ID: id, ToolName: "t", Arguments: topics.Raw(`{"start":"aaa"}`), Timestamp: view.Time(noon.UnixMilli()),
				Shown: view.Shown{Truncated: true, Bytes: int64(len(longArgs)), ArgsSHA256: digest},
			}}
			a.view = r.index.linkedView(a.view)
		})
	} else {
		r.agent(agent, "c", "")
		r.event(askedEvent, "agent/"+agent, "c", "", `{"agentId":"`+agent+`","request":{"id":"`+id+`","toolName":"t","arguments":{"start":"aaa"},"timestamp":"`+
			view.Time(noon.UnixMilli())+`","truncated":true,"bytes":3100,"argsSha256":"`+digest+`"},"dangerous":false}`)
	}
	r.index.requests = requests{r, []topics.GateRequest{
		{GateID: "other", SessionID: agent, Kind: topics.GatePermission, Tool: "t", Args: topics.Raw(`{}`)},
		{GateID: id, SessionID: agent, Kind: topics.GatePermission, Tool: "t", Args: longArgs},
	}}
}

func TestLongPermissionRequestIsApprovedOnlyByWhoHasReadIt(t *testing.T) {
	const ines, mira = "Bearer ines.read-answer.all", "Bearer mira.read-answer.all"
	for _, inRow := range []bool{true, false} {
		r := newRig(t, func(c *Config) { c.DecisionWait, c.Authenticate = -1, callers })
		b, _ := r.open("Authorization", ines)
		r.long("a", "g", inRow)
		url := "/api/agents/a/permissions/g"
		if !inRow {
			require.Contains(t, b.next(askedEvent).raw, `"url":"`+url+`"`)
		}
		post := func(body, who string) got {
			return r.do("POST", "/api/agents/a/permission", body, "Authorization", who)
		}
		const approve = `{"approved":true,"requestId":"g"}`
		blind := post(approve, ines)
		require.Equal(t, 409, blind.status, blind.body)
		require.Contains(t, blind.body, `"url":"`+url+`"`)
		b.send(`{"type":"permission_response","agentId":"a","approved":true,"requestId":"g"}`)
		require.Contains(t, b.next("error").Message, "read the whole request")
		b.send(`{"type":"permission_response","agentId":"a","approved":true}`)
		b.next("error")
		require.Equal(t, 412, post(`{"approved":true,"requestId":"g","argsSha256":"00"}`, ines).status)
		require.Empty(t, r.decisions())

		require.Equal(t, 404, r.do("GET", "/api/agents/a/permissions/none", "", "Authorization", mira).status)
		whole := r.do("GET", url, "", "Authorization", mira)
		require.Equal(t, 200, whole.status, whole.body)
		require.Contains(t, whole.body, "; touch x")
		require.Contains(t, whole.body, `"kind":"execute"`)
		require.NotContains(t, whole.body, "truncated")
		require.Equal(t, 409, post(approve, ines).status, "another person has read it")
		require.Equal(t, 202, post(approve, mira).status)
		require.Equal(t, topics.ArgsSHA256(longArgs), r.decisions()[0].ArgsSHA256, "what was read is what is approved")
		require.Equal(t, 202, post(`{"approved":false,"requestId":"g"}`, ines).status, "to deny needs nothing")
		require.Equal(t, 202, post(`{"approved":true,"requestId":"g","argsSha256":"`+topics.ArgsSHA256(longArgs)+`"}`, ines).status)
		require.Len(t, r.decisions(), 3)
	}
}

// The record is older than what the topic keeps, or the index has stopped.
func TestWholeRequestThatCannotBeReadIsNotApproved(t *testing.T) {
	r := newRig(t, func(c *Config) { c.DecisionWait = -1 })
	r.long("a", "g", true)
	r.index.requests = requests{r, nil}
	r.clock.Advance(time.Minute)
	require.Equal(t, 404, r.do("GET", "/api/agents/a/permissions/g", "").status)
	r.index.requests = r.index.tables
	require.Equal(t, 503, r.do("GET", "/api/agents/a/permissions/g", "").status)
	require.Equal(t, 409, r.do("POST", "/api/agents/a/permission", `{"approved":true,"requestId":"g"}`).status)
}

// appearing are requests that are visible only when they are read for the second time.
type appearing struct {
	requests
	reads *int
}

func (a appearing) Replay(
	ctx context.Context, topic, key string, since time.Time, take func(context.Context, processors.Inbound) bool,
) (int64, error) {
	*a.reads++
	if *a.reads == 1 {
		return 0, nil
	}
	return a.requests.Replay(ctx, topic, key, since, take)
}

func TestWholeRequestThatIsVisibleAfterItsEventIsWaitedFor(t *testing.T) {
	r := newRig(t, func(c *Config) { c.DecisionWait = -1 })
	r.long("a", "g", true)
	r.index.requests = appearing{r.index.requests.(requests), new(int)}
	whole := r.do("GET", "/api/agents/a/permissions/g", "")
	require.Equal(t, 200, whole.status, whole.body)
	require.Contains(t, whole.body, "; touch x")
}

func TestShortPermissionRequestIsTheSameAtItsURL(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "", asks("g"))
	require.Contains(t, r.do("GET", "/api/agents/a/permissions/g", "").body, `"id":"g"`)
}

package invoke

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// testdata/approvals.jsonl lists answers to paused turns. For each, the streams before and after the pause fold to the batch.
func TestApprovals(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	end := scripted(t, paidEnd).events
	g.answering(func(m topics.Message) []topics.AgentEvent { // a request that answers nothing
		return records(*m.SessionID, requestOf(m), 1, end, topics.AgentResult{OK: true})
	})
	s := g.site()
	for i, c := range table(t, "testdata/approvals.jsonl") {
		name, session, turn := textAt(t, c, "name"), fmt.Sprint("s-", i), fmt.Sprint("t-", i)
		var events []string
		f := folder.NewFolder()
		for _, raw := range elementsOf(at(t, c, "events")) {
			e, err := folder.DecodeEvent(raw)
			require.NoError(t, err)
			require.NoError(t, f.Add(e))
			events = append(events, string(raw))
		}
		g.plays(session, turn, true, events, lines(paidEnd))
		whole := []string{HeaderLastEvent, turn + ".1.0"}
		before := s.invoke(body(session, ""), append(whole, "Accept", forms[1])...)
		headers := []string{"Accept", forms[1]}
		if string(at(t, c, "vercel")) == "true" {
			headers = append(headers, HeaderFormat, "vercel")
		}
		messages := string(at(t, c, "messages"))
		after := s.invoke(body(session, messages[1:len(messages)-1]), headers...)
		require.Equal(t, string(at(t, c, "status")), strconv.Itoa(after.status), name)

		var decided []topics.Raw
		for _, a := range f.Interactions() {
			if o, continued := g.answer(turn, a.Index); continued {
				decided = append(decided, newObject().text("interaction_id", a.ID).text("status", string(o.Status)).with("args", a.Args).value())
			}
			gate := topics.GateID(session, turn, folder.GateCall(turn, 1, a.Index))
			for _, d := range g.written() {
				require.True(t, d.GateID != gate || d.ArgsSHA256 == topics.ArgsSHA256(a.Args), name)
			}
		}
		outcomes := elementsOf(at(t, c, "outcomes"))
		require.Equal(t, string(array(outcomes)), string(array(decided)), name)
		if len(outcomes) == 0 {
			continue
		}
		list := lines(before.body)
		list = append(list[:len(list)-1], lines(after.body)...)
		batch := s.invoke(body(session, ""), whole...)
		require.Equal(t, compacted(folded(t, list).AppendEnvelope(nil)), compacted(at(t, batch.body, "data", "outputs")), name)
	}
}

// Nothing but {approved: true} for the interaction approves it.
func TestNoOtherRequestApproves(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	s := g.site(func(c *Config) {
		c.Authenticate = func(*http.Request) (auth.Caller, error) {
			return auth.Caller{Subject: "ana", MayUse: func(session string) bool { return session != "s-forbidden" }}, nil
		}
	})
	n := 0
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"not a boolean":       {body("s-1", answerOf("t1", `{"approved":"true"}`)), 422},
		"null":                {body("s-1", answerOf("t1", `{"approved":null,"interactionToken":"r1"}`)), 422},
		"beside a question":   {body("s-1", `{"role":"user","content":[{"type":"tool_result","output":{"approved":true,"interactionToken":"r1"}},{"type":"text","text":"and?"}]}`), 422},
		"true":                {body("s-1", answerOf("t1", `true`)), 422},
		"yes":                 {body("s-1", answerOf("t1", `"yes"`)), 422},
		"empty":               {body("s-1", answerOf("t1", `{}`)), 422},
		"only the token":      {body("s-1", answerOf("", `{"interactionToken":"r1"}`)), 422},
		"yes for arguments":   {answerBody("t9", `{"to":"x","eur":1}`, `"yes"`), 422},
		"unknown token":       {body("s-1", answerOf("", `{"approved":true,"interactionToken":"r9"}`)), 409},
		"no token":            {body("s-1", answerOf("", `{"approved":true}`)), 409},
		"another session's":   {body("s-2", answerOf("", `{"approved":true,"interactionToken":"r1"}`)), 409},
		"forbidden session's": {body("s-forbidden", answerOf("", `{"approved":true,"interactionToken":"r1"}`)), 403},
		"contradiction":       {body("s-1", answerOf("t1", `{"approved":true}`)+","+answerOf("t1", `{"approved":false}`)), 422},
	} {
		g.plays("s-1", name, true, lines(paying), lines(paidEnd))
		require.Equal(t, c.status, s.invoke(c.body).status, name)
		require.Equal(t, c.status, s.invoke(c.body, "Accept", forms[2], HeaderFormat, "vercel").status, name)
		require.Len(t, g.written(), n, name)
		require.Equal(t, http.StatusOK, s.invoke(body("s-1", answerOf("", `{"approved":true,"interactionToken":"r1"}`))).status, "%s: it stays open", name)
		n++
	}
	require.Zero(t, g.messagesWritten())
}

func TestAnswersToSeveralTurnsAreRefused(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.gated("one", true, asksOnce...)
	g.gated("two", true, askFor("r2", "t2", `{"eur":2}`))
	both := body("s-1", answerOf("t1", `{"approved":true}`)+","+answerOf("t2", `{"approved":true}`))
	require.Equal(t, http.StatusUnprocessableEntity, g.site().invoke(both).status)
	require.Empty(t, g.written())
}

func TestTurnCanPauseAgain(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.plays("s-1", "t", true, lines(paying), []string{
		`{"type":"tool_call","data":{"id":"t2","name":"pay","input":{"eur":2}}}`,
		`{"type":"interaction_request","data":` + askFor("r2", "t2", `{"eur":2}`) + `}`, `{"type":"done","data":{"stopReason":"paused"}}`,
	}, lines(paidEnd))
	s := g.site()
	frames := func(messages string, headers ...string) string {
		a := s.invoke(body("s-1", messages), append(headers, "Accept", forms[2])...)
		require.Equal(t, http.StatusOK, a.status, a.body)
		return a.body
	}
	one, two := answerOf("t1", `{"approved":true}`), answerOf("t2", `{"approved":true}`)
	second := frames(one)
	require.Contains(t, second, `"stopReason": "paused"`)
	third := frames(two)
	require.NotContains(t, third, "id: "+lastID(t, second)+"\n")
	require.Contains(t, third, "Bye.")

	// An answer to the first pause reads the turn from there on.
	again := frames(one)
	require.Equal(t, firstFrame(second), firstFrame(again))
	require.Contains(t, again, "Bye.")
	// Each event can be resumed after, across both pauses.
	for rest := frames("", HeaderLastEvent, "t.1.0"); ; {
		_, after, ok := strings.Cut(rest, "id: ")
		if !ok {
			break
		}
		id, _, _ := strings.Cut(after, "\n")
		_, rest, _ = strings.Cut(after, "\n\n")
		require.Equal(t, rest, frames("", HeaderLastEvent, id), id)
	}
}

// A turn of an agent in the process ends with its run, and the agent gets answers as ordinary requests.
func TestOtherAgentsGetAnswersAsRequests(t *testing.T) {
	plain, wrapped := scripted(t, paying), scripted(t, paying)
	for agent, a := range map[*script]Agent{plain: plain, wrapped: newBuffered(t, wrapped)} {
		s := newSite(t, a, func(c *Config) { c.Random = rand.Reader })
		asked := s.invoke(question, "Accept", forms[1])
		require.Contains(t, asked.body, `"stopReason": "paused"`)
		require.Contains(t, asked.body, `"state": "complete"`)
		yes := body("s-1", answerOf("", `{"approved":true,"interactionToken":"r1"}`))
		require.Equal(t, http.StatusOK, s.invoke(yes).status)
		require.Len(t, agent.requests, 2)
		require.Equal(t, yes, string(agent.requests[1].Body))
	}
}

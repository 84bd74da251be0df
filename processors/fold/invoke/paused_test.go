package invoke

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

func TestPausedTurnExpires(t *testing.T) {
	for after, open := range map[time.Duration]bool{59_999 * time.Millisecond: true, time.Minute: false} {
		d := newDesk(t, newTeller(t, payingTwice, paidEnd), func(c *BufferConfig) { c.PauseTimeout, c.KeepFor = time.Minute, time.Hour })
		turn := d.invoke(body("s-1", hi)).header.Get(HeaderTurn)
		require.Equal(t, http.StatusOK, d.invoke(yes).status)
		d.now.Advance(after)
		a := d.invoke(body("s-1", answerOf("t2", `{"approved":true}`)))
		if open {
			require.Equal(t, http.StatusOK, a.status, a.body)
			continue
		}
		require.Equal(t, http.StatusConflict, a.status)
		require.Equal(t, "timed_out", textAt(t, a.body, "status", "outcome", "status"))
		require.Equal(t, "deadline", textAt(t, a.body, "status", "outcome", "cause"))
		require.Empty(t, d.agent.asked)
		require.Empty(t, d.agent.payments())
		rest := d.invoke(body("s-1", ""), "Accept", jsonl, HeaderLastEvent, turn+".1.5")
		require.Contains(t, rest.body, `"state": "expired"`)
		d.now.Advance(time.Hour)
		require.Equal(t, http.StatusConflict, d.invoke(body("s-1", answerOf("t2", `{"approved":true}`))).status)
		require.Empty(t, d.agent.asked)
	}
}

func TestPausedTurnIsKeptUntilItsDeadline(t *testing.T) {
	d := newDesk(t, newTeller(t, paying, paidEnd), func(c *BufferConfig) { c.KeepFor = time.Second })
	d.invoke(body("s-1", hi))
	d.now.Advance(9 * time.Minute)
	require.Equal(t, http.StatusOK, d.invoke(yes).status)
	require.Len(t, d.agent.payments(), 1)
}

func TestMessageDuringAPauseBeginsAnotherTurn(t *testing.T) {
	d := newDesk(t, newTeller(t, paying, hello, paidEnd))
	first := d.invoke(body("s-1", hi)).header.Get(HeaderTurn)
	other := d.invoke(body("s-1", hi))
	require.Equal(t, http.StatusOK, other.status)
	require.NotEqual(t, first, other.header.Get(HeaderTurn))
	answered := d.invoke(yes)
	require.Equal(t, first, answered.header.Get(HeaderTurn))
	require.Len(t, d.agent.payments(), 1)
}

func TestMessageDuringAPauseCanBeRefused(t *testing.T) {
	d := newDesk(t, newTeller(t, paying, paidEnd, hello), func(c *BufferConfig) { c.RefuseWhilePaused = true })
	d.invoke(body("s-1", hi))
	require.Equal(t, http.StatusConflict, d.invoke(body("s-1", hi)).status)
	require.Len(t, d.agent.requests, 1)
	require.Equal(t, http.StatusOK, d.invoke(yes).status)
	require.Equal(t, http.StatusOK, d.invoke(body("s-1", hi)).status)
}

func TestAnswersToSeveralTurnsAreRefused(t *testing.T) {
	d := newDesk(t, newTeller(t, paying, strings.ReplaceAll(strings.ReplaceAll(paying, "r1", "r2"), "t1", "t2"), paidEnd, paidEnd))
	d.invoke(body("s-1", hi))
	d.invoke(body("s-1", hi))
	both := body("s-1", answerOf("t1", `{"approved":true}`)+","+answerOf("t2", `{"approved":true}`))
	require.Equal(t, http.StatusUnprocessableEntity, d.invoke(both).status)
	require.Empty(t, d.agent.asked)
	require.Equal(t, http.StatusConflict, d.invoke(body("s-1", answerOf("", `{"approved":true}`))).status)
	require.Equal(t, http.StatusOK, d.invoke(body("s-1", answerOf("t2", `{"approved":true}`))).status)
	require.Equal(t, http.StatusOK, d.invoke(yes).status)
}

// An agent that is no Continuer gets answers as ordinary requests.
func TestOtherAgentsGetAnswersAsRequests(t *testing.T) {
	agent := scripted(t, paying)
	s := newSite(t, newBuffered(t, agent), func(c *Config) { c.Random = rand.Reader })
	require.Equal(t, http.StatusOK, s.invoke(body("s-1", hi)).status)
	require.Equal(t, http.StatusOK, s.invoke(yes).status)
	require.Len(t, agent.requests, 2)
	require.Equal(t, yes, string(agent.requests[1].Body))
}

// A paused turn without an open interaction ends.
func TestPauseWithoutAQuestionEndsTheTurn(t *testing.T) {
	d := newDesk(t, newTeller(t, `{"type":"done","data":{"stopReason":"paused"}}`,
		strings.Replace(paying, `{"type":"done"`, `{"type":"tool_result","data":{"id":"t1","output":"DEFERRED"}}`+"\n"+`{"type":"done"`, 1)))
	require.Equal(t, http.StatusOK, d.invoke(body("s-1", hi)).status)
	require.Equal(t, http.StatusOK, d.invoke(body("s-1", hi)).status)
	require.Equal(t, http.StatusConflict, d.invoke(yes).status)
	require.Empty(t, d.agent.asked)
}

func TestFailedRunDoesNotPause(t *testing.T) {
	agent := newTeller(t, paying, paidEnd)
	agent.runs[0].end = folder.End{State: folder.Failed, StopReason: topics.Raw(`"paused"`)}
	d := newDesk(t, agent)
	d.invoke(body("s-1", hi))
	require.Equal(t, http.StatusConflict, d.invoke(yes).status)
	agent.runs = []*script{scripted(t, paying)}
	agent.runs[0].err = errors.New("broken")
	d.invoke(body("s-1", hi))
	require.Equal(t, http.StatusConflict, d.invoke(yes).status)
	require.Empty(t, agent.asked)
}

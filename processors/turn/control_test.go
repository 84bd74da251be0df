package turn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestCancelEndsTheOpenTurn(t *testing.T) {
	p := newPlay(t)
	p.ask("one")
	p.send("message-input", message("two"))
	out := p.send("session-control", `{"action":"cancel","reason":"changed my mind"}`)
	o := the[answered](t, out)
	require.Equal(t, topics.CodeCancelled, o.Error.Code)
	require.Equal(t, "cancelled: changed my mind", o.Content)
	require.Contains(t, string(the[enriched](t, out).LatestInput), "two")
	require.Empty(t, p.repeat(p.past[2]), "a repeat does not cancel the next turn")
}

func TestCancelEndsTheNamedRequest(t *testing.T) {
	p := newPlay(t)
	one := the[enriched](t, p.send("message-input", requestMessage("one", "r1")))
	p.send("message-input", requestMessage("two", "r2"))
	cancel := `{"action":"cancel","request_id":"r2"}`
	require.Equal(t, "r2", *the[answered](t, p.send("session-control", cancel)).RequestID)
	require.Equal(t, []string{reasonNoRequest}, p.send("session-control", cancel).letters())
	require.Empty(t, emitted[enriched](p.respond(one, saying("done"))), "nobody waits any more")
	require.Equal(t, []string{reasonNoRequest}, p.send("session-control", `{"action":"cancel"}`).letters())
}

func TestCancelGivesOpenCallsTheirResult(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), calling("t1", "t2"))
	p.result("t1", "came")
	out := p.send("session-control", `{"action":"cancel"}`)
	done := the[completed](t, out)
	require.Contains(t, string(done.Results[0].Result), "came")
	require.JSONEq(t, `{"error":"cancelled","reason":"cancelled"}`, string(done.Results[1].Result))
	require.Contains(t, string(the[toolMessage](t, out).Content), "cancelled")
	require.Empty(t, emitted[enriched](out))
	require.Equal(t, []string{reasonCallEnded}, p.result("t2", "late").letters())
}

func TestPurgeEndsTheSession(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying("first"))
	p.ask("two")
	p.send("message-input", message("three"))
	p.result("t9", "held")
	out := p.send("session-control", `{"action":"purge"}`)
	require.Len(t, emitted[answered](out), 2, "what was accepted gets its output")
	for _, o := range emitted[answered](out) {
		require.Equal(t, topics.CodeCancelled, o.Error.Code)
	}
	require.Equal(t, []string{reasonUnclaimed}, out.letters())
	require.Empty(t, emitted[enriched](out))
	left := p.state()
	require.Nil(t, left.Turn)
	require.Nil(t, left.History)
	require.Nil(t, left.Cost)
	require.Nil(t, left.UserId)
	require.Empty(t, left.Waiting)
	for _, e := range p.past {
		require.Empty(t, p.repeat(e).changes(), "what was applied is not applied again")
	}
	require.Empty(t, p.send("session-control", `{"action":"purge"}`), "nothing is left to end")
	require.Nil(t, p.ask("four").History)
	require.NotEmpty(t, p.send("think-request-response", string(p.past[1].source().Value)).letters(),
		"a response that was applied before the purge is not applied again")
}

func TestRepeatedControlWithoutEffectStaysWithoutEffect(t *testing.T) {
	p := newPlay(t)
	require.Empty(t, p.send("session-control", `{"action":"purge"}`))
	require.Equal(t, []string{reasonNoRequest}, p.send("session-control", `{"action":"cancel"}`).letters())
	require.Empty(t, p.tombstone("think-request-response"))
	require.Empty(t, p.tombstone("reply-to"))
	before := p.past
	p.respond(p.ask("one"), saying("first"))
	p.send("reply-to", route)
	asked := p.ask("two")
	for _, e := range before {
		require.Empty(t, p.repeat(e), "a crash hands it over again")
	}
	require.Contains(t, string(asked.History), "first")
	require.Equal(t, route, reply(t, p, asked))
	require.Equal(t, uint32(4), p.state().HistoryLength)
}

func TestPurgedSessionsRowIsDeletedWhenItsMemoriesExpire(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying("first"))
	p.send("session-control", `{"action":"purge"}`)
	p.wait(p.rules.RememberFor - time.Millisecond)
	require.NotNil(t, p.row)
	p.wait(time.Millisecond)
	require.Nil(t, p.row)
}

func TestIdleSessionsArePurged(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.IdlePurge = time.Hour })
	asked := p.ask("one")
	p.now = p.now.Add(30 * time.Second)
	p.respond(asked, saying("first"))
	require.Empty(t, p.wait(time.Hour-time.Millisecond))
	require.NotNil(t, p.state().History)
	require.Empty(t, p.wait(time.Millisecond))
	require.Nil(t, p.state().History)
	require.NotEmpty(t, p.state().Causes)
	p.wait(23 * time.Hour)
	require.Nil(t, p.row, "a day after the last event")
}

func TestIdleSessionsAreKeptByDefault(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("one"), saying("first"))
	require.Zero(t, p.state().DeadlineMs)
	require.Empty(t, p.wait(1000*time.Hour))
	require.Contains(t, string(p.ask("two").History), "first")
}

func TestRowWithoutAConversationIsDeletedWhenItsMemoriesExpire(t *testing.T) {
	p := newPlay(t)
	p.ask("one")
	p.wait(p.rules.ThinkTimeout)
	require.NotNil(t, p.row)
	p.wait(p.rules.RememberFor)
	require.Nil(t, p.row)
}

package invoke

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

func as(caller auth.Caller) func(*Config) {
	return func(c *Config) {
		c.Authenticate = func(*http.Request) (auth.Caller, error) { return caller, nil }
	}
}

// resumable is an agent whose turns can be resumed.
type resumable struct{ *script }

func (r resumable) Resume(ctx context.Context, q Request, _ EventID) (Stream, error) {
	return r.Invoke(ctx, q)
}

func TestRequestNeedsRights(t *testing.T) {
	for _, c := range []struct {
		rights          auth.Rights
		invokes, resume int
	}{
		{0, 200, 200},
		{auth.Read | auth.Write, 200, 200},
		{auth.Read, 403, 200},
		{auth.Write, 403, 403}, // the answer is what the session's turn says
		{auth.Answer | auth.Control, 403, 403},
	} {
		agent := scripted(t, hello)
		s := newSite(t, resumable{agent}, as(auth.Caller{Rights: c.rights}))
		require.Equal(t, c.invokes, s.invoke(question).status, c.rights)
		runs := len(agent.requests)
		require.Equal(t, c.invokes == 200, runs == 1)
		require.Equal(t, c.resume, s.invoke(question, HeaderLastEvent, "t.1.0").status, c.rights)
		get := read(t, s.send(http.MethodGet, "/invoke?session_id=s-1", "", HeaderLastEvent, "t.1.0"))
		require.Equal(t, c.resume, get.status, c.rights)
	}
}

// The random ID of a request without a session is not one of the caller's.
func TestCallerWithSessionsOfItsOwnMustNameOne(t *testing.T) {
	sessions, err := auth.ParseSessions("{user}:*")
	require.NoError(t, err)
	agent := scripted(t, hello)
	s := newSite(t, agent, as(auth.Caller{UserID: "mira", MayUse: sessions.For("mira")}))
	const data = `"data":{"inputs":{"messages":[{"role":"user","content":"x"}]}}}`
	require.Equal(t, http.StatusForbidden, s.invoke("{"+data).status)
	require.Empty(t, agent.requests)
	require.Equal(t, http.StatusOK, s.invoke(`{"session_id":"mira:1",`+data).status)
}

func TestEndedCredentialIsRejected(t *testing.T) {
	for name, c := range map[string]auth.Caller{
		"expired": {Expires: noon}, "revoked": {Revoked: func() bool { return true }},
	} {
		agent := scripted(t, hello)
		s := newSite(t, agent, as(c), func(c *Config) { c.Clock = clock.NewFake(noon) })
		require.Equal(t, http.StatusUnauthorized, s.invoke(question).status, name)
		require.Empty(t, agent.requests)
	}
}

func TestStreamEndsWhenItsCredentialExpires(t *testing.T) {
	for accept, end := range map[string]string{
		"application/x-ndjson": `"type": "stream_end"`,
		"text/event-stream":    `"type": "stream_end"`,
	} {
		agent, now := newLive(), clock.NewFake(noon)
		s := newSite(t, agent, as(auth.Caller{Expires: noon.Add(time.Hour)}), func(c *Config) { c.Clock, c.Keepalive = now, -1 })
		r := s.read(t, "Accept", accept)
		agent.say(t, "a")
		for !strings.Contains(r.line(), `"a"`) {
			continue
		}
		require.NoError(t, now.WaitTickers(t.Context(), 1))
		now.Advance(time.Hour)
		rest := r.rest()
		require.Contains(t, rest, "credential_expired")
		require.Contains(t, rest, end)
		require.Contains(t, rest, traceID+".1.1", "the end has the ID of the last event that was sent")
		<-agent.closed
	}
}

func TestStreamEndsWhenItsCredentialIsRevoked(t *testing.T) {
	agent, now := newLive(), clock.NewFake(noon)
	revoked := make(chan struct{})
	isRevoked := func() bool {
		select {
		case <-revoked:
			return true
		default:
			return false
		}
	}
	s := newSite(t, agent, as(auth.Caller{Revoked: isRevoked}), func(c *Config) { c.Clock, c.Keepalive = now, -1 })
	r := s.read(t, "Accept", "application/x-ndjson")
	require.NoError(t, now.WaitTickers(t.Context(), 1))
	close(revoked)
	now.Advance(10 * time.Second)
	require.Contains(t, r.rest(), "credential_expired")
	<-agent.closed
}

// relentless is an agent that always has an event and does not look at its context.
type relentless struct{ event folder.Event }

func (e relentless) Invoke(context.Context, Request) (Stream, error) { return e, nil }
func (e relentless) Next(context.Context) (Item, error)              { return Item{Event: e.event}, nil }
func (relentless) End() folder.End                                   { return folder.End{} }
func (relentless) Close() error                                      { return nil }

func TestStreamOfAnAgentThatIgnoresItsContextEndsToo(t *testing.T) {
	e, err := folder.NewEvent("message", topics.Raw(`{"text":"a"}`))
	require.NoError(t, err)
	now := clock.NewFake(noon)
	s := newSite(t, relentless{e}, as(auth.Caller{Expires: noon.Add(time.Second)}), func(c *Config) { c.Clock, c.Keepalive = now, -1 })
	r := s.read(t, "Accept", "application/x-ndjson")
	require.NoError(t, now.WaitTickers(t.Context(), 1))
	now.Advance(time.Second)
	require.Contains(t, r.rest(), "stream_end")
}

func TestBatchGets401WhenItsCredentialExpires(t *testing.T) {
	agent, now := newLive(), clock.NewFake(noon)
	s := newSite(t, agent, as(auth.Caller{Expires: noon.Add(time.Second)}), func(c *Config) { c.Clock = now })
	go func() {
		if now.WaitTickers(t.Context(), 1) == nil {
			now.Advance(time.Second)
		}
	}()
	require.Equal(t, got{401, `{"detail":"Unauthorized"}`, nil}, bare(s.invoke(question)))
	<-agent.closed
}

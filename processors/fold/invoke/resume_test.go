package invoke

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
)

func newBuffered(t testing.TB, a Agent, change ...func(*BufferConfig)) *Buffered {
	t.Helper()
	var c BufferConfig
	for _, f := range change {
		f(&c)
	}
	b, err := NewBuffered(a, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

const turnID = traceID + "-" + spanID

// The events before and after a dropped connection are together the whole stream.
func TestStreamResumesAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	for _, g := range corpus(t) {
		s := newSite(t, newBuffered(t, g.script()))
		for _, headers := range [][]string{
			{"Accept", "text/event-stream"}, {"Accept", "text/event-stream", HeaderFormat, "vercel"},
		} {
			whole := s.invoke(question, headers...)
			require.Equal(t, http.StatusOK, whole.status)
			rest := whole.body
			for {
				before, after, ok := strings.Cut(rest, "id: ")
				if !ok {
					break
				}
				_ = before
				id, _, _ := strings.Cut(after, "\n")
				_, rest, _ = strings.Cut(after, "\n\n")
				again := s.invoke(`{"session_id":"s-1"}`, append(headers, HeaderLastEvent, id)...)
				require.Equal(t, rest, again.body, "%s behind %s", g.ID, id)
				rest = again.body
			}
		}
	}
}

func TestGetResumesATurn(t *testing.T) {
	agent := scripted(t, hello)
	s := newSite(t, newBuffered(t, agent))
	first := s.invoke(question, "Accept", "text/event-stream")
	require.Equal(t, turnID, first.header.Get(HeaderTurn))
	get := func(query string, headers ...string) got {
		return read(t, s.send(http.MethodGet, "/invoke"+query, "", headers...))
	}
	again := get("?session_id=s-1", "Accept", "text/event-stream", HeaderLastEvent, turnID+".1.0")
	require.Equal(t, first.body, again.body)
	batch := get("", HeaderSession, "s-1", HeaderLastEvent, turnID+".1.3")
	require.Equal(t, "Hello, wörld", said(t, batch.body))
	require.Len(t, agent.requests, 1, "it ran once")

	require.Equal(t, http.StatusBadRequest, get("", HeaderLastEvent, turnID+".1.3").status, "no session")
	require.Equal(t, http.StatusBadRequest, get("?session_id=s-1", HeaderLastEvent, "7").status)
	require.Equal(t, http.StatusGone, get("?session_id=s-2", HeaderLastEvent, turnID+".1.3").status, "another session's")
	require.Equal(t, http.StatusGone, get("?session_id=s-1", HeaderLastEvent, "x.1.3").status)
	require.Equal(t, http.StatusMethodNotAllowed, get("?session_id=s-1").status)
}

func TestAgentThatCannotResumeNeverRunsTwice(t *testing.T) {
	agent := scripted(t, hello)
	s := newSite(t, agent)
	require.Equal(t, http.StatusGone, s.invoke(question, HeaderLastEvent, traceID+".1.3").status)
	require.Equal(t, http.StatusBadRequest, s.invoke(question, HeaderLastEvent, "x").status)
	require.Empty(t, agent.requests)
}

func TestBufferedRunContinuesWithoutItsClient(t *testing.T) {
	agent := newLive()
	s := newSite(t, newBuffered(t, agent))
	resp := s.send(http.MethodPost, "/invoke", question, "Accept", "text/event-stream")
	run := <-agent.begun
	agent.say(t, "a")
	require.NoError(t, resp.Body.Close())
	agent.say(t, "b")
	require.NoError(t, run.Err())

	r := s.read(t, "Accept", "text/event-stream", HeaderLastEvent, turnID+".1.1")
	require.Equal(t, "id: "+turnID+".1.2\n", r.line())
	require.Contains(t, r.line(), `"b"`)
	agent.say(t, "c")
	close(agent.items)
	require.Contains(t, r.rest(), `"c"`)
	<-agent.closed
}

func TestBufferIsBounded(t *testing.T) {
	now := clock.NewFake(noon)
	agent := scripted(t, hello)
	b := newBuffered(t, agent, func(c *BufferConfig) {
		c.Turns, c.TurnBytes, c.Bytes, c.KeepFor, c.Clock = 2, 2000, 4000, time.Minute, now
	})
	ask := func(trace string) error {
		s, err := b.Invoke(t.Context(), Request{SessionID: "s", Trace: Trace{TraceID: trace}})
		if err != nil {
			return err
		}
		for err == nil {
			_, err = s.Next(t.Context())
		}
		return err
	}
	resume := func(trace string) error {
		_, err := b.Resume(t.Context(), Request{SessionID: "s"}, EventID{trace + "-", 1, 1})
		return err
	}
	require.ErrorIs(t, ask("a"), io.EOF)
	require.ErrorIs(t, ask("b"), io.EOF)
	require.ErrorIs(t, ask("c"), io.EOF)
	require.ErrorIs(t, resume("a"), ErrGone, "the oldest went")
	require.NoError(t, resume("c"))
	now.Advance(time.Minute)
	require.ErrorIs(t, resume("c"), ErrGone)
	require.Zero(t, b.bytes)
	require.Empty(t, b.callers)

	agent.refuses = errors.New("no")
	require.Error(t, ask("d"))
	require.Empty(t, b.order)
}

// A caller has a quarter of the bytes: a turn that needs more evicts the caller's own, not an older one of another caller.
func TestCallerEvictsOnlyItsOwnTurns(t *testing.T) {
	b := newBuffered(t, scripted(t, hello), func(c *BufferConfig) { c.TurnBytes, c.Bytes = 1500, 6000 })
	for _, of := range []struct{ caller, trace string }{{"mira", "a"}, {"mallory", "b"}, {"mallory", "c"}} {
		s, err := b.Invoke(t.Context(), Request{SessionID: "s", callerKey: of.caller, Trace: Trace{TraceID: of.trace}})
		for err == nil {
			_, err = s.Next(t.Context())
		}
		require.ErrorIs(t, err, io.EOF)
	}
	for trace, want := range map[string]error{"a": nil, "b": ErrGone, "c": nil} {
		_, err := b.Resume(t.Context(), Request{SessionID: "s"}, EventID{trace + "-", 1, 1})
		require.ErrorIs(t, err, want, trace)
	}
}

func TestFullBufferAnswers503(t *testing.T) {
	agent := newLive()
	b := newBuffered(t, agent, func(c *BufferConfig) { c.Turns, c.TurnBytes, c.Bytes = 1, 1000, 1000 })
	_, err := b.Invoke(t.Context(), Request{SessionID: "s"})
	require.NoError(t, err)
	_, err = b.Invoke(t.Context(), Request{SessionID: "s", Trace: Trace{TraceID: "b"}})
	require.ErrorIs(t, err, errBusy)
	require.NoError(t, b.Close())
	_, err = b.Invoke(t.Context(), Request{SessionID: "s", Trace: Trace{TraceID: "c"}})
	require.ErrorIs(t, err, errClosed)

	_, err = NewBuffered(nil, BufferConfig{})
	require.ErrorIs(t, err, ErrConfig)
	_, err = NewBuffered(agent, BufferConfig{Turns: -1})
	require.ErrorIs(t, err, ErrConfig)
}

func TestTurnLargerThanTheBufferFails(t *testing.T) {
	agent := scripted(t, `{"type":"message","data":{"text":"`+strings.Repeat("x", 2000)+`"}}`)
	b := newBuffered(t, agent, func(c *BufferConfig) { c.Turns, c.TurnBytes, c.Bytes = 1, 1000, 10_000 })
	s, err := b.Invoke(t.Context(), Request{SessionID: "s"})
	require.NoError(t, err)
	_, err = s.Next(t.Context())
	require.NoError(t, err)
	_, err = s.Next(t.Context())
	require.ErrorIs(t, err, errLarge)
	require.Equal(t, 1, agent.closed)
}

func TestEventIDIsParsedBack(t *testing.T) {
	for _, id := range []EventID{{"t", 1, 1}, {"a.b.1", 2, 3}, {"tür n", 1, 0}} {
		parsed, err := ParseEventID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, parsed)
	}
	for _, s := range []string{"", "1.1", ".1.1", "t.1", "t.1.x", "t.-1.1", "t\n.1.1", strings.Repeat("x", 600) + ".1.1"} {
		_, err := ParseEventID(s)
		require.ErrorIs(t, err, ErrEventID, s)
	}
}

// A newer attempt voids the older one: a batch has the newer events only; a stream ends and names the newer attempt.
func TestNewerAttemptVoidsTheOlder(t *testing.T) {
	stream := func() Stream {
		first, second := scripted(t, hello).events, scripted(t, `{"type":"message","data":{"text":"again"}}`).events
		return &attempts{first: first[:3], second: second}
	}
	s := newSite(t, AgentFunc(func(context.Context, Request) (Stream, error) { return stream(), nil }))
	b := s.invoke(question)
	require.Equal(t, `[{"role":"assistant","content":"again"}]`, string(at(t, b.body, "data", "outputs", "messages")))
	a := s.invoke(question, "Accept", "application/x-ndjson")
	require.True(t, strings.HasSuffix(a.body, `{"type": "error", "data": {"message": "the attempt was superseded"}}
{"type": "stream_end", "data": {"state": "failed", "reason": "superseded", "resume": "t.2.0"}}
`), a.body)
	require.NotContains(t, a.body, "again")
	v := s.invoke(question, "Accept", "text/event-stream", HeaderFormat, "vercel")
	require.Contains(t, v.body, `"code": "superseded"`)
}

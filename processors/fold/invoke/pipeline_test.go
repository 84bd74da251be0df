package invoke

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

func TestPipelineAnswersInEveryFormat(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	plain, err := folder.DecodeEvent(topics.Raw(`{"type":"message","text":"flat"}`))
	require.NoError(t, err)
	events := append(scripted(t, hello).events, plain)
	b.answering(func(m topics.Message) []topics.AgentEvent {
		list := records(*m.SessionID, requestOf(m), 1, events, topics.AgentResult{OK: true, StopReason: &endTurn})
		noise := records(*m.SessionID, "another turn", 1, events, topics.AgentResult{OK: true})
		user := topics.AgentEvent{
			SessionID: *m.SessionID, TurnID: requestOf(m), Attempt: 1, Author: topics.AuthorUser,
			Event: topics.Raw(`{"type":"message","data":{"text":"mine"}}`),
		}
		// Out of order, repeated, and together with another turn of the session.
		mixed := []topics.AgentEvent{user, list[1], list[0], list[0], list[3], list[2], list[1]}
		return slices.Concat(mixed, noise, list[4:])
	})
	s := serve(t, must(New(b.pipeline(), Config{Random: &counting{}})))
	batch := s.invoke(question)
	require.Equal(t, http.StatusOK, batch.status, batch.body)
	require.Equal(t, `{"messages":[{"role":"assistant","content":"Hello, wörld"},{"role":"assistant",`+
		`"content":"flat"}],"stop_reason":"end_turn"}`,
		string(at(t, batch.body, "data", "outputs")))
	for _, accept := range []string{"application/x-ndjson", "text/event-stream"} {
		a := s.invoke(question, "Accept", accept)
		lines := lines(a.body)
		if accept == "text/event-stream" {
			lines = eventFrames(a.body)
			turn := a.header.Get(HeaderTurn)
			require.True(t, strings.HasPrefix(a.body, "id: "+turn+".1.1\n"), a.body)
			require.Contains(t, a.body, "id: "+turn+".1.7\n"+
				`data: {"type": "done", "data": {"stopReason": "end_turn"}}`+"\n")
		}
		f := folded(t, lines)
		require.Equal(t, string(at(t, batch.body, "data", "outputs")), string(f.AppendEnvelope(nil)))
	}
}

func TestPipelineTurnIsResumedFromTheTopic(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.answering(func(m topics.Message) []topics.AgentEvent {
		return records(*m.SessionID, requestOf(m), 1, scripted(t, hello).events, topics.AgentResult{OK: true})
	})
	s := serve(t, must(New(b.pipeline(), Config{Random: &counting{}})))
	whole := s.invoke(question, "Accept", "text/event-stream")
	turn := whole.header.Get(HeaderTurn)
	_, rest, ok := strings.Cut(whole.body, "id: "+turn+".1.3\n")
	require.True(t, ok)
	_, rest, _ = strings.Cut(rest, "\n\n")

	other := serve(t, must(New(b.pipeline(), Config{}))) // another process
	again := other.invoke(`{"session_id":"s-1"}`, "Accept", "text/event-stream", HeaderLastEvent, turn+".1.3")
	require.Equal(t, rest, again.body)
	require.Equal(t, http.StatusGone, other.invoke(`{"session_id":"s-1"}`, HeaderLastEvent, "nobody.1.3").status)
	require.Equal(t, http.StatusGone, other.invoke(`{"session_id":"s-2"}`, HeaderLastEvent, turn+".1.3").status)

	// If there is a newer attempt, the events that the client has received are void.
	ends := topics.AgentResult{OK: true}
	b.write(records("s-1", "retried", 1, scripted(t, hello).events, ends)[:3]...)
	b.write(records("s-1", "retried", 2, scripted(t, `{"type":"message","data":{"text":"again"}}`).events, ends)...)
	again = other.invoke(`{"session_id":"s-1"}`, "Accept", "application/x-ndjson", HeaderLastEvent, "retried.1.2")
	require.Contains(t, again.body, `"resume": "retried.2.0"`)
	again = other.invoke(`{"session_id":"s-1"}`, HeaderLastEvent, "retried.2.0")
	require.Equal(t, "again", said(t, again.body))
}

func TestRepeatedRequestIsTheSameTurn(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	messages := b.messages()
	s := serve(t, must(New(b.pipeline(), Config{Random: &counting{}})))
	first := make(chan got)
	go func() { first <- s.invoke(question, "Idempotency-Key", "k") }()
	m := <-messages
	b.write(records("s-1", requestOf(m), 1, scripted(t, hello).events, topics.AgentResult{OK: true})...)
	a := <-first
	again := s.invoke(question, "Idempotency-Key", "k")
	require.Equal(t, string(at(t, a.body, "data")), string(at(t, again.body, "data")))
	require.NotEqual(t, requestOf(m), derived("pilot", "s-2", "k"))

	// Another process answers it, too. Neither has written the message again: the next one is that of another key.
	other := serve(t, must(New(b.pipeline(), Config{})))
	again = other.invoke(question, "Idempotency-Key", "k")
	require.Equal(t, string(at(t, a.body, "data")), string(at(t, again.body, "data")))
	go func() { first <- s.invoke(question, "Idempotency-Key", "another") }()
	m = <-messages
	require.Equal(t, derived("pilot", "s-1", "another"), requestOf(m))
	b.write(records("s-1", requestOf(m), 1, scripted(t, hello).events, topics.AgentResult{OK: true})...)
	require.Equal(t, http.StatusOK, (<-first).status)
}

func TestPipelineReportsFailures(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	var text string
	b.answering(func(m topics.Message) []topics.AgentEvent {
		turn, events := requestOf(m), scripted(t, hello).events
		switch text = string(m.Content); text {
		case `"fails"`:
			return records("s-1", turn, 1, events[:2], topics.AgentResult{Error: &text})
		case `"gap"`:
			list := records("s-1", turn, 1, events, topics.AgentResult{OK: true})
			return append(list[:1], list[len(list)-1])
		case `"refused"`:
			requested, status := turn, "error"
			out, err := processors.OutboundOf(b.catalog.MessageOutput, "s-1", topics.Output{
				SessionID: m.SessionID, RequestID: &requested, Status: &status,
				Error: &topics.OutputError{Code: "busy", Message: "a turn is running"},
			}, "")
			require.NoError(t, err)
			require.NoError(t, b.to.Publish(context.Background(), out))
			return nil
		case `"by its request"`:
			list := records("s-1", "a name of its own", 1, events, topics.AgentResult{OK: true})
			list[0].Request = topics.Raw(`{"latest_input":{"metadata":{"request_id":"` + turn + `"}}}`)
			return list
		}
		return nil
	})
	s := serve(t, must(New(b.pipeline(), Config{Random: &counting{}})))
	ask := func(content string, headers ...string) got {
		message := `{"role":"user","content":"` + content + `"}`
		return s.invoke(`{"session_id":"s-1","data":{"inputs":{"messages":[`+message+`]}}}`, headers...)
	}
	require.Equal(t, `"fails"`, textAt(t, ask("fails").body, "status", "message"))
	require.Contains(t, ask("gap", "Accept", "application/x-ndjson").body, `"reason": "gap"`)
	refused := ask("refused")
	require.Equal(t, http.StatusBadGateway, refused.status)
	require.Equal(t, "a turn is running", textAt(t, refused.body, "status", "message"))
	require.Equal(t, http.StatusOK, ask("by its request").status)
	require.Equal(t, http.StatusUnprocessableEntity, s.invoke(`{"session_id":"s-1"}`).status, "no message")
}

func TestSilentTurnExpires(t *testing.T) {
	b := newBroker(t)
	now := clock.NewFake(noon)
	s := serve(t, must(New(b.pipeline(func(c *PipelineConfig) { c.Clock, c.Silence = now, time.Minute }), Config{Random: &counting{}})))
	answered := make(chan got)
	go func() { answered <- s.invoke(question) }()
	require.NoError(t, now.WaitTickers(t.Context(), 1))
	now.Advance(time.Minute)
	require.Equal(t, http.StatusGatewayTimeout, (<-answered).status)
}

func TestPipelineAnswers503WithoutRun(t *testing.T) {
	p, err := NewPipeline("pilot", []string{"localhost:1"}, &processors.KafkaPublisher{}, PipelineConfig{})
	require.NoError(t, err)
	s := newSite(t, p)
	require.Equal(t, http.StatusServiceUnavailable, s.invoke(question).status)
	_, err = NewPipeline("", []string{"localhost:1"}, &processors.KafkaPublisher{}, PipelineConfig{})
	require.ErrorIs(t, err, ErrConfig)
	_, err = NewPipeline("pilot", nil, &processors.KafkaPublisher{}, PipelineConfig{})
	require.ErrorIs(t, err, ErrConfig)
	_, err = NewPipeline("pilot", []string{"localhost:1"}, nil, PipelineConfig{})
	require.ErrorIs(t, err, ErrConfig)
}

func TestSlowRequestFailsWithoutAffectingOthers(t *testing.T) {
	h := newLiveTurn(t).pipeline.hub
	h.limit = 10
	box, _ := h.open("other", "t")
	box.put(sessionRecord{offset: 1}, 6, h.limit)
	box.put(sessionRecord{offset: 2}, 6, h.limit)
	l, ok, err := box.take()
	require.True(t, ok)
	require.NoError(t, err)
	require.Equal(t, int64(1), l.offset)
	_, _, err = box.take()
	require.ErrorIs(t, err, errSlow)
	h.close("other", box)
	require.NotContains(t, h.sessions, "other")
}

func TestSequenceReturnsRecordsInOrder(t *testing.T) {
	event := func(attempt, seq int64) topics.AgentEvent {
		return topics.AgentEvent{Attempt: attempt, Seq: seq, Event: topics.Raw("{}")}
	}
	var s sequence
	var got []int64
	for _, seq := range []int64{2, 2, 1, 1, 4, 3, 2, 5} {
		ready, err := s.add(event(1, seq))
		require.NoError(t, err)
		for _, e := range ready {
			got = append(got, e.Seq)
		}
	}
	require.Equal(t, []int64{1, 2, 3, 4, 5}, got)
	require.Zero(t, s.bytes)
	_, err := s.add(event(2, 1))
	require.ErrorIs(t, err, errAttempt)
	s.restart(2)
	ready, err := s.add(event(1, 6))
	require.NoError(t, err)
	require.Empty(t, ready, "an older attempt")
	for i := range int64(heldRecords) {
		_, err = s.add(event(2, i+2))
		require.NoError(t, err)
	}
	_, err = s.add(event(2, heldRecords+2))
	require.ErrorIs(t, err, errGap)
}

func TestMessageIsMadeByTheMessageFunction(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	messages := b.messages()
	p := b.pipeline(func(c *PipelineConfig) {
		c.Clock = clock.NewFake(noon)
		c.Lookback = time.Minute
		c.Grace = time.Second
		c.WaitingBytes = 1 << 20
		c.Kafka = []processors.Option{processors.WithMaxRecordBytes(1 << 20)}
		c.Message = func(r Request) (topics.Message, error) {
			if len(r.Data) > 100 {
				return topics.Message{}, &Error{Status: http.StatusTeapot, Type: "https://x", Text: "too much"}
			}
			return topics.Message{
				Content: topics.Raw(r.Data), Metadata: topics.Raw(`{"request_id":"mine","locale":"de"}`),
			}, nil
		}
	})
	r := Request{SessionID: "s-1", Data: topics.Raw(`{"n":1.0}`), Trace: Trace{TraceID: "t", SpanID: "u"}}
	s, err := p.Invoke(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	m := <-messages
	require.Equal(t, `{"n":1.0}`, string(m.Content))
	require.Equal(t, `{"locale":"de","request_id":"t-u"}`, string(m.Metadata))
	require.Equal(t, "2026-09-21T14:13:20.120Z", *m.Timestamp)

	r.Data = topics.Raw(`"` + strings.Repeat("x", 100) + `"`)
	_, err = p.Invoke(t.Context(), r)
	require.Equal(t, http.StatusTeapot, clientError(err).Status)
	require.Empty(t, p.hub.sessions, "nobody waits")
}

func TestTooLargeMessageIsRejected(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	s := newSite(t, b.pipeline(), func(c *Config) { c.BodyLimit = 4 << 20 })
	a := s.invoke(`{"data":{"inputs":{"messages":[{"content":"` + strings.Repeat("x", 2<<20) + `"}]}}}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, a.status)
	a = s.invoke(`{"data":{"inputs":{"messages":[{"content":null}]}}}`)
	require.Equal(t, http.StatusUnprocessableEntity, a.status)
}

// A message function that passes on what the caller sent does not let the caller choose where the answer goes.
func TestReservedMembersOfCallersDoNotReachTheMessage(t *testing.T) {
	t.Parallel()
	const sent = `{"turntable_origin":{"channel":"slack","account":"main","recipient":"C1"},"locale":"de",` +
		`"turntable_ephemeral_prompt":"obey","turntable_delegation":{},"turntable_delegation_result":{},"turntable_\u006frigin":1}`
	b := newBroker(t)
	messages := b.messages()
	p := b.pipeline(func(c *PipelineConfig) {
		c.Message = func(r Request) (topics.Message, error) {
			return topics.Message{Content: topics.Raw(`"hi"`), Metadata: topics.Raw(r.Data)}, nil
		}
	})
	s, err := p.Invoke(t.Context(), Request{SessionID: "s-1", Data: topics.Raw(sent), Trace: Trace{TraceID: "t", SpanID: "u"}})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, `{"locale":"de","request_id":"t-u"}`, string((<-messages).Metadata))

	// The default message has no metadata of the caller's.
	s, err = b.pipeline().Invoke(t.Context(), Request{
		SessionID: "s-2", Trace: Trace{TraceID: "t", SpanID: "v"},
		Data: topics.Raw(`{"metadata":` + sent + `,"inputs":{"messages":[{"content":"hi","metadata":` + sent + `}]}}`),
	})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, `{"request_id":"t-v"}`, string((<-messages).Metadata))
}

// The turns of an agent whose group has no events end with an output only. The door says so and does not wait in silence.
func TestAnswerWithoutEventsIsReported(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.answering(func(m topics.Message) []topics.AgentEvent {
		id := requestOf(m)
		out, err := processors.OutboundOf(b.catalog.MessageOutput, "s-1", topics.Output{SessionID: m.SessionID, RequestID: &id, Content: "N4."}, "")
		if err == nil {
			err = b.to.Publish(context.Background(), out)
		}
		if err != nil {
			t.Error(err)
		}
		return nil
	})
	s := serve(t, must(New(b.pipeline(func(c *PipelineConfig) { c.gap = 10 * time.Millisecond }), Config{})))
	got := s.invoke(question)
	require.Equal(t, http.StatusBadGateway, got.status, got.body)
	require.Contains(t, got.body, "turn.Config.Events")
}

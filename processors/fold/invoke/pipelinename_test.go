package invoke

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Any record of a turn can name the request, also one of the last.
func TestTurnIsFoundByAnyRecordThatNamesTheRequest(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	events := scripted(t, hello).events
	b.answering(func(m topics.Message) []topics.AgentEvent {
		of := topics.Raw(`{"latest_input":{"metadata":{"request_id":"` + requestOf(m) + `"}}}`)
		noise := records("s-1", "of nobody", 1, events, topics.AgentResult{OK: true})
		turn := "its own name for " + requestOf(m)
		switch string(m.Content) {
		case `"swapped"`:
			list := records("s-1", turn, 1, events, topics.AgentResult{OK: true, StopReason: &endTurn})
			list[0].Request = of
			return slices.Concat(list[1:3], noise[:2], list[:1], list[3:])
		case `"again"`: // by a newer attempt only
			before := records("s-1", turn, 1, scripted(t, `{"type":"message","data":{"text":"void"}}`).events,
				topics.AgentResult{OK: true})
			list := records("s-1", turn, 2, events, topics.AgentResult{OK: true, StopReason: &endTurn})
			list[4].Request = of
			return slices.Concat(before[:1], list)
		}
		list := records("s-1", turn, 1, events, topics.AgentResult{OK: true, StopReason: &endTurn})
		list[len(list)-1].Request = of
		return slices.Concat(noise[:2], list)
	})
	s := serve(t, must(New(b.pipeline(), Config{Random: &counting{}})))
	for _, content := range []string{"swapped", "last", "again"} {
		message := `{"role":"user","content":"` + content + `"}`
		body := `{"session_id":"s-1","data":{"inputs":{"messages":[` + message + `]}}}`
		a := s.invoke(body)
		require.Equal(t, `{"messages":[{"role":"assistant","content":"Hello, wörld"}],"stop_reason":"end_turn"}`,
			string(at(t, a.body, "data", "outputs")), content)
		turn := a.header.Get(HeaderTurn)
		again := s.invoke(body, HeaderLastEvent, turn+".1.1")
		require.Equal(t, string(at(t, a.body, "data")), string(at(t, again.body, "data")), content)
	}
}

func TestUnmatchedRecordsAreBounded(t *testing.T) {
	s := newLiveTurn(t).pipelineStream
	s.request = "mine"
	big := make(topics.Raw, 1<<20)
	for range 10 {
		s.keepUnmatched(sessionRecord{event: &topics.AgentEvent{TurnID: "x", Event: topics.Raw("{}"), Request: big}})
	}
	require.LessOrEqual(t, s.unmatchedBytes, heldBytes)
	for range 2 * heldRecords {
		s.keepUnmatched(sessionRecord{event: &topics.AgentEvent{TurnID: "x", Event: topics.Raw("{}")}})
	}
	require.Len(t, s.unmatched, heldRecords)
	s.name(t.Context(), sessionRecord{event: &topics.AgentEvent{TurnID: "t"}})
	require.Empty(t, s.unmatched)
	require.Len(t, s.matched, 1)
	s.keepUnmatched(sessionRecord{event: &topics.AgentEvent{TurnID: "x"}})
	require.Empty(t, s.unmatched, "the turn is known")

	var q sequence // the size of a held record includes its request
	for seq := range int64(3) {
		_, err := q.add(topics.AgentEvent{Attempt: 1, Seq: seq + 2, Request: big})
		require.NoError(t, err)
	}
	_, err := q.add(topics.AgentEvent{Attempt: 1, Seq: 9, Request: big})
	require.ErrorIs(t, err, errGap)
}

func TestResumeAnswers503WithoutRun(t *testing.T) {
	p, err := NewPipeline("pilot", []string{"localhost:1"}, &processors.KafkaPublisher{}, PipelineConfig{})
	require.NoError(t, err)
	a := newSite(t, p).invoke(question, HeaderLastEvent, "t.1.1")
	require.Equal(t, http.StatusServiceUnavailable, a.status, "it is not gone, and nothing has failed")
}

// A run that was cancelled, or that was OK despite an error, ends with the same state as its batch message.
func TestTurnEndsLikeItsBatch(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	cancelled, trouble := "cancelled", "a tool was away"
	b.answering(func(m topics.Message) []topics.AgentEvent {
		r := topics.AgentResult{OK: true, StopReason: &cancelled}
		events := scripted(t, hello).events
		switch string(m.Content) {
		case `"trouble"`:
			r = topics.AgentResult{OK: true, StopReason: &endTurn, Error: &trouble}
		case `"two"`:
			list := records("s-1", requestOf(m), 1, append(events, scripted(t,
				`{"type":"done","data":{"stopReason":"cancelled"}}`).events...), r)
			return list[:len(list)-1]
		}
		return records("s-1", requestOf(m), 1, events, r)
	})
	s := serve(t, must(New(b.pipeline(), Config{Random: &counting{}})))
	for content, state := range map[string]string{"x": "cancelled", "two": "cancelled", "trouble": "complete"} {
		body := `{"session_id":"s-1","data":{"inputs":{"messages":[{"role":"user","content":"` + content + `"}]}}}`
		require.Contains(t, s.invoke(body, "Accept", "application/x-ndjson").body, `{"state": "`+state+`"`, content)
		require.Equal(t, http.StatusOK, s.invoke(body).status)
	}
}

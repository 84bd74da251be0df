package invoke

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// The three forms of an answer, in each response format: the response is the turn after the pause, or all of it.
func TestAnswerContinuesThePausedTurn(t *testing.T) {
	t.Parallel()
	forms := map[string]string{
		"token":                  answerBody("other", `{}`, `{"approved":true,"interactionToken":"r1"}`),
		"tool call":              answerBody("t1", `{"eur":1}`, `{"approved":true}`),
		"tool and arguments":     answerBody("new-call", `{"eur":1.0}`, `{"approved":true}`),
		"altered arguments":      answerBody("t1", `{"eur":1000}`, `{"approved":true,"interactionToken":"r1"}`),
		"token of another call":  answerBody("t9", `{"eur":1000}`, `{"approved":true,"interactionToken":"r1"}`),
		"message form of a call": strings.Replace(answerBody("t1", `{}`, `{}`), `{"role":"tool","content":[{"type":"tool_result","toolCallId":"t1","output":{}}]}`, `{"role":"tool","tool_call_id":"t1","content":{"approved":true}}`, 1),
	}
	for guarantee, write := range guarantees {
		t.Run(guarantee, func(t *testing.T) {
			t.Parallel()
			g := newGates(t, write)
			g.starts(true, asksOnce...)
			s := g.site()
			n := 0
			for form, body := range forms {
				for _, accept := range []string{"text/event-stream", "application/json"} {
					name := form + " as " + accept
					n++
					paused := s.invoke(question, "Accept", "text/event-stream")
					require.Equal(t, http.StatusOK, paused.status, name)
					turn := paused.header.Get(HeaderTurn)
					require.Equal(t, turn+".1.3", lastID(t, paused.body), name)
					require.Contains(t, paused.body, `"stopReason": "paused"`, name)

					rest := s.invoke(body, "Accept", accept)
					require.Equal(t, http.StatusOK, rest.status, "%s: %s", name, rest.body)
					require.Equal(t, turn, rest.header.Get(HeaderTurn), name)
					if accept == "application/json" {
						require.Equal(t, `[{"role":"assistant","content":"Paying."},{"role":"assistant","content":"It is approved."}]`,
							string(at(t, rest.body, "data", "outputs", "messages")), name)
						require.Equal(t, `"end_turn"`, string(at(t, rest.body, "data", "outputs", "stop_reason")), name)
					} else {
						require.Equal(t, turn+".1.5", firstFrame(rest.body), name)
						require.NotContains(t, rest.body, "Paying.", name)
						require.Contains(t, rest.body, "It is approved.", name)
					}
					d := g.written()[len(g.written())-1]
					require.Equal(t, gateOf(turn, 0), d.GateID, name)
					require.Equal(t, topics.ArgsSHA256(topics.Raw(`{"eur":1}`)), d.ArgsSHA256, "%s: what was asked runs", name)
					require.Equal(t, "approve anonymous invoke", strings.Join([]string{string(d.Verdict), d.By, d.Via}, " "), name)
					require.Nil(t, d.EditedArgs)
				}
			}
			require.Len(t, g.written(), n)
			require.EqualValues(t, n, g.messagesWritten(), "no answer is a message")
		})
	}
}

func TestMessageDuringAPauseOfAPipelineCanBeRefused(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.starts(true, asksOnce...)
	p := g.pipeline(func(c *PipelineConfig) { c.Gates, c.RefuseWhilePaused = true, true })
	s := serve(t, must(New(p, Config{Random: &counting{}})))
	paused := s.invoke(question, "Accept", "text/event-stream", "Idempotency-Key", "first")
	require.Contains(t, paused.body, `"stopReason": "paused"`)
	turn := paused.header.Get(HeaderTurn)
	asked, err := processors.OutboundOf(g.catalog.GateRequests, "s-1", topics.GateRequest{ // as the fold group does
		GateID: gateOf(turn, 0), SessionID: "s-1", TurnID: turn, CallID: folder.GateCall(turn, 1, 0), Kind: topics.GateTool, Tool: "pay",
	}, "")
	require.NoError(t, err)
	require.NoError(t, g.to.Publish(t.Context(), asked))
	require.Eventually(t, func() bool { return p.hub.waits("s-1") != "" }, 20*time.Second, time.Millisecond)
	require.Equal(t, http.StatusConflict, s.invoke(question).status)
	require.EqualValues(t, 1, g.messagesWritten(), "it waits nowhere")
	require.NotEqual(t, http.StatusConflict, s.invoke(question, "Idempotency-Key", "first", "Accept", "text/event-stream").status, "a repeat")
	require.Equal(t, http.StatusOK, s.invoke(answerBody("t1", `{"eur":1}`, `{"approved":true}`)).status)
	require.Eventually(t, func() bool { return p.hub.waits("s-1") == "" }, 20*time.Second, time.Millisecond)
	require.Equal(t, http.StatusOK, s.invoke(question, "Accept", "text/event-stream").status)

	_, err = NewPipeline("pilot", g.addrs, g.to, PipelineConfig{RefuseWhilePaused: true})
	require.ErrorIs(t, err, ErrConfig)
}

func TestRequestsWithoutAKeyOrATraceAreDifferent(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	p := g.pipeline()
	for range 2 {
		s, err := p.Invoke(t.Context(), Request{SessionID: "s-1", Data: topics.Raw(`{"inputs":{"messages":[{"role":"user","content":"Pay."}]}}`)})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	require.EqualValues(t, 2, g.messagesWritten())
}

// The events before and after the pause are those of the batch, with continuous IDs, also for a client that resumes.
func TestPausedTurnIsReadAcrossThePause(t *testing.T) {
	t.Parallel()
	for _, terminal := range []bool{true, false} {
		t.Run(fmt.Sprint("terminal record ", terminal), func(t *testing.T) {
			g := newGates(t, (*broker).write)
			g.gated("t", terminal, asksOnce...)
			now := clock.NewFake(time.Now().Add(time.Minute)) // the grace after the done event is over
			s := serve(t, must(New(g.pipeline(func(c *PipelineConfig) { c.Gates, c.Clock = true, now }), Config{Random: &counting{}})))
			read := func(last string) string {
				a := s.invoke(`{"session_id":"s-1"}`, "Accept", "text/event-stream", HeaderLastEvent, last)
				require.Equal(t, http.StatusOK, a.status, a.body)
				return a.body
			}
			before := read("t.1.0")
			require.Equal(t, "t.1.3", lastID(t, before))
			require.NotContains(t, read("t.1.3"), "id: ", "it is still paused")
			g.outcome(gateOf("t", 0), topics.GateOutcome{Status: topics.GateTimedOut, Cause: topics.CauseDeadline})
			for _, last := range []string{"t.1.0", "t.1.1", "t.1.3"} {
				prefix := "" // what the client has before it resumes
				if last != "t.1.0" {
					prefix, _, _ = strings.Cut(before, "id: t.1."+fmt.Sprint(int(last[4]-'0')+1))
				}
				whole := prefix + read(last)
				f := folded(t, eventFrames(whole))
				batch := s.invoke(`{"session_id":"s-1"}`, HeaderLastEvent, "t.1.0")
				require.Equal(t, string(at(t, batch.body, "data", "outputs")), string(f.AppendEnvelope(nil)), last)
				require.Contains(t, batch.body, "It is timed_out.")
			}
			other := g.site() // a process that starts now
			require.Contains(t, other.invoke(`{"session_id":"s-1"}`, HeaderLastEvent, "t.1.3").body, "It is timed_out.")
		})
	}
}

func TestDenialsAndValuesContinueTheTurn(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	s := g.site()
	g.gated("denied", true, asksOnce...)
	a := s.invoke(answerBody("t1", `{}`, `{"approved":false,"interactionToken":"r1","reason":"too much"}`))
	require.Contains(t, a.body, "It is denied.")
	require.Equal(t, "too much", g.written()[0].Reason)

	g.gated("asked", true, `{"id":"q1","kind":"user_input","payload":{"toolCallId":"c1","question":"Which berth?"}}`)
	a = s.invoke(answerBody("c1", `{}`, `"N4"`))
	require.Contains(t, a.body, "It is approved.")
	require.Equal(t, `"N4"`, g.written()[1].Answer.String())
	require.Equal(t, topics.VerdictAnswer, g.written()[1].Verdict)
	require.Equal(t, http.StatusOK, s.invoke(answerBody("c1", `{}`, `"N4"`)).status, "the same again")
	require.Equal(t, http.StatusConflict, s.invoke(answerBody("c1", `{}`, `"N5"`)).status)
	require.Len(t, g.written(), 2)

	// Results that answer nothing are an ordinary message.
	g.starts(true, asksOnce...)
	a = s.invoke(answerBody("unknown", `{}`, `"N4"`))
	require.Contains(t, a.body, "Paying.")
	require.EqualValues(t, 1, g.messagesWritten())
}

func TestAnswerToOneOfSeveralLeavesTheTurnPaused(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	s := g.site()
	g.gated("t", true, askFor("r1", "t1", `{"eur":1}`), askFor("r2", "t2", `{"eur":2}`), askFor("r3", "t3", `{"eur":3}`))
	first := s.invoke(answerBody("t3", `{}`, `{"approved":true}`))
	require.Equal(t, http.StatusOK, first.status, first.body)
	require.Equal(t, `"paused"`, string(at(t, first.body, "data", "outputs", "stop_reason")))
	require.Equal(t, "r2", textAt(t, first.body, "data", "outputs", "pending_interaction", "id"), "the last one that is open")
	require.Len(t, elementsOf(at(t, first.body, "data", "outputs", "pending_interactions")), 2)
	second := s.invoke(answerBody("t1", `{}`, `{"approved":true}`), "Accept", "application/x-ndjson")
	require.Len(t, lines(second.body), 1, "nothing new but the end")
	require.Contains(t, second.body, "stream_end")
	both := `{"session_id":"s-1","data":{"inputs":{"messages":[{"role":"tool","content":[` +
		`{"type":"tool_result","toolCallId":"t1","output":{"approved":true}},{"type":"tool_result","toolCallId":"t2","output":{"approved":true}}]}]}}}`
	last := s.invoke(both)
	require.Contains(t, last.body, "It is approved.")
	require.Len(t, g.written(), 3, "an answer in the history that was given before is not written again")
}

func TestWithoutTheOptionAnAnswerIsAMessage(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.gated("t", true, asksOnce...)
	g.starts(true, asksOnce...)
	s := serve(t, must(New(g.pipeline(), Config{Random: &counting{}})))
	require.Equal(t, http.StatusOK, s.statusOf(answerBody("t1", `{}`, `{"approved":true}`), "Accept", forms[1]))
	require.EqualValues(t, 1, g.messagesWritten())
	require.Empty(t, g.written())
}

// A Vercel client answers in the assistant's message, and its stream begins again with that message.
func TestVercelClientAnswers(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	s := g.site()
	g.gated("t", true, asksOnce...)
	body := `{"session_id":"s-1","data":{"inputs":{"messages":[{"id":"u1","role":"user","parts":[{"type":"text","text":"Pay."}]},` +
		`{"id":"a1","role":"assistant","parts":[{"type":"text","text":"Paying."},{"type":"tool-pay","toolCallId":"t1",` +
		`"state":"approval-responded","input":{"eur":1000},"approval":{"id":"r1","approved":true}}]}]}}}`
	a := s.invoke(body, "Accept", "text/event-stream", HeaderFormat, "vercel")
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Contains(t, a.body, `"messageId": "a1"`)
	require.NotContains(t, a.body, "Paying.")
	require.Contains(t, a.body, "It is approved.")
	require.Equal(t, topics.ArgsSHA256(topics.Raw(`{"eur":1}`)), g.written()[0].ArgsSHA256)
}

// The answer goes to the turn that waits, not to one that has the same IDs and was decided before.
func TestAnswerGoesToTheTurnThatWaits(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	s := g.site()
	for i := range 5 {
		turn := fmt.Sprint("t", i)
		g.gated(turn, i%2 == 0, asksOnce...)
		a := s.invoke(answerBody("t1", `{}`, `{"approved":true}`), "Idempotency-Key", turn)
		require.Equal(t, turn, a.header.Get(HeaderTurn), a.body)
	}
}

func TestResumedRunWithoutAStopReasonEndsWithoutOne(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.gated("t", false, asksOnce...)
	s := g.site()
	g.mu.Lock()
	g.decided[gateOf("t", 0)] = true
	g.emit("t", `{"type":"interaction_response","data":{"id":"r1"}}`, `{"type":"message","data":{"text":"Paid."}}`)
	g.end("t", topics.AgentResult{OK: true})
	g.mu.Unlock()
	batch := s.invoke(`{"session_id":"s-1"}`, HeaderLastEvent, "t.1.0")
	require.Equal(t, `{"messages":[{"role":"assistant","content":"Paying."},{"role":"assistant","content":"Paid."}]}`,
		string(at(t, batch.body, "data", "outputs")))
	stream := s.invoke(`{"session_id":"s-1"}`, HeaderLastEvent, "t.1.0", "Accept", "text/event-stream")
	f := folded(t, eventFrames(stream.body))
	require.Equal(t, string(at(t, batch.body, "data", "outputs")), string(f.AppendEnvelope(nil)))
	require.Equal(t, "t.1.6", lastID(t, stream.body))
}

func TestPausesAgreeWithTheEvents(t *testing.T) {
	p := newPauses("t")
	now := time.Unix(1, 0)
	event := func(seq int64, raw string) bool {
		e, err := folder.DecodeEvent(topics.Raw(raw))
		require.NoError(t, err)
		return p.event(e, seq, now)
	}
	stop := "paused"
	ok := topics.AgentResult{OK: true}
	require.False(t, event(1, `{"type":"done","stopReason":"paused"}`), "nothing is asked")
	require.False(t, p.result(topics.AgentResult{OK: true, StopReason: &stop}, 2, now))
	require.False(t, event(3, `{"type":"interaction_request","id":"r1"}`))
	require.True(t, event(4, `{"type":"done","stopReason":"paused"}`))
	require.True(t, p.result(ok, 5, now), "the reason is that of the done event")
	require.False(t, p.result(ok, 6, now), "the second one ends the turn")
	require.True(t, p.result(topics.AgentResult{OK: true, StopReason: &stop}, 7, now))
	require.False(t, p.result(topics.AgentResult{}, 8, now), "a failure")
	none := func(string) *topics.GateOutcome { return nil }
	list := p.gates("s", "t", 1, none)
	require.Len(t, list, 1)
	require.True(t, list[0].open)
	require.EqualValues(t, 7, list[0].after)
	require.False(t, event(8, `{"type":"interaction_response","id":"r1"}`))
	require.True(t, p.stale)
	require.False(t, p.gates("s", "t", 1, none)[0].open)
	require.False(t, event(9, `{"type":"interaction_request","id":"r1"}`))
	require.Len(t, p.gates("s", "t", 1, none), 1, "a request has its gate at the next pause")
	require.False(t, event(10, `{"type":"done"}`))
	require.False(t, p.stale)
}

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/topics"
)

// Two agents in one process, with HTTP between them: one delegates tasks to the other.
func TestAgentCallsAgent(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		s := newFixture(t, guarantee, quick(time.Minute), turn.Config{})
		for _, scene := range []struct {
			name string
			play func(t *testing.T, s *fixture)
		}{
			{"answer comes back as the tool's result", roundTrip},
			{"worker's failure is an error result", failure},
			{"tasks of one step run side by side", parallel},
			{"sessions do not mix", twoUsers},
			{"repeated callback changes nothing", duplicate},
			{"silent worker costs an error result, and its late answer changes nothing", silent},
			{"callback waits for a service that is down", downForAWhile},
			{"Retry-After is waited for", busy},
		} {
			ok := t.Run(scene.name, func(t *testing.T) {
				outer := s.t
				s.t, s.callbackProxy.t = t, t
				defer func() { s.t, s.callbackProxy.t = outer, outer }()
				scene.play(t, s)
			})
			require.True(t, ok, "what comes after it would wait for nothing")
		}
	})
}

func roundTrip(t *testing.T, s *fixture) {
	before := len(s.callbackProxy.callbacks())
	s.ask("round", firstQuestion)
	out := s.outputs("round", 1)[0]
	require.Regexp(t, scriptedAnswer, out.Content)
	require.Equal(t, orchestrator, out.SourceAgent)
	require.Equal(t, "user of round", *out.UserID)

	// The worker received an ordinary question and answered it as any other.
	tasks := s.await(s.worker.MessageInput.Name(), "round", 3)
	require.Len(t, tasks, 3)
	for _, r := range tasks {
		require.NotContains(t, string(r.Value), orchestrator)
		require.NotContains(t, string(r.Value), "callback")
	}
	for _, r := range s.await(s.worker.MessageOutput.Name(), "round", 3) {
		require.NotContains(t, string(r.Value), "bearerToken", "the token is the delivery's alone")
	}
	// The orchestrator received the result as that of any asynchronous tool.
	came := s.callbackProxy.await(before + 3)[before:]
	keys := map[string]bool{}
	for _, c := range came {
		require.Equal(t, turnhttp.ToolResponsePath, c.path)
		require.Equal(t, http.StatusAccepted, c.status)
		require.True(t, strings.HasPrefix(c.header.Get("Authorization"), "Bearer "))
		keys[c.header.Get("Idempotency-Key")] = true
	}
	require.Len(t, keys, 3)
	for _, r := range s.await(s.orchestrator.ToolUseResult.Name(), "round", 3) {
		in := s.orchestrator.ToolUseResult.Codec().Unmarshal(r.Value)
		require.NoError(t, in.Err)
		require.Equal(t, "success", *in.Value.Status)
		require.Contains(t, string(in.Value.Result), `{"result":"`)
	}
}

// The worker's turn ends in an error output. The callback contains the error and the door turns it into an error result.
func failure(t *testing.T, s *fixture) {
	s.ask("failure", "delegate: 1 / 0 | say fine")
	got := results(t, s.outputs("failure", 1)[0])
	require.Len(t, got, 2)
	require.Equal(t, "error", got[0].Status)
	require.JSONEq(t, `{"result":"the model's worker gave up: division by zero","status":"error",`+
		`"error":{"code":"think_failed","message":"the model's worker gave up: division by zero"}}`, string(got[0].Result))
	require.Equal(t, "success", got[1].Status)

	s.ask("failure", "What is 1 / 0?") // the example's own models
	require.Equal(t, "delegate_task failed (the model's worker gave up: division by zero).",
		s.outputs("failure", 2)[1].Content)
}

func parallel(t *testing.T, s *fixture) {
	s.drainBegun()
	s.ask("parallel", "delegate: one | two | three")
	var begun []string
	for range 3 { // each call waits until all three have started
		begun = append(begun, s.nextBegun())
	}
	require.ElementsMatch(t, []string{"one", "two", "three"}, begun)
	for i, task := range []string{"three", "one", "two"} {
		s.release[task] <- "said " + task
		s.await(s.orchestrator.ToolUseResult.Name(), "parallel", i+1)
	}
	var said []string
	for _, r := range results(t, s.outputs("parallel", 1)[0]) {
		said = append(said, r.Status+" "+string(r.Result))
	}
	require.Equal(t, []string{
		`success {"result":"said one"}`, `success {"result":"said two"}`, `success {"result":"said three"}`,
	}, said, "in the order of the calls")
}

func twoUsers(t *testing.T, s *fixture) {
	sessions := []string{"mira", "noor"}
	for round := 1; round <= 2; round++ {
		for _, session := range sessions {
			s.ask(session, fmt.Sprintf("delegate: say %s %d a | say %s %d b", session, round, session, round))
		}
		for _, session := range sessions {
			out := s.outputs(session, round)[round-1]
			require.Equal(t, "user of "+session, *out.UserID)
			for i, r := range results(t, out) {
				require.Equal(t, fmt.Sprintf(`{"result":"%s %d %c"}`, session, round, 'a'+i), string(r.Result))
			}
		}
	}
}

func duplicate(t *testing.T, s *fixture) {
	before := len(s.callbackProxy.callbacks())
	s.ask("duplicate", "delegate: say once")
	first := s.outputs("duplicate", 1)[0]
	came := s.callbackProxy.await(before + 1)
	last := came[len(came)-1]
	require.Contains(t, last.body, "once")
	require.Equal(t, http.StatusAccepted, s.send(last, true), "its door remembers the key, and writes nothing")
	require.Equal(t, http.StatusAccepted, s.send(last, false), "any other is a late result of the call")
	s.awaitDeadLetter("duplicate", "turn: ")

	s.ask("duplicate", "delegate: say again") // after the repeats
	outputs := s.outputs("duplicate", 2)
	require.Equal(t, first.Content, outputs[0].Content)
	require.Contains(t, outputs[1].Content, "again")
	require.Len(t, s.records(s.orchestrator.ToolUseResult.Name(), "duplicate"), 3)
}

func silent(t *testing.T, s *fixture) {
	s.drainBegun()
	s.ask("silent", "delegate: hang")
	require.Equal(t, "hang", s.nextBegun())
	s.passTime("silent", 1)
	got := results(t, s.outputs("silent", 1)[0])
	require.Equal(t, "error", got[0].Status)
	require.Contains(t, string(got[0].Result), `"reason":"timeout"`)

	s.release["hang"] <- "at last"
	s.awaitDeadLetter("silent", "turn: ")
	require.Equal(t, 1, s.finals("silent", topics.OutcomeDelivered), "whether it is late the turn decides, not its door")
	s.ask("silent", "delegate: say on")
	require.Contains(t, s.outputs("silent", 2)[1].Content, `{"result":"on"}`)
}

func downForAWhile(t *testing.T, s *fixture) {
	s.callbackProxy.stop()
	s.ask("while", "delegate: say patience")
	require.Equal(t, topics.OutcomeFailed, s.receipts("while", 1)[0].Outcome)
	require.Empty(t, s.records(s.orchestrator.MessageOutput.Name(), "while"))
	s.callbackProxy.restart()
	require.Contains(t, s.outputs("while", 1)[0].Content, `{"result":"patience"}`)
	require.Equal(t, 1, s.finals("while", topics.OutcomeDelivered))
}

func busy(t *testing.T, s *fixture) {
	s.callbackProxy.refuse(1)
	before := len(s.callbackProxy.callbacks())
	s.ask("busy", "delegate: say later")
	require.Contains(t, s.outputs("busy", 1)[0].Content, `{"result":"later"}`)
	came := s.callbackProxy.await(before + 2)[before:]
	require.Equal(t, http.StatusTooManyRequests, came[0].status)
	require.GreaterOrEqual(t, came[1].at.Sub(came[0].at), time.Second)
	require.Equal(t, came[0].header.Get("Idempotency-Key"), came[1].header.Get("Idempotency-Key"))
	first := s.receipts("busy", 1)[0]
	require.Equal(t, []int64{429, 1000}, []int64{first.Status, first.RetryAfterMS})
}

// A session that passes its history limit is summarized by the example's compactor and continues.
func TestLongSessionContinuesWithASummary(t *testing.T) {
	s := newFixture(t, processors.AtLeastOnce, delivery.Config{}, turn.Config{
		HistoryLimit: turn.HistoryLimit{Messages: 4}, Compaction: &turn.Compaction{Keep: 1},
	})
	var last topics.EnrichedMessage
	for n := 1; n <= 7; n++ { // the third, fifth and seventh question find a history over the limit
		s.ask("long", fmt.Sprintf("Question %d?", n))
		require.Nil(t, s.outputs("long", n)[n-1].Error)
		step := s.await(s.orchestrator.EnrichedMessageInput.Name(), "long", n)[n-1]
		in := s.orchestrator.EnrichedMessageInput.Codec().Unmarshal(step.Value)
		require.NoError(t, in.Err)
		last = in.Value
	}
	s.await(s.orchestrator.CompactionResult.Name(), "long", 1)
	require.Contains(t, string(last.History), "[Conversation Summary]")
	require.Contains(t, string(last.History), "The user asked: Question 1? Question 2?", "also by way of an older summary")
	require.NotContains(t, string(last.History), `"content":"Question 1?"`)
}

// If the callback service stays down, the delivery ends dead with the reason of every attempt, and the call ends at the
// caller's deadline.
func TestCallOfUndeliverableCallbackEndsAtItsDeadline(t *testing.T) {
	s := newFixture(t, processors.AtLeastOnce, quick(400*time.Millisecond), turn.Config{})
	s.callbackProxy.stop()
	s.ask("down", "delegate: say nothing")
	letter := s.await(s.worker.DeliveryDLQ.Name(), "down", 1)[0]
	require.NotContains(t, string(letter.Value), "Bearer")
	require.NotContains(t, string(letter.Value), "bearer_token\":\"")
	dead := s.worker.DeliveryDLQ.Codec().Unmarshal(letter.Value)
	require.NoError(t, dead.Err)
	require.Contains(t, dead.Value.Reason, "retry time is spent")
	require.Equal(t, "http/orchestrator", dead.Value.Delivery.Route.Key())
	require.NotEmpty(t, dead.Value.Failures)
	for i, f := range dead.Value.Failures {
		require.Equal(t, int64(i+1), f.Attempt)
		require.Contains(t, []string{"no connection", "connection lost"}, f.Reason)
	}
	require.Equal(t, 1, s.finals("down", topics.OutcomeDead))
	require.Empty(t, s.records(s.orchestrator.MessageOutput.Name(), "down"))

	s.passTime("down", 1)
	got := results(t, s.outputs("down", 1)[0])
	require.Equal(t, "error", got[0].Status)
	require.Contains(t, string(got[0].Result), `"reason":"timeout"`)
}

// passTime advances the orchestrator's clock until a session has so many answers.
func (s *fixture) passTime(session string, answers int) {
	s.t.Helper()
	s.clock.Advance(toolTimeout)
	require.Eventually(s.t, func() bool {
		s.clock.Advance(10 * time.Millisecond) // a tick
		return len(s.records(s.orchestrator.MessageOutput.Name(), session)) >= answers
	}, waitLimit, 10*time.Millisecond)
}

func (s *fixture) nextBegun() string {
	s.t.Helper()
	select {
	case task := <-s.begun:
		return task
	case <-time.After(waitLimit):
		require.Fail(s.t, "the worker was not asked")
		return ""
	}
}

// drainBegun discards the tasks that the worker's model has received so far.
func (s *fixture) drainBegun() {
	for len(s.begun) > 0 {
		<-s.begun
	}
}

// awaitDeadLetter waits for a tool result that the orchestrator's turn dead-letters.
func (s *fixture) awaitDeadLetter(session, reason string) {
	s.t.Helper()
	letter := s.await(s.orchestrator.DeadLetters(), session, 1)[0]
	require.Equal(s.t, s.orchestrator.ToolUseResult.Name(), string(letter.Header(topics.HeaderErrorSourceTopic)))
	require.Contains(s.t, string(letter.Header(topics.HeaderErrorReason)), reason)
}

// receipts waits for at least n receipts of attempts and returns them.
func (s *fixture) receipts(session string, n int) []topics.Receipt {
	s.t.Helper()
	var receipts []topics.Receipt
	for _, r := range s.await(s.worker.DeliveryReceipts.Name(), session, n) {
		in := s.worker.DeliveryReceipts.Codec().Unmarshal(r.Value)
		require.NoError(s.t, in.Err)
		if !in.Value.Final {
			receipts = append(receipts, in.Value)
		}
	}
	require.NotEmpty(s.t, receipts)
	return receipts
}

// finals waits for a final receipt, checks the outcome of all, and counts them.
func (s *fixture) finals(session string, outcome topics.Outcome) int {
	s.t.Helper()
	count := func() (n int) {
		for _, r := range s.records(s.worker.DeliveryReceipts.Name(), session) {
			if in := s.worker.DeliveryReceipts.Codec().Unmarshal(r.Value); in.Value.Final {
				require.Equal(s.t, outcome, in.Value.Outcome)
				n++
			}
		}
		return n
	}
	require.Eventually(s.t, func() bool { return count() > 0 }, waitLimit, 5*time.Millisecond)
	return count()
}

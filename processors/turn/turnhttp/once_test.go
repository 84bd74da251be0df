package turnhttp_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

const hi = `{"session_id":"s","content":"hi","reply":{"callbackService":"harbor"}}`

func TestSameKeyGetsTheSameAnswerAndWritesOnce(t *testing.T) {
	s := newFixture(t)
	first := s.chat(hi, "Idempotency-Key", "k")
	require.Equal(t, 200, first.status)
	require.Contains(t, first.body, `"request_id":"`)
	written := s.publisher.lines()
	require.Len(t, written, 2)
	s.clock.Advance(time.Hour)
	again := s.chat(hi, "Idempotency-Key", "k")
	require.Equal(t, []any{first.status, first.body}, []any{again.status, again.body})
	require.Equal(t, written, s.publisher.lines())

	claims := token.Claims{SessionID: "s", ToolUseID: "t"}
	require.Equal(t, 202, s.callback(`{"a":1}`, claims, "Idempotency-Key", "k").status)
	require.Equal(t, 202, s.callback(`{"a":1}`, claims, "Idempotency-Key", "k").status)
	require.Len(t, s.publisher.lines(), 3)
}

func TestSameKeyWithADifferentBodyIsRejected(t *testing.T) {
	s := newFixture(t)
	require.Equal(t, 200, s.chat(hi, "Idempotency-Key", "k").status)
	g := s.chat(strings.Replace(hi, "hi", "ho", 1), "Idempotency-Key", "k")
	require.Equal(t, []any{422, `{"error":"Idempotency-Key was used for another request"}`}, []any{g.status, g.body})

	claims := token.Claims{SessionID: "s", ToolUseID: "t"}
	require.Equal(t, 202, s.callback(`{"a":1}`, claims, "Idempotency-Key", "k").status)
	require.Equal(t, 422, s.callback(`{"a":2}`, claims, "Idempotency-Key", "k").status)
}

func TestKeysAreScopedBySessionAndCall(t *testing.T) {
	s := newFixture(t)
	require.Equal(t, 200, s.chat(hi, "Idempotency-Key", "k").status)
	require.Equal(t, 200, s.chat(`{"session_id":"s2","content":"hi"}`, "Idempotency-Key", "k").status)
	for _, c := range []token.Claims{
		{SessionID: "s", ToolUseID: "t"}, {SessionID: "s", ToolUseID: "t2"}, {SessionID: "st"},
	} {
		require.Equal(t, 202, s.callback(`{}`, c, "Idempotency-Key", "k").status)
	}
	require.Len(t, s.publisher.lines(), 2+1+3)
}

func TestOtherInstanceWritesTheSameRecordsForAKey(t *testing.T) {
	one, two := newFixture(t), newFixture(t)
	for _, s := range []*fixture{one, two} {
		s.chat(hi, "Idempotency-Key", "k")
		s.chat(`{"session_id":"s","content":"hi","request_id":"r"}`, "Idempotency-Key", "l")
		s.callback("{}", token.Claims{SessionID: "s", ToolUseID: "t"}, "Idempotency-Key", "k")
	}
	require.Equal(t, one.publisher.lines(), two.publisher.lines())
	ids := map[string]bool{}
	for _, r := range one.publisher.records {
		ids[string(r.Headers["turntable.id"])] = true
	}
	require.Len(t, ids, 4)
	require.NotContains(t, ids, "")
	require.Contains(t, string(one.publisher.records[2].Value), `"request_id":"r"`)
}

func TestFailedRequestCanBeRetriedWithTheSameKey(t *testing.T) {
	s := newFixture(t)
	s.publisher.fail(errors.New("no leader"))
	require.Equal(t, 500, s.chat(hi, "Idempotency-Key", "k").status)
	require.Equal(t, 400, s.chat(`{"session_id":"s"}`, "Idempotency-Key", "k").status)
	s.publisher.fail(nil)
	require.Equal(t, 200, s.chat(hi, "Idempotency-Key", "k").status)
	require.Len(t, s.publisher.lines(), 2)
}

func TestConcurrentRepeatWaitsForTheAnswer(t *testing.T) {
	s := newFixture(t)
	s.publisher.gate = make(chan struct{})
	answers := make(chan response, 5)
	for range 5 {
		go func() { answers <- s.chat(hi, "Idempotency-Key", "k") }()
	}
	s.publisher.gate <- struct{}{}
	want := <-answers
	require.Equal(t, 200, want.status)
	for range 4 {
		g := <-answers
		require.Equal(t, []any{want.status, want.body}, []any{g.status, g.body})
	}
	require.Len(t, s.publisher.lines(), 2)
}

func TestKeysAreEvictedByAgeAndCount(t *testing.T) {
	s := newFixture(t, func(c *turnhttp.Config) { c.RememberFor, c.RememberCount = time.Minute, 2 })
	for _, key := range []string{"a", "b", "c"} {
		require.Equal(t, 200, s.chat(hi, "Idempotency-Key", key).status)
	}
	s.chat(hi, "Idempotency-Key", "c")
	require.Len(t, s.publisher.lines(), 6)
	s.chat(hi, "Idempotency-Key", "a") // the oldest of three
	require.Len(t, s.publisher.lines(), 8)
	s.clock.Advance(time.Minute)
	s.chat(hi, "Idempotency-Key", "a")
	require.Len(t, s.publisher.lines(), 10)
}

func TestInvalidKeyIsRejected(t *testing.T) {
	s := newFixture(t)
	for _, key := range []string{strings.Repeat("k", 257), "a\tb"} {
		require.Equal(t, 400, s.chat(hi, "Idempotency-Key", key).status)
		require.Equal(t, 400, s.callback("{}", token.Claims{}, "Idempotency-Key", key).status)
	}
	require.Empty(t, s.publisher.lines())
	require.Equal(t, 200, s.chat(hi, "Idempotency-Key", "").status)
}

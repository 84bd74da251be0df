package fold

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// runRecord is an event of an attempt at a step: a message.
func runRecord(t tester, step, attempt, seq int64, text string) input {
	t.Helper()
	return streamRecord(t, topics.AgentEvent{
		TurnID: "t", Step: step, Attempt: attempt, Seq: seq, Event: topics.Raw(fmt.Sprintf(`{"type":"message","data":{"text":%q}}`, text)),
	})
}

// turnRecord is a record of the turn itself.
func turnRecord(t tester, step, seq int64, change ...func(*topics.AgentEvent)) input {
	t.Helper()
	e := topics.AgentEvent{TurnID: "t", Author: topics.AuthorTurn, Step: step, Seq: seq, Event: topics.Raw(`{"type":"step"}`)}
	for _, f := range change {
		f(&e)
	}
	return streamRecord(t, e)
}

func settles(attempt, seq int64) func(*topics.AgentEvent) {
	return func(e *topics.AgentEvent) { e.Settles = &topics.AgentAttempt{Attempt: attempt, Seq: seq} }
}

func endsWith(r topics.AgentResult) func(*topics.AgentEvent) {
	return func(e *topics.AgentEvent) { e.Event, e.Result = nil, &r }
}

func untilMS(at time.Time) func(*topics.AgentEvent) {
	return func(e *topics.AgentEvent) { e.UntilMS = at.UnixMilli() }
}

func texts(b topics.BatchMessage) string {
	var list []string
	elements, _ := topics.Elements(b.Messages)
	for _, m := range elements {
		text, _ := topics.Lookup(m, "content")
		list = append(list, strings.Trim(string(text), `"`))
	}
	return strings.Join(list, " ")
}

func TestAttemptThatTheTurnNamesCountsAlthoughALaterOneWrites(t *testing.T) {
	p := newPlay(t)
	p.handle(turnRecord(t, 1, 1))
	p.handle(runRecord(t, 1, 5, 1, "first"))
	p.handle(runRecord(t, 1, 9, 1, "second"))
	p.handle(runRecord(t, 1, 9, 2, "more"))
	p.handle(turnRecord(t, 1, 1_000_000, settles(5, 1), endsWith(okResult("end_turn"))))
	b := p.only("t")
	require.Equal(t, "first", texts(b))
	require.EqualValues(t, 3, b.Attempt, "readers had to begin again twice")
	p.handle(runRecord(t, 1, 9, 3, "late"))
	require.Len(t, p.batches, 1)
	p.settle()
}

// The turn repeats the beginning of a step whose clock a gate has stopped.
func TestRepeatedBeginningOfAStepExtendsItsSilence(t *testing.T) {
	p := newPlay(t)
	p.handle(turnRecord(t, 1, 1, untilMS(p.now.Add(time.Minute))))
	p.handle(turnRecord(t, 1, 1, untilMS(p.now.Add(2*time.Hour))))
	p.handle(turnRecord(t, 1, 1, untilMS(p.now.Add(time.Minute)))) // redelivered
	require.Empty(t, p.until(2*time.Hour+p.config.Silence-time.Millisecond).batches())
	require.Len(t, p.until(time.Millisecond).batches(), 1)
}

// The turn's records wait for the events of the attempt that they name, and for no longer than for any missing record.
func TestTurnWaitsForTheEventsOfTheAttemptItNames(t *testing.T) {
	p := newPlay(t)
	p.handle(turnRecord(t, 1, 1))
	p.handle(turnRecord(t, 1, 2, settles(5, 2)))
	p.handle(turnRecord(t, 2, 1))
	p.handle(runRecord(t, 2, 8, 1, "answer"))
	p.handle(runRecord(t, 1, 5, 2, "two"))
	p.handle(runRecord(t, 1, 5, 1, "one"))
	p.handle(turnRecord(t, 2, 1_000_000, settles(8, 1), endsWith(okResult("end_turn"))))
	require.Equal(t, "one two answer", texts(p.only("t")))

	p = newPlay(t)
	p.handle(turnRecord(t, 1, 1))
	p.handle(runRecord(t, 1, 5, 1, "one"))
	p.handle(turnRecord(t, 1, 1_000_000, settles(5, 2), endsWith(okResult("end_turn"))))
	p.until(p.config.WindowWait)
	b := p.only("t")
	require.Equal(t, []string{topics.BatchFailed, topics.ReasonGap, "one"}, []string{b.State, *b.Reason, texts(b)})
	p.settle()
}

func TestTurnIsSilentForAsLongAsItAnnounces(t *testing.T) {
	p := newPlay(t)
	p.handle(turnRecord(t, 1, 1, untilMS(p.now.Add(time.Hour))))
	p.until(time.Hour)
	require.Empty(t, p.batches)
	p.until(p.config.Silence)
	require.Equal(t, topics.BatchExpired, p.only("t").State)
	p.settle()
}

// The turn reads the same control and writes how it ends, which may be an answer. A purge ends its stream at once.
func TestTurnWritesHowItEndsAfterACancel(t *testing.T) {
	p := newPlay(t)
	p.handle(turnRecord(t, 1, 1))
	p.handle(runRecord(t, 1, 5, 1, "one"))
	p.handle(controlReceived{record("c"), topics.Control{Action: topics.ActionCancel}})
	require.Empty(t, p.batches)
	p.handle(turnRecord(t, 1, 1_000_000, endsWith(topics.AgentResult{OK: true, StopReason: new("cancelled"), Code: topics.CodeCancelled})))
	b := p.only("t")
	require.Equal(t, []string{topics.BatchCancelled, "one"}, []string{b.State, texts(b)})

	p = newPlay(t)
	p.handle(turnRecord(t, 1, 1))
	p.handle(runRecord(t, 1, 5, 1, "one"))
	p.handle(runRecord(t, 2, 5, 1, strings.Repeat("x", 1000)))
	p.handle(controlReceived{record("c"), topics.Control{Action: topics.ActionPurge}})
	require.Equal(t, topics.BatchCancelled, p.only("t").State)
	p.settle()
}

func TestCodeOfATerminalRecordIsTheReasonOfTheBatch(t *testing.T) {
	for code, state := range map[topics.Code]string{
		topics.CodeThinkFailed: topics.BatchFailed, topics.CodeThinkTimeout: topics.BatchExpired,
	} {
		p := newPlay(t)
		p.handle(turnRecord(t, 1, 1_000_000, endsWith(topics.AgentResult{Error: new("no"), Code: code})))
		b := p.only("t")
		require.Equal(t, []string{state, string(code), "no"}, []string{b.State, *b.Reason, *b.Error})
		p.settle()
	}
}

// An attempt with a gap that cannot be closed does not end its turn, unless the turn names it.
func TestAttemptOfADeadWorkerDoesNotEndItsTurn(t *testing.T) {
	p := newPlay(t, func(c *Config) { c.WindowCount = 2 })
	p.handle(turnRecord(t, 1, 1))
	for seq := range int64(6) {
		p.handle(runRecord(t, 1, 5, seq+2, "dead"))
	}
	p.until(2 * p.config.WindowWait)
	require.Empty(t, p.batches)
	for attempt := range int64(2 * maxRuns) {
		p.handle(runRecord(t, 1, 10+attempt, 1, "again"))
	}
	require.LessOrEqual(t, len(p.state().Open[0].Runs), maxRuns)
	p.handle(runRecord(t, 1, 99, 1, "alive"))
	p.handle(turnRecord(t, 1, 1_000_000, settles(99, 1), endsWith(okResult("end_turn"))))
	require.Equal(t, "alive", texts(p.only("t")))
	p.settle()
}

// However many attempts a turn has, those that may be the one that counts are kept, and none leaves a part behind.
func TestAttemptsThatMayCountAreKept(t *testing.T) {
	many := func(p *play, seq int64) {
		for attempt := range int64(2 * maxRuns) {
			p.handle(runRecord(t, 1, 1000+attempt, seq, "other"))
		}
	}
	counts := func(p *play, attempt int64, records ...int64) {
		for _, seq := range records {
			p.handle(runRecord(t, 1, attempt, seq, fmt.Sprint(seq)))
		}
	}
	end := func(p *play, attempt, seq int64) {
		p.handle(turnRecord(t, 1, 1_000_000, settles(attempt, seq), endsWith(okResult("end_turn"))))
	}
	for name, records := range map[string]func(p *play){
		"of the turn itself": func(p *play) {
			many(p, 1)
			counts(p, 1, 1, 2, 3)
			many(p, 1)
			end(p, 1, 3)
		},
		"of a worker with a slow clock": func(p *play) {
			many(p, 1)
			counts(p, 5, 1, 3, 2)
			end(p, 5, 3)
		},
		"shown": func(p *play) {
			counts(p, 5, 1, 2, 3)
			many(p, 2)
			end(p, 5, 3)
		},
		"named": func(p *play) {
			counts(p, 5, 1, 2)
			end(p, 5, 3)
			many(p, 1)
			counts(p, 5, 3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.handle(turnRecord(t, 1, 1))
			records(p)
			b := p.only("t")
			require.Equal(t, []string{topics.BatchComplete, "1 2 3"}, []string{b.State, texts(b)})
			p.settle()
		})
	}
}

// A run for which nothing can be dropped is not begun: its records are left out.
func TestAttemptsBeyondTheLimitAreLeftOut(t *testing.T) {
	p := newPlay(t)
	p.handle(turnRecord(t, 1, 1))
	for step := range int64(maxRuns) {
		p.handle(runRecord(t, step+1, 1, 1, "own"))
	}
	for seq := range int64(4) {
		p.handle(runRecord(t, 2, 9, seq+2, "no room"))
	}
	require.Len(t, p.state().Open[0].Runs, maxRuns)
	p.settle()
}

// Attempts whose records came before the step began were shown to no one.
func TestAttemptsBeforeTheStepReplaceNothing(t *testing.T) {
	p := newPlay(t)
	p.handle(turnRecord(t, 1, 1))
	p.handle(runRecord(t, 2, 5, 1, "first"))
	p.handle(runRecord(t, 2, 7, 1, "second"))
	p.handle(turnRecord(t, 1, 2, settles(1, 0)))
	p.handle(turnRecord(t, 2, 1))
	p.handle(turnRecord(t, 2, 1_000_000, settles(7, 1), endsWith(okResult("end_turn"))))
	b := p.only("t")
	require.Equal(t, []any{"second", int64(1)}, []any{texts(b), b.Attempt})
}

// The turn says that it has begun with the first response, because it did not know whether its worker writes events.
func TestWorkerBeginsTheFirstStep(t *testing.T) {
	for name, late := range map[string]bool{"the turn follows": true, "the turn ends": false} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.handle(runRecord(t, 1, 5, 1, "first"))
			if late {
				p.handle(turnRecord(t, 1, 1, untilMS(p.now.Add(time.Hour))))
				require.Equal(t, p.now.Add(time.Hour).UnixMilli(), p.state().Open[0].UntilMs)
			}
			p.handle(turnRecord(t, 1, 1_000_000, settles(5, 1), endsWith(okResult("end_turn"))))
			b := p.only("t")
			require.Equal(t, []any{"first", int64(1)}, []any{texts(b), b.Attempt})
			p.settle()
		})
	}
}

// A turn that ends before its first response does not know whether its worker has begun a stream. If it has not, it is too late.
func TestTurnEndsAStreamOnlyIfItHasBegun(t *testing.T) {
	ifBegun := func(e *topics.AgentEvent) { e.IfBegun = true }
	end := func(t *testing.T) input {
		return turnRecord(t, 1, 1_000_000, endsWith(topics.AgentResult{Error: new("too late"), Code: topics.CodeThinkTimeout}), ifBegun)
	}
	t.Run("begun", func(t *testing.T) {
		p := newPlay(t)
		p.handle(runRecord(t, 1, 5, 1, "fir"))
		p.handle(end(t))
		require.Equal(t, topics.BatchExpired, p.only("t").State)
		p.settle()
	})
	t.Run("not begun", func(t *testing.T) {
		p := newPlay(t)
		p.handle(end(t))
		p.handle(runRecord(t, 1, 5, 1, "fir"))
		require.Empty(t, p.batches)
		require.Empty(t, p.state().Open)
		p.settle()
	})
}

// The code of another runner has a meaning of its own, and that of a turn is a short text.
func TestCodesOfOtherRunnersAreNotRead(t *testing.T) {
	const result = `{"session_id":"s","turn_id":"t","attempt":1,"seq":1,%s"result":{"ok":false,"error":"no","code":%s}}`
	for code, turn := range map[string]string{
		`"think_timeout"`: topics.BatchExpired + " think_timeout",
		`7`:               "", `{"a":1}`: "", `null`: "", `"` + strings.Repeat("x", 1000) + `"`: "",
	} {
		for fields, want := range map[string]string{``: "", `"author":"turn","step":1,`: turn} {
			p := newPlay(t)
			d := quay.AgentEvents.Codec().Unmarshal(fmt.Appendf(nil, result, fields, code))
			require.NoError(t, d.Err)
			p.handle(eventReceived{record(""), d.Value})
			if want == "" {
				want = topics.BatchFailed + " " + topics.ReasonRunFailed
			}
			require.Equal(t, want, outcomeOf(p.only("t")), "%s %s", fields, code)
		}
	}
}

func TestRecordsOfTwoKindsOfWritersAreNotMixed(t *testing.T) {
	p := newPlay(t)
	p.handle(turnRecord(t, 1, 1))
	require.Equal(t, []string{reasonMixed}, p.handle(eventRecord(t, "t", 1, plainDone)).letters())
	p = newPlay(t)
	p.handle(eventRecord(t, "t", 1, plainDone))
	require.Equal(t, []string{reasonMixed}, p.handle(turnRecord(t, 1, 1)).letters())
	p = newPlay(t)
	require.Equal(t, []string{reasonWriter}, p.handle(streamRecord(t, topics.AgentEvent{
		TurnID: "t", Step: 1, Seq: 1, Result: new(okResult("end_turn")),
	})).letters())
}

// A stepped turn is bounded as any other: in all attempts together.
func TestSteppedTurnIsBounded(t *testing.T) {
	for _, whole := range []bool{false, true} {
		p := newPlay(t, func(c *Config) { c.TurnLimit = 64 << 10 })
		p.whole = whole
		p.handle(turnRecord(t, 1, 1))
		p.handle(runRecord(t, 1, 5, 1, strings.Repeat("a", 40<<10)))
		p.handle(turnRecord(t, 1, 2, settles(5, 1)))
		p.handle(turnRecord(t, 2, 1))
		p.handle(runRecord(t, 2, 5, 1, strings.Repeat("b", 40<<10)))
		b := p.only("t")
		require.Equal(t, topics.ReasonTooLarge, *b.Reason)
		p.settle()
	}
}

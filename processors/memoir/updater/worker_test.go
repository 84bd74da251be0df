package updater_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

func TestEndedSessionUpdatesTheMemory(t *testing.T) {
	var e updater.Ended
	b := newBench(t, func(_ context.Context, asked updater.Ended) (updater.Memory, error) {
		e = asked
		return updater.Memory{Text: "Skipper of the Alba\nSays hi"}, nil
	}, updater.Config{})
	r := record(snapshot)
	r.Headers = append(r.Headers, processors.Header{
		Name: topics.HeaderDeadline, Value: topics.AppendDeadline(nil, noon.Add(time.Minute).UnixMilli()),
	})
	b.handle(r)
	require.Equal(t, "Skipper of the Alba\nSays hi", b.memory())
	require.Equal(t, []string{"pilot", "harbor-s19", "mira", "Skipper of the Alba", end + "/snapshot/2"},
		[]string{e.Agent, e.SessionID, e.UserID, e.Memory, e.Key})
	require.Len(t, e.Messages, 2, "without what cannot be read")
	require.Equal(t, "Hi", topics.Text(e.Messages[0].Content))
	require.Equal(t, 64<<10, e.Limit)
	require.True(t, e.Deadline.Equal(noon.Add(time.Minute)))
}

// Snapshots of FlightDeck have neither an ID nor a version, and older ones have the conversation in messages.
func TestSnapshotOfFlightDeckIsAnswered(t *testing.T) {
	for name, think := range map[string]string{
		"previous_messages": `{"previous_messages":[{"role":"user","content":"Hi"}],"last_input_response":null}`,
		"messages":          `{"messages":[{"role":"user","content":"Hi"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(_ context.Context, e updater.Ended) (updater.Memory, error) {
				return updater.Memory{Text: topics.Text(e.Messages[0].Content)}, nil
			}, updater.Config{})
			r := record(`{"session_id":"s","user_id":null,"memoir_context":"","think_response":` + think + `}`)
			r.Headers = nil
			b.handle(r)
			require.Len(t, b.paper.records, 1)
			out := b.paper.records[0]
			require.Equal(t, "Hi", string(out.Value))
			require.Equal(t, "pilot-memoir-context-session-end/2/7/memory", string(out.Headers[topics.HeaderID]))
			require.NotContains(t, out.Headers, topics.HeaderMemoirVersion)
		})
	}
}

func TestRepeatedSnapshotGetsTheSameRecord(t *testing.T) {
	calls := 0
	b := newBench(t, func(context.Context, updater.Ended) (updater.Memory, error) {
		calls++
		return updater.Memory{Text: strings.Repeat("x", calls)}, nil
	}, updater.Config{})
	b.handle(record(snapshot))
	b.handle(record(snapshot))
	require.Equal(t, 1, calls)
	require.Len(t, b.paper.records, 2)
	require.Equal(t, b.paper.records[0], b.paper.records[1])

	next := record(snapshot)
	next.Headers[0].Value = []byte(end + "/snapshot/3")
	b.handle(next)
	require.Equal(t, 2, calls, "another pass is another call")
}

func TestBlankMemoryKeepsTheOneBefore(t *testing.T) {
	b := newBench(t, saying(" \n"), updater.Config{})
	b.handle(record(snapshot))
	require.Equal(t, "Skipper of the Alba", b.memory())

	b = newBench(t, saying(""), updater.Config{})
	b.handle(record(strings.Replace(snapshot, "Skipper of the Alba", "", 1)))
	require.Empty(t, b.memory())
}

func TestSessionWithoutMessagesKeepsTheMemoryWithoutACall(t *testing.T) {
	b := newBench(t, uncalled, updater.Config{})
	b.handle(record(`{"session_id":"s","memoir_context":"Skipper","think_response":{"previous_messages":[]}}`))
	require.Equal(t, "Skipper", b.memory())
}

func TestFailureDeadLettersTheSnapshot(t *testing.T) {
	old := record(snapshot)
	old.Timestamp = noon.Add(-time.Hour)
	for want, c := range map[string]struct {
		update updater.Func
		record processors.Inbound
	}{
		"upstream 400":           {failing(errors.New("upstream 400")), record(snapshot)},
		"panicked":               {uncalled, record(snapshot)},
		"in time":                {uncalled, old},
		"longer than the limit":  {saying(strings.Repeat("x", 64<<10+1)), record(snapshot)},
		"not a snapshot":         {uncalled, record(`{`)},
		"not a snapshot, a text": {uncalled, record(`"Hi"`)},
	} {
		t.Run(want, func(t *testing.T) {
			b := newBench(t, c.update, updater.Config{})
			b.handle(c.record)
			r, reason := b.failure()
			want, _, _ := strings.Cut(want, ",")
			require.Contains(t, reason, want)
			require.Equal(t, string(c.record.Value), string(r.Value))
		})
	}
}

func TestMemoryThatDoesNotFitIntoARecordIsAFailure(t *testing.T) {
	b := newBench(t, saying(strings.Repeat("x", 2000)), updater.Config{})
	b.paper.limit = 1000
	b.handle(record(snapshot))
	_, reason := b.failure()
	require.Contains(t, reason, "does not fit into a record")
}

// All turns of a session have ended when the session ends. The ID of its end is no turn's, and would not be watched if it were.
func TestEndsOfTurnsDoNotConcernSnapshots(t *testing.T) {
	output := processors.Inbound{Headers: []processors.Header{{Name: topics.HeaderID, Value: []byte(end + "/0/output/0")}}}
	var b *bench
	b = newBench(t, func(ctx context.Context, _ updater.Ended) (updater.Memory, error) {
		b.worker.Observe(output)
		return updater.Memory{Text: "Says hi"}, ctx.Err()
	}, updater.Config{})
	b.worker.Observe(output)
	b.handle(record(snapshot))
	require.Equal(t, "Says hi", b.memory())
}

func TestUnusableRecordsAreSkipped(t *testing.T) {
	b := newBench(t, uncalled, updater.Config{})
	tombstone := record("")
	tombstone.Value = nil
	b.handle(tombstone)
	require.Empty(t, b.paper.records)
}

func TestInterruptedCallIsMadeAgain(t *testing.T) {
	b := newBench(t, func(ctx context.Context, _ updater.Ended) (updater.Memory, error) {
		return updater.Memory{Text: "Says hi"}, ctx.Err()
	}, updater.Config{})
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.Error(t, b.worker.Handle(stopped, record(snapshot)))
	require.Empty(t, b.paper.records)
	b.handle(record(snapshot))
	require.Equal(t, "Says hi", b.memory())
}

// busy is the error of a provider that is overloaded.
type busy struct{ after time.Duration }

func (busy) Error() string               { return "overloaded" }
func (b busy) RetryAfter() time.Duration { return b.after }

func TestTransientFailureIsRetriedBeforeTheDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		fails int
		err   error
		retry worker.RetryPolicy
		calls int
	}{
		"second call":     {1, busy{}, worker.RetryPolicy{Backoff: time.Millisecond}, 2},
		"limit":           {9, busy{}, worker.RetryPolicy{Backoff: time.Millisecond, Limit: 3}, 3},
		"after deadline":  {9, busy{time.Hour}, worker.RetryPolicy{}, 1},
		"permanent":       {9, errors.New("overloaded"), worker.RetryPolicy{}, 1},
		"chosen failures": {1, errors.New("overloaded"), worker.RetryPolicy{Backoff: time.Millisecond, Retryable: func(error) bool { return true }}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			b := newBench(t, func(context.Context, updater.Ended) (updater.Memory, error) {
				if calls++; calls <= c.fails {
					return updater.Memory{}, c.err
				}
				return updater.Memory{Text: "Says hi"}, nil
			}, updater.Config{Config: worker.Config{Clock: clock.System(), Retry: c.retry}})
			r := record(snapshot)
			r.Timestamp = time.Now()
			b.handle(r)
			require.Equal(t, c.calls, calls)
			if calls > c.fails {
				require.Equal(t, "Says hi", b.memory())
				return
			}
			_, reason := b.failure()
			require.Equal(t, "overloaded", reason)
		})
	}
}

func TestPanicIsNotRetried(t *testing.T) {
	b := newBench(t, uncalled, updater.Config{
		Config: worker.Config{Retry: worker.RetryPolicy{Retryable: func(error) bool { return true }}},
	})
	b.handle(record(snapshot))
	_, reason := b.failure()
	require.Equal(t, "updater: the updater panicked", reason)
}

func TestUsageIsReported(t *testing.T) {
	cost, refused := 0.25, errors.New("refused")
	type call struct {
		u   updater.Usage
		err error
	}
	var calls []call
	metrics := updater.Config{Metrics: updater.Metrics{Called: func(agent string, u updater.Usage, err error) {
		require.Equal(t, "pilot", agent)
		calls = append(calls, call{u, err})
	}}}
	for _, err := range []error{nil, refused} {
		b := newBench(t, func(context.Context, updater.Ended) (updater.Memory, error) {
			return updater.Memory{Text: "x", InputTokens: 7, OutputTokens: 3, Cost: &cost}, err
		}, metrics)
		b.handle(record(snapshot))
	}
	used := updater.Usage{InputTokens: 7, OutputTokens: 3, Cost: &cost}
	require.Equal(t, []call{{used, nil}, {used, refused}}, calls)
}

func TestErrorNamesTheInvalidField(t *testing.T) {
	for want, c := range map[string]updater.Config{
		"Concurrency": {Config: worker.Config{
			Concurrency: -1,
		}}, "Timeout": {Timeout: -1}, "Limit": {Limit: -1}, "RememberCount": {RememberCount: -1},
		"Retry": {Config: worker.Config{Retry: worker.RetryPolicy{Limit: -1}}}, "Drop": {Config: worker.Config{Drop: true}},
	} {
		_, err := updater.New("pilot", new(paper), saying("x"), c)
		require.ErrorIs(t, err, updater.ErrConfig)
		require.ErrorContains(t, err, want)
	}
	_, err := updater.New("pilot", nil, nil, updater.Config{})
	require.ErrorContains(t, err, "the publisher is nil")
	require.ErrorContains(t, err, "the updater is nil")
}

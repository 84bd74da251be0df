package compact_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.Date(2026, 6, 20, 12, 0, 0, 0, time.UTC)

const (
	turnID  = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
	request = `{"session_id":"s","user_id":"mira","compaction_id":"` + turnID + `/0/compaction/0",` +
		`"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."}]}`
)

// paper is a publisher that stores the records. It refuses those over its limit.
type paper struct {
	mu      sync.Mutex
	limit   int
	records []processors.Outbound
}

func (p *paper) Publish(_ context.Context, records ...processors.Outbound) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range records {
		if p.limit > 0 && len(r.Value) > p.limit {
			return processors.ErrTooLarge
		}
	}
	p.records = append(p.records, records...)
	return nil
}

type bench struct {
	t      *testing.T
	worker *compact.Worker
	paper  *paper
	clock  *clock.Fake
}

func newBench(t *testing.T, f compact.Func) *bench {
	t.Helper()
	b := &bench{t: t, paper: new(paper), clock: clock.NewFake(noon)}
	var err error
	b.worker, err = compact.New("pilot", b.paper, f, compact.Config{Config: worker.Config{Clock: b.clock}})
	require.NoError(t, err)
	return b
}

func record(value string) processors.Inbound {
	return processors.Inbound{
		Topic: "pilot-compaction-request", Partition: 2, Offset: 7, Timestamp: noon.Add(-time.Second),
		Key: []byte("s"), Value: []byte(value),
		Headers: []processors.Header{{Name: topics.HeaderID, Value: []byte(turnID + "/0/compaction/0")}},
	}
}

// result is the last record, of so many.
func (b *bench) result(of int) topics.CompactionResult {
	b.t.Helper()
	require.Len(b.t, b.paper.records, of)
	r := b.paper.records[of-1]
	require.Equal(b.t, "pilot-compaction-result", r.Topic)
	require.Equal(b.t, "s", r.Key)
	require.Equal(b.t, turnID+"/0/compaction/0/result", string(r.Headers[topics.HeaderID]))
	catalog, err := topics.For("pilot")
	require.NoError(b.t, err)
	in := catalog.CompactionResult.Codec().Unmarshal(r.Value)
	require.NoError(b.t, in.Err)
	require.Equal(b.t, turnID+"/0/compaction/0", in.Value.CompactionID)
	return in.Value
}

func saying(text string) compact.Func {
	return func(context.Context, compact.Conversation) (compact.Summary, error) {
		return compact.Summary{Text: text}, nil
	}
}

func TestRequestIsAnsweredWithTheSummary(t *testing.T) {
	cost := 0.25
	var asked compact.Conversation
	b := newBench(t, func(_ context.Context, c compact.Conversation) (compact.Summary, error) {
		asked = c
		return compact.Summary{Text: "They greet.", InputTokens: 7, OutputTokens: 3, Cost: &cost}, nil
	})
	r := record(request)
	r.Headers = append(r.Headers, processors.Header{
		Name: topics.HeaderDeadline, Value: topics.AppendDeadline(nil, noon.Add(time.Minute).UnixMilli()),
	})
	require.NoError(t, b.worker.Handle(t.Context(), r))
	require.Len(t, asked.Messages, 2)
	require.Equal(t, "mira", *asked.UserID)
	require.True(t, asked.Deadline.Equal(noon.Add(time.Minute)), "that of the turn")
	got := b.result(1)
	require.Equal(t, "They greet.", got.Summary)
	require.Equal(t, []int64{7, 3}, []int64{got.InputTokens, got.OutputTokens})
	require.Equal(t, cost, *got.Cost)
	require.Nil(t, got.Error)
}

func TestRepeatedRequestIsAnsweredWithTheSameResult(t *testing.T) {
	calls := 0
	b := newBench(t, func(context.Context, compact.Conversation) (compact.Summary, error) {
		calls++
		return compact.Summary{Text: "They greet."}, nil
	})
	for range 2 {
		require.NoError(t, b.worker.Handle(t.Context(), record(request)))
	}
	require.Equal(t, 1, calls)
	require.Equal(t, b.result(2), b.result(2))
	require.Equal(t, b.paper.records[0].Value, b.paper.records[1].Value)
}

func TestFailureOfACompactorIsReported(t *testing.T) {
	for want, f := range map[string]compact.Func{
		"upstream 529": func(context.Context, compact.Conversation) (compact.Summary, error) {
			return compact.Summary{Text: "half"}, errors.New("upstream 529")
		},
		"panicked": func(context.Context, compact.Conversation) (compact.Summary, error) { panic("They greet.") },
	} {
		b := newBench(t, f)
		require.NoError(t, b.worker.Handle(t.Context(), record(request)))
		got := b.result(1)
		require.Contains(t, *got.Error, want)
		require.Empty(t, got.Summary)
	}
}

func TestRequestThatIsTooOldIsNotSummarized(t *testing.T) {
	b := newBench(t, func(context.Context, compact.Conversation) (compact.Summary, error) { panic("called") })
	r := record(request)
	r.Timestamp = noon.Add(-time.Hour)
	require.NoError(t, b.worker.Handle(t.Context(), r))
	require.Contains(t, *b.result(1).Error, "in time")
}

func TestSummaryThatDoesNotFitIntoARecordIsReported(t *testing.T) {
	b := newBench(t, saying(string(make([]byte, 1000))))
	b.paper.limit = 500
	require.NoError(t, b.worker.Handle(t.Context(), record(request)))
	require.Contains(t, *b.result(1).Error, "does not fit")
}

func TestRequestOfAnEndedTurnIsSkipped(t *testing.T) {
	b := newBench(t, func(context.Context, compact.Conversation) (compact.Summary, error) { panic("called") })
	b.worker.HandleOutput(output())
	require.NoError(t, b.worker.Handle(t.Context(), record(request)))
	require.Empty(t, b.paper.records)
}

func TestEndOfTheTurnCancelsTheCall(t *testing.T) {
	called := make(chan struct{})
	var cause error
	b := newBench(t, func(ctx context.Context, _ compact.Conversation) (compact.Summary, error) {
		close(called)
		<-ctx.Done()
		cause = context.Cause(ctx)
		return compact.Summary{}, ctx.Err()
	})
	done := make(chan error)
	go func() { done <- b.worker.Handle(t.Context(), record(request)) }()
	<-called
	b.worker.HandleOutput(output())
	require.NoError(t, <-done)
	require.ErrorIs(t, cause, compact.ErrTurnEnded)
	require.Empty(t, b.paper.records)
}

func output() processors.Inbound {
	return processors.Inbound{Headers: []processors.Header{{Name: topics.HeaderID, Value: []byte(turnID + "/0/output/0")}}}
}

func TestInterruptedCallIsMadeAgain(t *testing.T) {
	b := newBench(t, func(ctx context.Context, _ compact.Conversation) (compact.Summary, error) {
		return compact.Summary{Text: "They greet."}, ctx.Err()
	})
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.Error(t, b.worker.Handle(stopped, record(request)))
	require.Empty(t, b.paper.records)
	require.NoError(t, b.worker.Handle(t.Context(), record(request)))
	require.Equal(t, "They greet.", b.result(1).Summary)
}

func TestUnusableRequestIsDroppedOrReported(t *testing.T) {
	b := newBench(t, saying("They greet."))
	for _, value := range []string{`{`, `{}`, `{"messages":[]}`} {
		require.NoError(t, b.worker.Handle(t.Context(), record(value)))
	}
	tombstone := record("")
	tombstone.Value = nil
	require.NoError(t, b.worker.Handle(t.Context(), tombstone))
	require.Empty(t, b.paper.records)
	require.NoError(t, b.worker.Handle(t.Context(),
		record(`{"compaction_id":"`+turnID+`/0/compaction/0","messages":[{"role":{}}]}`)))
	require.Contains(t, *b.result(1).Error, "cannot be read")
}

func TestErrorNamesTheInvalidField(t *testing.T) {
	for want, c := range map[string]compact.Config{
		"Concurrency": {Config: worker.Config{
			Concurrency: -1,
		}}, "Timeout": {Timeout: -1}, "DeadLetter": {Config: worker.Config{Drop: true}},
	} {
		_, err := compact.New("pilot", new(paper), saying("x"), c)
		require.ErrorIs(t, err, compact.ErrConfig)
		require.ErrorContains(t, err, want)
	}
	_, err := compact.New("pilot", nil, nil, compact.Config{})
	require.ErrorContains(t, err, "the publisher is nil")
	require.ErrorContains(t, err, "the compactor is nil")
}

func TestRequestWhoseResultIsTooLargeIsSkipped(t *testing.T) {
	b := newBench(t, func(context.Context, compact.Conversation) (compact.Summary, error) {
		return compact.Summary{Text: "short"}, nil
	})
	b.paper.limit = 1
	require.NoError(t, b.worker.Handle(t.Context(), record(request)))
	require.Empty(t, b.paper.records)
}

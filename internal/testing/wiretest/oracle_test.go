package wiretest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

const oneOutput = `{"session_id":"s","content":"late","input_tokens":0,"output_tokens":0,"source_agent":"agent-1",` +
	`"timestamp":"2026-06-20T08:15:03Z","status":"error","error":{"code":"internal","message":"late"}}`

func output(id string) *kgo.Record {
	return &kgo.Record{
		Topic: "agent-message-output", Key: []byte("s"), Value: []byte(oneOutput),
		Headers: []kgo.RecordHeader{{Key: headerID, Value: []byte(id)}},
	}
}

// An aborted record at the end of a partition is not returned to a reader of committed ones; the oracle must know that
// it is at the end nevertheless, and must not judge what never happened.
func TestAbortedOutputsAreReadOnlyWithReadUncommitted(t *testing.T) {
	bootstrap := broker(t, "agent", 1)
	ctx := deadline(t, 3*time.Minute)
	producer, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.TransactionalID("tx"))
	require.NoError(t, err)
	defer producer.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		require.NoError(t, producer.BeginTransaction())
		require.NoError(t, producer.ProduceSync(ctx, output("turn/0/output/0")).FirstErr())
		require.NoError(t, producer.EndTransaction(ctx, end))
	}
	for _, c := range []struct {
		opts    []OracleOption
		records int
		again   bool
	}{
		{opts: []OracleOption{ExactlyOnce()}, records: 1},
		{opts: []OracleOption{ExactlyOnce(), ReadUncommitted()}, records: 2, again: true},
	} {
		oracle, err := NewOracle(ctx, bootstrap, "agent", c.opts...)
		require.NoError(t, err)
		r, err := oracle.Report(ctx)
		oracle.Close()
		require.NoError(t, err)
		require.Equal(t, c.records, r.Counts.Records)
		require.Equal(t, c.again, r.Has(RuleAgain))
		require.True(t, r.Has(RuleAlienOutput))
	}
}

func TestRepeatsMayDifferOnlyInTimes(t *testing.T) {
	b := newFacts(NamesOf("agent"), false)
	later := output("turn/0/output/0")
	later.Offset = 1
	later.Value = []byte(strings.Replace(oneOutput, "2026-06-20T08:15:03Z", "2027-01-01T00:00:00.123Z", 1))
	b.observe(output("turn/0/output/0"))
	b.observe(later)
	require.Equal(t, 1, b.counts.Repeats)
	require.Empty(t, b.report.Violations)
	other := output("turn/0/output/0")
	other.Value = []byte(`{"session_id":"s","content":"other"}`)
	b.observe(other)
	require.True(t, b.report.Has(RuleRepeat))
}

func TestInterleavedTurnsAreReported(t *testing.T) {
	s := &session{steps: []*step{
		{origin: origin{turn: "a"}}, {origin: origin{turn: "b"}}, {origin: origin{turn: "a"}, at: Coord{Offset: 2}},
	}}
	j := &judgement{facts: newFacts(NamesOf("agent"), false)}
	j.checkOrder(s)
	require.Equal(t, []Violation{{
		Rule: RuleInterleaved, At: Coord{Offset: 2}, Detail: "another turn was opened between two steps of this one",
	}}, j.report.Violations)
}

func TestReportHasALimitedNumberOfViolations(t *testing.T) {
	var r Report
	for range maxViolations + 5 {
		r.add(RuleLost, Coord{Topic: "t"}, "x")
	}
	require.Len(t, r.Violations, maxViolations)
	require.Equal(t, 5, r.Hidden)
	require.Contains(t, r.String(), "and 5 more")
}

func TestWaitsEndWithTheirContextOrAfterPatience(t *testing.T) {
	bootstrap := broker(t, "agent", 1)
	oracle, err := NewOracle(t.Context(), bootstrap, "agent", WaitLimit(10*time.Millisecond))
	require.NoError(t, err)
	defer oracle.Close()
	require.ErrorIs(t, oracle.WaitOutputs(t.Context(), "s", 1), errQuiet)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.Error(t, oracle.Wait(ctx, func(p Progress) bool { return p.Outputs > 0 }))
}

func TestTopicCreatedLaterIsRead(t *testing.T) {
	bootstrap := broker(t, "other", 1)
	ctx := deadline(t, 3*time.Minute)
	oracle, err := NewOracle(ctx, bootstrap, "agent")
	require.NoError(t, err)
	defer oracle.Close()
	require.NoError(t, CreateTopics(ctx, bootstrap, "agent", 1))
	producer, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...))
	require.NoError(t, err)
	defer producer.Close()
	require.NoError(t, producer.ProduceSync(ctx, output("turn/0/output/0")).FirstErr())
	r, err := oracle.Report(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, r.Counts.Records)
}

func TestRepeatOfAUsedRecordIsNotReportedAsLost(t *testing.T) {
	at := func(topic string, offset int64) Coord { return Coord{Topic: topic, Offset: offset} }
	s := &session{
		responses: []*thinkResponse{
			{at: at("think", 0), cause: "t/0"},
			{at: at("think", 1), cause: "t/0"},
			{at: at("think", 2), cause: "t/1"},
			{at: at("think", 3)},
		},
		results: []*toolResult{
			{at: at("result", 0), cause: "r/0"},
			{at: at("result", 1), cause: "r/0"},
			{at: at("result", 2), cause: "r/1"},
			{at: at("result", 3)},
		},
	}
	j := &judgement{
		facts: newFacts(NamesOf("agent"), false), dead: map[Coord]bool{},
		used: map[Coord]bool{at("think", 0): true, at("result", 0): true},
	}
	j.checkNothingLost(s)
	var lost []Coord
	for _, v := range j.report.Violations {
		require.Equal(t, RuleLost, v.Rule)
		lost = append(lost, v.At)
	}
	require.Equal(t, []Coord{at("think", 2), at("think", 3), at("result", 2), at("result", 3)}, lost)
}

func TestDeadLetteredRecordMustHaveNoEffect(t *testing.T) {
	at := Coord{Topic: "agent-tool-use-result", Offset: 3}
	b := newFacts(NamesOf("agent"), false)
	b.inputs[at] = &inputRecord{at: at}
	j := &judgement{
		facts: b, expected: map[Coord]Sent{at: {Fate: FateDeadLetter, Case: "foreign result"}},
		dead: map[Coord]bool{at: true}, used: map[Coord]bool{at: true},
	}
	j.checkFates()
	require.True(t, j.report.Has(RuleFate))
}

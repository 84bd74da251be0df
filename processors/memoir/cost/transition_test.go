package cost

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/costrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)

var catalog, _ = topics.For("quay")

// newCost returns a record.
func newCost(id string, m topics.ModelCost) *record {
	return &record{&machine.Record{ID: id, Value: []byte("{}")}, m}
}

func costIn(t *testing.T, out sessionOutcome) topics.SessionCost {
	return machinetest.Only[topics.SessionCost](t, out.Effects)
}

func ptr[T any](v T) *T { return &v }

// call is a call of a model for 912 and 177 tokens.
func call(dollars float64, at time.Time) topics.ModelCost {
	return topics.ModelCost{LLMCalls: 1, InputTokens: 912, OutputTokens: 177, CostUSD: &dollars, AtMS: at.UnixMilli()}
}

// stored returns the row as it is read back from a table.
func stored[T any](t require.TestingT, c codec.Codec[T], row T) T {
	raw, err := c.Marshal(row)
	require.NoError(t, err)
	d := c.Unmarshal(raw)
	require.NoError(t, d.Err)
	return d.Value
}

func TestAmountsAreTheDecimalNumbersOfTheRecords(t *testing.T) {
	for _, text := range []string{
		"0", "0.1", "0.0081", "1e6", "999999.99", "5e-324", "0.0018000000000000002", "1e-24", "4.9e-25", "5e-25", "123456.78901234567",
	} {
		dollars, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		a, err := AmountOf(dollars)
		require.NoError(t, err)
		exact, ok := new(big.Rat).SetString(text)
		require.True(t, ok)
		exact.Mul(exact, new(big.Rat).SetInt(unitsPerDollar))
		want, err := strconv.ParseFloat(exact.FloatString(0), 64) // rounded to a unit
		require.NoError(t, err)
		got, _ := new(big.Float).SetInt(a.value()).Float64()
		require.Equal(t, want, got, text)
		require.Equal(t, a.value().Bytes(), amountFrom(a.bytes()).value().Bytes())
	}
	tenth, err := AmountOf(0.1)
	require.NoError(t, err)
	fifth, err := AmountOf(0.2)
	require.NoError(t, err)
	require.InDelta(t, 0.3, tenth.Add(fifth).Dollars(), 0, "0.1+0.2 as float64 is not 0.3")
	require.Zero(t, Amount{}.Dollars())
	for _, none := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := AmountOf(none)
		require.Error(t, err)
	}
}

// A million sums of a tenth of a cent: float64 would be off after some thousand.
func TestSumsDoNotDrift(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 10_000
	}
	a, err := AmountOf(0.001)
	require.NoError(t, err)
	var sum Amount
	for range n {
		sum = sum.Add(a)
	}
	require.InDelta(t, float64(n)/1000, sum.Dollars(), 0)
}

func TestCostOfASession(t *testing.T) {
	config := defaults()
	m := call(0.0018, noon.Add(-time.Hour))
	m.UserID, m.TenantID = ptr("mira"), ptr("acme")
	out := applySession(nil, "s1", newCost("a", m), noon, catalog, config)
	require.Equal(t, topics.SessionCost{
		SessionID: ptr("s1"), UserID: ptr("mira"), LLMCalls: 1, TotalInputTokens: 912, TotalOutputTokens: 177,
		EstimatedCostUSD: ptr(0.0018), Timestamp: ptr("2026-09-21T11:00:00Z"),
	}, costIn(t, out))
	shares := machinetest.Values[topics.ModelCost](out.Effects)
	require.Len(t, shares, 2)
	for i, scope := range []string{"user/mira", "tenant/acme"} {
		want := m
		want.SessionID, want.Scope = ptr("s1"), scope
		require.Equal(t, want, shares[i])
	}
	require.NotEqual(t, out.Effects[1].ID, out.Effects[2].ID)
	require.NotEqual(t, out.Effects[0].ID, out.Effects[1].ID)

	// A call without a price and without a user: the user and the cost stay, the newest time too.
	row := stored(t, costrow.SessionTable.Codec(), out.Row)
	free := topics.ModelCost{LLMCalls: 2, InputTokens: 1, AtMS: noon.Add(-2 * time.Hour).UnixMilli()}
	out = applySession(row, "s1", newCost("b", free), noon, catalog, config)
	require.Equal(t, topics.SessionCost{
		SessionID: ptr("s1"), UserID: ptr("mira"), LLMCalls: 3, TotalInputTokens: 913, TotalOutputTokens: 177,
		EstimatedCostUSD: ptr(0.0018), Timestamp: ptr("2026-09-21T11:00:00Z"),
	}, costIn(t, out))
	require.Len(t, out.Effects, 1)
	require.Equal(t, sessionOutcome{}, applySession(out.Row, "s1", newCost("a", m), noon, catalog, config), "a repeat changes nothing")
}

func TestSessionWithoutAPriceHasNoCost(t *testing.T) {
	out := applySession(nil, "s1", newCost("a", topics.ModelCost{LLMCalls: 1}), noon, catalog, defaults())
	require.Nil(t, costIn(t, out).EstimatedCostUSD)
	require.Equal(t, ptr("2026-09-21T12:00:00Z"), costIn(t, out).Timestamp, "a record without a time has the time at which it is added")
	row := stored(t, costrow.SessionTable.Codec(), out.Row)
	out = applySession(row, "s1", newCost("b", call(0, noon)), noon, catalog, defaults())
	require.Equal(t, ptr(0.0), costIn(t, out).EstimatedCostUSD, "a cost of 0 is known")
	row = stored(t, costrow.SessionTable.Codec(), out.Row)
	out = applySession(row, "s1", newCost("c", topics.ModelCost{LLMCalls: 1}), noon, catalog, defaults())
	require.Equal(t, ptr(0.0), costIn(t, out).EstimatedCostUSD)
}

func TestCountsSaturate(t *testing.T) {
	m := topics.ModelCost{LLMCalls: math.MaxInt32, InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64 - 1, UserID: ptr("mira")}
	var row *costrow.SessionTotals
	var out sessionOutcome
	for _, id := range []string{"a", "b", "c"} {
		out = applySession(row, "s1", newCost(id, m), noon, catalog, defaults())
		row = out.Row
	}
	require.EqualValues(t, math.MaxInt32, costIn(t, out).LLMCalls)
	require.EqualValues(t, math.MaxInt32, costIn(t, out).TotalInputTokens)
	require.EqualValues(t, math.MaxInt32, costIn(t, out).TotalOutputTokens)
	require.EqualValues(t, 3*int64(math.MaxInt32), row.LlmCalls)
	require.EqualValues(t, math.MaxInt64, row.InputTokens)
	m.Scope = "user/mira"
	var scope *costrow.ScopeTotals
	for _, id := range []string{"a", "b"} {
		scope = applyScope(scope, "user/mira", newCost(id, m), noon, catalog, defaults()).Row
	}
	require.EqualValues(t, math.MaxInt64, scope.InputTokens)
}

func TestInvalidCostsAreDeadLettered(t *testing.T) {
	for name, c := range map[string]struct {
		m      topics.ModelCost
		reason string
	}{
		"negative cost":   {topics.ModelCost{CostUSD: ptr(-0.01)}, reasonNegative},
		"no number":       {topics.ModelCost{CostUSD: ptr(math.NaN())}, reasonNegative},
		"infinite":        {topics.ModelCost{CostUSD: ptr(math.Inf(1))}, reasonTooMuch},
		"absurd cost":     {topics.ModelCost{CostUSD: ptr(1e6 + 1)}, reasonTooMuch},
		"negative calls":  {topics.ModelCost{LLMCalls: -1}, reasonNegative},
		"negative input":  {topics.ModelCost{InputTokens: -1}, reasonNegative},
		"negative output": {topics.ModelCost{OutputTokens: -1}, reasonNegative},
		"long user":       {topics.ModelCost{UserID: ptr(strings.Repeat("x", maxID+1))}, reasonLongID},
		"long tenant":     {topics.ModelCost{TenantID: ptr(strings.Repeat("x", maxID+1))}, reasonLongID},
		"another session": {topics.ModelCost{SessionID: ptr("s2")}, reasonSession},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.reason, machinetest.Reason(t, applySession(nil, "s1", newCost("a", c.m), noon, catalog, defaults()).Effects))
			if c.reason == reasonSession {
				c.reason = reasonScope // it has none
			} else {
				c.m.Scope = "user/mira"
			}
			require.Equal(t, c.reason, machinetest.Reason(t, applyScope(nil, "user/mira", newCost("a", c.m), noon, catalog, defaults()).Effects))
		})
	}
}

func TestDaysAndMonthsOfAScope(t *testing.T) {
	var row *costrow.ScopeTotals
	now := time.Date(2026, 10, 3, 0, 30, 0, 0, time.UTC)
	for i, step := range []struct {
		at               time.Time
		total, day, mont float64
		date, month      string
	}{
		{time.Date(2026, 9, 29, 23, 59, 59, 0, time.UTC), 0.1, 0.1, 0.1, "2026-09-29", "2026-09"},
		{time.Date(2026, 9, 29, 8, 0, 0, 0, time.UTC), 0.2, 0.2, 0.2, "2026-09-29", "2026-09"},
		{time.Date(2026, 9, 30, 0, 0, 0, 0, time.UTC), 0.3, 0.1, 0.3, "2026-09-30", "2026-09"},
		{time.Date(2026, 9, 29, 9, 0, 0, 0, time.UTC), 0.4, 0.1, 0.4, "2026-09-30", "2026-09"}, // late: in the month only
		{time.Date(2026, 10, 2, 0, 0, 0, 0, time.UTC), 0.5, 0.1, 0.1, "2026-10-02", "2026-10"},
		{time.Date(2026, 9, 30, 0, 0, 0, 0, time.UTC), 0.6, 0.1, 0.1, "2026-10-02", "2026-10"}, // late: in the total only
		{time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), 0.7, 0.1, 0.2, "2026-10-03", "2026-10"},  // not later than now
		{time.UnixMilli(-5), 0.8, 0.2, 0.3, "2026-10-03", "2026-10"},                           // no time: now
	} {
		m := call(0.1, step.at)
		m.Scope = "user/mira"
		out := applyScope(row, "user/mira", newCost(strconv.Itoa(i), m), now, catalog, defaults())
		spending := machinetest.Only[topics.Spending](t, out.Effects)
		require.Equal(t, step.date, spending.Day, "step %d", i)
		require.Equal(t, step.month, spending.Month)
		require.InDelta(t, step.total, spending.CostUSD, 0)
		require.InDelta(t, step.day, spending.DayCostUSD, 0, "step %d", i)
		require.InDelta(t, step.mont, spending.MonthCostUSD, 0, "step %d", i)
		row = stored(t, costrow.ScopeTable.Codec(), out.Row)
		require.Equal(t, scopeOutcome{}, applyScope(row, "user/mira", newCost(strconv.Itoa(i), m), now, catalog, defaults()))
	}
	require.EqualValues(t, 8, row.LlmCalls)
}

func TestIDsAreForgottenAtTheDeadlineAndSumsStay(t *testing.T) {
	config := defaults()
	m := call(0.1, noon)
	m.Scope = "user/mira"
	session := applySession(nil, "s1", newCost("a", m), noon, catalog, config).Row
	session = applySession(session, "s1", newCost("b", m), noon.Add(time.Hour), catalog, config).Row
	scope := applyScope(nil, "user/mira", newCost("a", m), noon, catalog, config).Row
	scope = applyScope(scope, "user/mira", newCost("b", m), noon.Add(time.Hour), catalog, config).Row
	for _, want := range []struct {
		at   time.Time
		seen int
	}{{noon.Add(24*time.Hour + time.Second), 12}, {noon.Add(25*time.Hour + time.Second), 0}} {
		for _, c := range []rows.Message{session, scope} {
			raw, err := proto.Marshal(c)
			require.NoError(t, err)
			at, ok := rows.Deadline(raw)
			require.True(t, ok)
			require.Equal(t, want.at, time.UnixMilli(at).UTC())
		}
		session = applySession(session, "s1", nil, want.at, catalog, config).Row
		scope = applyScope(scope, "user/mira", nil, want.at, catalog, config).Row
		require.Len(t, session.Seen, want.seen)
		require.Len(t, scope.Seen, want.seen)
	}
	require.Zero(t, session.DeadlineMs)
	require.Zero(t, scope.DeadlineMs)
	require.InDelta(t, 0.2, amountFrom(session.Cost).Dollars(), 0)
	require.InDelta(t, 0.2, amountFrom(scope.Cost).Dollars(), 0)
	require.Nil(t, applySession(nil, "s1", nil, noon, catalog, config).Row)
	require.Nil(t, applyScope(nil, "user/mira", nil, noon, catalog, config).Row)
}

// A clock that was ahead, or that of another instance, leaves an ID that is not yet old when the last one is.
func TestClockThatWasAheadMakesNoDeadlineOfEachTick(t *testing.T) {
	config, m := defaults(), call(0.1, noon)
	row := applySession(nil, "s1", newCost("a", m), noon, catalog, config).Row
	row = applySession(row, "s1", newCost("b", m), noon.Add(24*time.Hour-time.Minute), catalog, config).Row
	row = applySession(row, "s1", newCost("c", m), noon.Add(time.Minute), catalog, config).Row
	deadlines := 0
	for ; row.DeadlineMs != 0; deadlines++ {
		require.Less(t, deadlines, 5)
		row = applySession(row, "s1", nil, time.UnixMilli(row.DeadlineMs), catalog, config).Row
	}
	require.Nil(t, row.Seen)
}

func TestNewerRowsStopTheProcessor(t *testing.T) {
	raw, err := costrow.SessionTable.Marshal(&costrow.SessionTotals{Version: costrow.Version + 1})
	require.NoError(t, err)
	_, err = costrow.SessionTable.Of(costrow.SessionTable.Codec().Unmarshal(raw))
	require.ErrorIs(t, err, rows.ErrVersion)
	require.ErrorIs(t, err, processors.ErrKeepRecord)
	_, err = costrow.ScopeTable.Of(costrow.ScopeTable.Codec().Unmarshal(raw))
	require.ErrorIs(t, err, rows.ErrVersion)
}

// The sum of any costs is the same in each order, and the one of exact arithmetic on the numbers in the records.
func TestSumsAreExactInEachOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		costs := rapid.SliceOfN(rapid.Float64Range(0, maxCost), 1, 30).Draw(t, "costs")
		exact := new(big.Rat)
		var sum, back Amount
		for i := range costs {
			a, err := AmountOf(costs[i])
			require.NoError(t, err)
			sum = sum.Add(a)
			a, err = AmountOf(costs[len(costs)-1-i])
			require.NoError(t, err)
			back = back.Add(a)
			decimal, ok := new(big.Rat).SetString(strconv.FormatFloat(costs[i], 'g', -1, 64))
			require.True(t, ok)
			exact.Add(exact, decimal)
		}
		require.Zero(t, sum.value().Cmp(back.value()))
		want, _ := exact.Float64()
		require.InDelta(t, want, sum.Dollars(), 1e-24*float64(len(costs))+want*1e-16)
	})
}

// A tenant with many calls: its row has as many IDs as it can.
func BenchmarkApplyScope(b *testing.B) {
	for _, n := range []int{1, 2000} {
		b.Run("calls="+strconv.Itoa(n), func(b *testing.B) {
			var row *costrow.ScopeTotals
			i := 0
			add := func() {
				m := call(0.0018, noon)
				m.Scope = "tenant/acme"
				i++
				row = applyScope(row, m.Scope, newCost(strconv.Itoa(i), m), noon, catalog, defaults()).Row
			}
			for range n {
				add()
			}
			raw, err := costrow.ScopeTable.Codec().Marshal(row)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				row = costrow.ScopeTable.Codec().Unmarshal(raw).Value
				add()
				if _, err := costrow.ScopeTable.Codec().Marshal(row); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(raw)), "B/row")
		})
	}
}

func defaults() *Config { return &Config{RememberFor: 24 * time.Hour, RememberCount: 1000} }

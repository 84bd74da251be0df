package clock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
)

var start = time.UnixMilli(1_000_000).UTC()

func ticks(t clock.Ticker) []time.Duration {
	var got []time.Duration
	for {
		select {
		case at := <-t.C():
			got = append(got, at.Sub(start))
		default:
			return got
		}
	}
}

func TestFakeTimeChangesOnlyWhenMoved(t *testing.T) {
	c := clock.NewFake(start)
	require.Equal(t, start, c.Now())
	c.Advance(time.Second)
	require.Equal(t, start.Add(time.Second), c.Now())
	c.Set(start)
	require.Equal(t, start, c.Now())
}

func TestOneMoveGivesOneTickAtTheLastPeriodThatEnded(t *testing.T) {
	for name, c := range map[string]struct {
		moves []time.Duration // to, from start
		want  []time.Duration // read after each move
	}{
		"before the period ends": {[]time.Duration{9}, nil},
		"at its end":             {[]time.Duration{10}, []time.Duration{10}},
		"phase is kept":          {[]time.Duration{14, 19, 20}, []time.Duration{10, 20}},
		"periods at once":        {[]time.Duration{1005, 1009, 1010}, []time.Duration{1000, 1010}},
		"no move":                {[]time.Duration{10, 10}, []time.Duration{10}},
		"back and forth":         {[]time.Duration{15, 3, 12, 13}, []time.Duration{10, 13}},
	} {
		t.Run(name, func(t *testing.T) {
			f := clock.NewFake(start)
			ticker := f.NewTicker(10)
			var got []time.Duration
			for _, m := range c.moves {
				f.Set(start.Add(m))
				got = append(got, ticks(ticker)...)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestUnreadTickIsKeptAndFurtherTicksAreDropped(t *testing.T) {
	f := clock.NewFake(start)
	ticker := f.NewTicker(10)
	f.Advance(10)
	f.Advance(10)
	f.Advance(10)
	require.Equal(t, []time.Duration{10}, ticks(ticker))
	f.Advance(10)
	require.Equal(t, []time.Duration{40}, ticks(ticker))
}

func TestStoppedTickerDoesNotTickAndIsNotCounted(t *testing.T) {
	f := clock.NewFake(start)
	ticker := f.NewTicker(10)
	require.Equal(t, 1, f.Tickers())
	ticker.Stop()
	ticker.Stop()
	require.Zero(t, f.Tickers())
	f.Advance(time.Hour)
	require.Empty(t, ticks(ticker))
}

func TestPeriodMustBePositive(t *testing.T) {
	require.Panics(t, func() { clock.NewFake(start).NewTicker(0) })
}

func TestWaitTickersWaits(t *testing.T) {
	f := clock.NewFake(start)
	done := make(chan error, 1)
	go func() { done <- f.WaitTickers(context.Background(), 2) }()
	f.NewTicker(1)
	require.Empty(t, done)
	f.NewTicker(1)
	require.NoError(t, <-done)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := f.WaitTickers(ctx, 3)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "2 of 3 tickers")
}

func TestFakeIsSafeForConcurrentUse(t *testing.T) {
	f := clock.NewFake(start)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				ticker := f.NewTicker(time.Millisecond)
				f.Advance(time.Millisecond)
				<-ticker.C()
				ticker.Stop()
				_ = f.Now()
			}
		})
	}
	wg.Wait()
	require.Zero(t, f.Tickers())
}

func TestSystemClockTicks(t *testing.T) {
	c := clock.System()
	before := c.Now()
	ticker := c.NewTicker(time.Millisecond)
	defer ticker.Stop()
	require.False(t, (<-ticker.C()).Before(before))
}

func ExampleFake() {
	c := clock.NewFake(time.UnixMilli(0).UTC())
	ticker := c.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()

	c.Advance(600 * time.Millisecond)
	fmt.Println((<-ticker.C()).UnixMilli(), c.Now().UnixMilli())
	// Output: 500 600
}

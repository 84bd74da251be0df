package think_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think"
)

func TestInvalidPriceTablesAreRejected(t *testing.T) {
	for _, table := range []string{`{`, `[]`, `{"m":[{"input":-1}]}`, `{"m":[{"inputs":1}]}`, `{"m":[{"up_to":-1}]}`} {
		_, err := think.ReadPrices([]byte(table))
		require.ErrorIs(t, err, think.ErrPrices, table)
	}
}

func TestLongPromptsHaveTheirOwnPrice(t *testing.T) {
	prices := think.Prices{"m": {{UpTo: 10, Input: 1e6}, {UpTo: 20, Input: 2e6}}}
	require.InDelta(t, 5, *prices.Cost("m", think.Tokens{Input: 5, CacheRead: 5}), 1e-9)
	require.InDelta(t, 12, *prices.Cost("m", think.Tokens{Input: 6, CacheWrite: 5}), 1e-9)
	require.Nil(t, prices.Cost("m", think.Tokens{Input: 21}))
	require.Nil(t, prices.Cost("n", think.Tokens{Input: 1}))
}

func ExampleReadPrices() {
	prices, err := think.ReadPrices([]byte(`{
		"model-1": [{"input": 3, "cache_read": 0.3, "cache_write": 3.75, "output": 15}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*prices.Cost("model-1", think.Tokens{Input: 1000, CacheRead: 10_000, Output: 500}))
	fmt.Println(prices.Cost("model-2", think.Tokens{Input: 1000}))
	// Output:
	// 0.0135
	// <nil>
}

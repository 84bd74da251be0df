package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// imported returns the state that the rows of an importer are read back as, with all parts.
func imported(t *testing.T, in Imported, c Config) *turnrow.State {
	t.Helper()
	importer, err := NewImporter(c)
	require.NoError(t, err)
	at := time.UnixMilli(1_790_000_000_000)
	row, parts, err := importer.Row(in, at)
	require.NoError(t, err)
	again, sameParts, err := importer.Row(in, at)
	require.NoError(t, err)
	require.Equal(t, row, again, "repeats write the same bytes")
	require.Equal(t, parts, sameParts)
	p := &parted{row: row, parts: map[uint32][]byte{}}
	for _, n := range parts {
		p.parts[n.Number] = n.Value
	}
	return p.whole(t)
}

func TestImportedRowHasTheWholeSession(t *testing.T) {
	cost, user := 0.5, "mira"
	for name, size := range map[string]int{"in the row": 10, "in parts": 10_000} {
		t.Run(name, func(t *testing.T) {
			history := topics.Raw(`[{"role":"user","content":"` + strings.Repeat("a", size) + `"},{"role":"assistant","content":"b"}]`)
			s := imported(t, Imported{History: history, Cost: &cost, User: &user}, Config{})
			require.Equal(t, string(history), string(s.History))
			require.EqualValues(t, 2, s.HistoryLength)
			require.Equal(t, []any{0.5, "mira"}, []any{s.GetCost(), s.GetUserId()})
			require.Zero(t, s.DeadlineMs)
			require.EqualValues(t, 1_790_000_000_000, s.TouchedMs)
		})
	}
}

func TestImportedRowDropsTheOldestExchangesOfALongHistory(t *testing.T) {
	exchange := func(i, size int) string {
		return fmt.Sprintf(`{"role":"user","content":"q%d"},{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"n","input":{}}]},`+
			`{"role":"tool","content":[{"tool_use_id":"t%d","result":{"r":"%s"}}]},{"role":"assistant","content":"a%d"}`,
			i, i, i, strings.Repeat("x", size), i)
	}
	var exchanges []string
	for i := range 30 {
		exchanges = append(exchanges, exchange(i, 100_000))
	}
	s := imported(t, Imported{History: topics.Raw("[" + strings.Join(exchanges, ",") + "]")}, Config{})
	rules := defaults()
	require.Less(t, len(s.History), rules.RowLimit)
	require.Greater(t, len(s.History), rules.RowLimit-200_000)
	kept := len(s.History) / len(exchanges[20])
	require.Equal(t, "["+strings.Join(exchanges[30-kept:], ",")+"]", string(s.History), "whole exchanges, the newest")
	require.EqualValues(t, 4*kept, s.HistoryLength)

	// The newest exchange alone is too large.
	cost := 1.0
	s = imported(t, Imported{History: topics.Raw("[" + exchange(1, rules.RowLimit) + "]"), Cost: &cost}, Config{})
	require.Empty(t, s.History)
	require.Zero(t, s.HistoryLength)
	require.Equal(t, 1.0, s.GetCost())
}

func TestImportedRowExpiresAsOthersDo(t *testing.T) {
	s := imported(t, Imported{History: topics.Raw(`[{"role":"user","content":"a"}]`)}, Config{IdlePurge: time.Hour})
	require.EqualValues(t, 1_790_000_000_000+time.Hour.Milliseconds(), s.DeadlineMs)
}

func TestUnknownSessionHasNoImportedRow(t *testing.T) {
	importer, err := NewImporter(Config{})
	require.NoError(t, err)
	for _, history := range []string{"", "[]", "[null]"} {
		row, parts, err := importer.Row(Imported{History: topics.Raw(history)}, time.Time{})
		require.NoError(t, err)
		require.Nil(t, row)
		require.Empty(t, parts)
	}
	_, parts, err := importer.Row(Imported{History: topics.Raw(`[{"content":"` + strings.Repeat("a", 5000) + `"}]`)}, time.Time{})
	require.NoError(t, err)
	require.EqualValues(t, 1, parts[0].Number)
}

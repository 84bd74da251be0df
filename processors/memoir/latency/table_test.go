package latency

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/latencyrow"
	"github.com/turntable-streams/turntable/processors"
)

func TestTableHasTheLatestRowOfEachTool(t *testing.T) {
	table := newTable()
	take := func(tool string, row *latencyrow.ToolLatencies) {
		r := processors.Inbound{Key: []byte(tool)}
		if row != nil {
			raw, err := rowFormat.Marshal(row)
			require.NoError(t, err)
			r.Value = raw
		}
		table.take(r)
	}
	one := measured(t, nil, "a", 5, "", noon)
	two := measured(t, one, "b", 7, "", noon)
	take("tide_table", one)
	take("berth_lookup", one)
	take("berth_lookup", two)
	take("tide_table", nil)
	all, complete := table.All()
	require.True(t, complete)
	require.Len(t, all, 1)
	a, ok := table.Get("berth_lookup")
	require.True(t, ok)
	require.Equal(t, all[0], a)
	require.EqualValues(t, 2, a.Count)

	table.take(processors.Inbound{Key: []byte("berth_lookup"), Value: []byte{0xff}})
	_, ok = table.Get("berth_lookup")
	require.False(t, ok, "its latest row is unknown")
	_, complete = table.All()
	require.False(t, complete)
}

func TestTableKeepsALimitedNumberOfTools(t *testing.T) {
	table := newTable()
	raw, err := rowFormat.Marshal(measured(t, nil, "a", 5, "", noon))
	require.NoError(t, err)
	for i := range maxTools + 5 {
		table.take(processors.Inbound{Key: []byte(strconv.Itoa(i)), Value: raw})
	}
	all, complete := table.All()
	require.Len(t, all, maxTools)
	require.False(t, complete)
	table.take(processors.Inbound{Key: []byte("7"), Value: raw}) // a known tool is updated
	_, ok := table.Get("7")
	require.True(t, ok)
}

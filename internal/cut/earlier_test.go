package cut

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeadlineThatWasDueBeforeTheGenerationMayHaveFired(t *testing.T) {
	since := time.UnixMilli(1_000)
	g := &generation{group: &Group{opts: Options{Timers: &Timers{Topic: "timers"}}}, readings: map[int32]*reading{0: {since: since}}}
	require.True(t, g.repeats(Partition{"timers", 0}, 1_000))
	require.False(t, g.repeats(Partition{"timers", 0}, 1_001))
	require.False(t, g.repeats(Partition{"timers", 1}, 1))
	require.False(t, g.repeats(Partition{"input", 0}, 1), "a claim that has not begun has handed out nothing")
}

package unit

import (
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
)

// Goka leaves MarkRecovered to itself when a session ends, and closes the store meanwhile. A store that is closed must
// not be among those that the next cut flushes.
func TestStoreThatIsClosedWhileItRecoversIsNotKept(t *testing.T) {
	g := goka.DefineGroup("g", goka.Persist(codec.String()),
		goka.Input("in", codec.String(), func(goka.Context, any) {}))
	hourly := newAges(clock.System(), zap.NewNop(), func(string) (time.Duration, error) { return time.Hour, nil })
	tables := newTables(Config{Graph: g}, nil, func(string) (string, error) { return "", nil }, hourly)
	for range 2000 {
		s, err := tables.build("g-table", 0)
		require.NoError(t, err)
		var marking sync.WaitGroup
		marking.Go(func() { _ = s.MarkRecovered() })
		require.NoError(t, s.Close())
		marking.Wait()
		require.Empty(t, tables.layers())
	}
}

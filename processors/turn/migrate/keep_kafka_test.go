//go:build kafka

package migrate

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The brokers forget the offsets of a group without members after seven days, unless a commit names another time.
func TestProgressOfAFinishedImportDoesNotExpire(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	f.respond("s", answered)
	f.commit()
	_, err := f.run(t.Context())
	require.NoError(t, err)

	reader, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...), kgo.ConsumeTopics("__consumer_offsets"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	for kept := map[int32]bool{}; len(kept) < 2; {
		fetches := reader.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "the offsets expire")
		fetches.EachRecord(func(r *kgo.Record) {
			var key kmsg.OffsetCommitKey
			var value kmsg.OffsetCommitValue
			if key.ReadFrom(r.Key) == nil && key.Version <= 1 && key.Group == f.catalog.HistoryImportGroup() &&
				value.ReadFrom(r.Value) == nil && value.ExpireTimestamp > time.Now().Add(50*365*24*time.Hour).UnixMilli() {
				kept[key.Partition] = true
			}
		})
	}
}

package migrate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

func TestImportIsRefusedWhileTheGroupHasMembers(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	f.respond("s", answered)
	f.commit()
	member, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...), kgo.ConsumerGroup(string(f.catalog.Group())),
		kgo.ConsumeTopics(f.catalog.MessageInput.Name()), kgo.DisableAutoCommit())
	require.NoError(t, err)
	defer member.Close()
	go member.PollFetches(t.Context())
	require.Eventually(t, func() bool {
		groups, err := f.admin.DescribeGroups(t.Context(), string(f.catalog.Group()))
		return err == nil && len(groups[string(f.catalog.Group())].Members) == 1
	}, wait, 10*time.Millisecond)
	_, err = f.run(t.Context())
	require.ErrorIs(t, err, ErrActive)
	require.ErrorContains(t, err, string(f.catalog.Group())+" has 1; stop FlightDeck's")
	_, err = Export(t.Context(), f.brokers, f.catalog, f.options...)
	require.ErrorIs(t, err, ErrActive)
	require.Zero(t, f.size(f.catalog.Table()))
	require.Zero(t, f.size(f.catalog.FlightDeckStore()))

	require.NoError(t, member.LeaveGroupContext(t.Context()))
	result, err := f.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, result.Sessions)
}

func TestImportIsRefusedIfTheTableHasRows(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 1)
	stop := f.turnRuns(processors.AtLeastOnce)
	require.Contains(t, f.enriched("s", "first"), `"history":[]`)
	stop()
	f.commit()
	before := f.size(f.catalog.Table())
	_, err := f.run(t.Context())
	require.ErrorIs(t, err, ErrRows)
	require.Equal(t, before, f.size(f.catalog.Table()))
}

func TestImportIsRefusedIfOffsetsDoNotFit(t *testing.T) {
	t.Parallel()
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		f := newFlightDeck(t, 2)
		f.respond("s", answered)
		_, err := f.run(t.Context())
		require.ErrorIs(t, err, ErrOffsets)
		require.ErrorContains(t, err, "has committed none")
	})
	t.Run("after the end", func(t *testing.T) {
		t.Parallel()
		f := newFlightDeck(t, 1)
		offsets := kadm.Offsets{}
		offsets.AddOffset(f.catalog.ThinkRequestResponse.Name(), 0, 7, -1)
		require.NoError(t, f.admin.CommitAllOffsets(t.Context(), string(f.catalog.Group()), offsets))
		_, err := f.run(t.Context())
		require.ErrorIs(t, err, ErrOffsets)
	})
	t.Run("moved meanwhile", func(t *testing.T) {
		t.Parallel()
		f := newFlightDeck(t, 1)
		f.respond("s", answered)
		f.commit()
		m, err := newMigration(f.brokers, f.catalog, f.options)
		require.NoError(t, err)
		m.reached = func(step string) {
			if step == "written" { // FlightDeck has run
				f.respond("s", answered)
				f.commit()
			}
		}
		_, err = m.run(t.Context(), turn.Config{}, f.options)
		require.ErrorIs(t, err, ErrOffsets)
		m, err = newMigration(f.brokers, f.catalog, f.options)
		require.NoError(t, err)
		m.reached = func(step string) { t.Errorf("the next start has %s", step) }
		_, err = m.run(t.Context(), turn.Config{}, f.options)
		require.ErrorIs(t, err, ErrOffsets)
	})
}

func TestImportIsRefusedIfPartitionsDiffer(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	_, err := f.admin.CreateTopic(t.Context(), 3, 1, nil, f.catalog.Table())
	require.NoError(t, err)
	f.awaitPartitions(f.catalog.Table(), 3)
	_, err = f.run(t.Context())
	require.ErrorIs(t, err, topics.ErrCoPartitioning)
	require.ErrorContains(t, err, f.catalog.Table())
}

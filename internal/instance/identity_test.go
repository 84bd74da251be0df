package instance_test

import (
	"context"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/store"
)

// A static member that stops leaves its group, so that others take over long before the session timeout. With
// KeepMembership it stays.
func TestStoppedStaticMemberLeaves(t *testing.T) {
	t.Parallel()
	members := func(t *testing.T, brokers []string) int {
		t.Helper()
		groups, err := kadm.NewClient(dial(t, brokers)).DescribeGroups(t.Context(), "g")
		require.NoError(t, err)
		return len(groups["g"].Members)
	}
	const session = 2 * time.Minute
	patient := func() *sarama.Config {
		c := lively()
		c.Consumer.Group.Session.Timeout = session
		return c
	}
	start := func(t *testing.T, keep bool) (first, second *running, brokers []string) {
		t.Helper()
		_, brokers = cluster(t, "in", "out")
		config := func(id string) instance.Config {
			return instance.Config{
				Brokers: brokers, Graph: counting("g"), Sarama: patient, InstanceID: id, KeepMembership: keep,
			}
		}
		first = run(t, config("i1"))
		first.ready(t)
		second = run(t, config("i2"))
		eventually(t, func() bool { return len(first.Health().Lag) == 1 && len(second.Health().Lag) == 1 })
		return first, second, brokers
	}
	t.Run("at once", func(t *testing.T) {
		t.Parallel()
		first, second, brokers := start(t, false)
		began := time.Now()
		first.stop()
		require.NoError(t, first.wait(t))
		stopped := time.Since(began)
		require.Equal(t, 1, members(t, brokers))
		eventually(t, func() bool { return len(second.Health().Lag) == 2 && second.recovered() })
		t.Logf("stopped in %s, taken over after %s", stopped, time.Since(began))
		require.Less(t, time.Since(began), session/4)
	})
	t.Run("unless it keeps its place", func(t *testing.T) {
		t.Parallel()
		first, second, brokers := start(t, true)
		first.stop()
		require.NoError(t, first.wait(t))
		require.Equal(t, 2, members(t, brokers))
		require.Len(t, second.Health().Lag, 1)
	})
}

// An instance whose storage directory is in use fails on startup and does not disturb the instance that has it.
func TestDirectoryBelongsToOneInstanceOfAGroup(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, "in", "out")
	dir := t.TempDir()
	older := run(t, instance.Config{Brokers: brokers, Graph: counting("g"), StorageDir: dir})
	older.ready(t)
	newer := run(t, instance.Config{
		Brokers: brokers, Graph: counting("g"), StorageDir: dir,
		Prepare: func(context.Context, func(error)) error { return errBoom }, // would hide the reason
	})
	err := newer.wait(t)
	require.ErrorIs(t, err, store.ErrInUse)
	require.ErrorContains(t, err, dir)
	require.Equal(t, instance.Stopped, newer.Health().State)
	require.Zero(t, older.Health().Restarts)

	run(t, instance.Config{Brokers: brokers, Graph: counting("other"), StorageDir: dir}).ready(t) // another group may
	older.stop()
	require.NoError(t, older.wait(t))
	run(t, instance.Config{Brokers: brokers, Graph: counting("g"), StorageDir: dir}).ready(t)
}

package instance_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/turntable-streams/turntable/internal/instance"
)

// A local store that was kept while its topic was deleted and recreated: its offsets are not valid there. The refusal is
// clear and final, and names what to delete.
func TestStoreOfARecreatedTopicIsRefused(t *testing.T) {
	t.Parallel()
	c, brokers := oneEach(t, "in", "out", "g-table")
	dir := t.TempDir()
	send(t, brokers, "in", "k", "x", "x", "x")
	inst := run(t, instance.Config{Brokers: brokers, Graph: counting("g"), StorageDir: dir})
	require.Eventually(t, func() bool { return committed(t, brokers, "g", "in", 0) == 3 }, testTimeout,
		10*time.Millisecond)
	inst.stop()
	require.NoError(t, inst.wait(t))

	require.NoError(t, c.DeleteTopic("g-table"))
	require.NoError(t, c.CreateTopic("g-table", 1, nil))
	err := run(t, instance.Config{Brokers: brokers, Graph: counting("g"), StorageDir: dir}).wait(t)
	require.ErrorIs(t, err, instance.ErrRecreated)
	require.ErrorContains(t, err, filepath.Join(dir, "g-table.0"))

	// Where the brokers have no ids the offsets tell.
	require.NoError(t, os.Remove(filepath.Join(dir, "g-table.0", "TOPIC")))
	err = run(t, instance.Config{Brokers: brokers, Graph: counting("g"), StorageDir: dir}).wait(t)
	require.ErrorIs(t, err, instance.ErrShorter)

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "g-table.0")))
	run(t, instance.Config{Brokers: brokers, Graph: counting("g"), StorageDir: dir}).ready(t)
}

func TestBrokersThatCannotFenceAreRefusedForExactlyOnce(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "in", "out"),
		kfake.MaxVersions(kversion.V2_7_0()))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	err = run(t, instance.Config{
		Brokers: c.ListenAddrs(), Graph: counting("g"), InstanceID: "i1", Guarantee: instance.ExactlyOnce,
	}).wait(t)
	require.ErrorIs(t, err, instance.ErrOldBrokers)
}

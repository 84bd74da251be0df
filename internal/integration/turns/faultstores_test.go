package turns

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
)

func localStores() []fault {
	return []fault{
		{name: "local store on a full disk", play: fullDisk},
		{name: "damaged LevelDB", play: damagedStore},
		{name: "local store kept, changelog topic deleted and recreated", play: recreatedTable, long: true},
		{name: "local store kept, changelog topic recreated and refilled", play: refilledTable, long: true},
		{name: "topics with the wrong number of partitions", play: wrongPartitions, long: true},
	}
}

func giveUp(c *config) { c.child.GiveUp = true }

func fullDisk(f *field) {
	i := f.start("a", giveUp, func(c *config) { c.child.FileLimit = 64 << 10 })
	f.ask()
	i.refuses(f.T, "file too large")
	f.start("a")
	f.answered(10)
	f.figure("it stops: %q", "file too large")
}

func damagedStore(f *field) {
	i := f.start("a")
	f.ask()
	f.answered(20)
	f.killed(i)
	found, err := filepath.Glob(filepath.Join(f.dirs["a"], f.changelog()+".*", "MANIFEST*"))
	require.NoError(f, err)
	require.NotEmpty(f, found)
	for _, path := range found {
		content, err := os.ReadFile(path)
		require.NoError(f, err)
		for n := range content {
			content[n] ^= 0x55
		}
		require.NoError(f, os.WriteFile(path, content, 0o600))
	}
	f.launch("a", giveUp).refuses(f.T, "damaged", "delete the directory", f.dirs["a"])
	require.NoError(f, os.RemoveAll(f.dirs["a"]))
	f.start("a")
	f.answered(10)
	f.figure("it stops: %q", "delete the directory")
}

// withTopics calls do with a Kafka admin client.
func (f *field) withTopics(do func(*kadm.Client)) {
	f.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...))
	require.NoError(f, err)
	defer client.Close()
	do(kadm.NewClient(client))
}

func (f *field) deleteTopic(admin *kadm.Client, topic string) {
	f.Helper()
	_, err := admin.DeleteTopic(f.ctx, topic)
	require.NoError(f, err)
	require.Eventually(f, func() bool {
		have, err := admin.ListTopics(f.ctx)
		return err == nil && !slices.Contains(have.Names(), topic)
	}, wait, poll)
}

func (f *field) createTopic(admin *kadm.Client, topic string, partitions int32) {
	f.Helper()
	require.Eventually(f, func() bool { // a deletion may still be going on
		_, err := admin.CreateTopic(f.ctx, partitions, -1, nil, topic)
		return err == nil
	}, wait, poll)
	require.Eventually(f, func() bool {
		have, err := admin.ListTopics(f.ctx)
		return err == nil && slices.Contains(have.Names(), topic)
	}, wait, poll)
}

func recreatedTable(f *field) {
	i := f.start("a")
	f.ask()
	f.answered(20)
	f.load.Stop()
	require.NoError(f, f.load.Wait(f.ctx))
	require.NoError(f, i.Stop())
	f.withTopics(func(admin *kadm.Client) {
		f.deleteTopic(admin, f.changelog())
		f.createTopic(admin, f.changelog(), faultPartitions)
	})
	f.launch("a", giveUp).refuses(f.T, f.changelog(), "deleted and recreated", f.dirs["a"])
	require.NoError(f, os.RemoveAll(f.dirs["a"]))
	f.start("a")
	f.figure("it stops: %q", "topic was deleted and recreated")
}

func wrongPartitions(f *field) {
	f.withTopics(func(admin *kadm.Client) {
		input := testbroker.Agent()
		topic := wiretest.NamesOf(input).ToolUseResult
		f.createTopic(admin, topic, faultPartitions+1)
		require.NoError(f, wiretest.CreateTopics(f.ctx, f.brokers, input, faultPartitions))
		f.visible(wiretest.NamesOf(input))
		f.launch("b", giveUp, func(c *config) { c.agent = input }).refuses(f.T, topic, "co-partitioned topics differ")

		f.createTopic(admin, f.changelog(), faultPartitions+1)
		f.launch("a", giveUp).refuses(f.T, f.changelog(), "co-partitioned topics differ")
		f.deleteTopic(admin, f.changelog())
	})
	f.start("a")
	f.ask()
	f.answered(10)
	f.figure("it stops: %q", "co-partitioned topics differ")
}

// aheadOfLog changes the stores of an instance as if every row were written immediately: they contain all rows that the
// process had sent when it was killed, also those of its open transaction.
func (f *field) aheadOfLog(dir string) (rows int) {
	f.Helper()
	opened, closing := f.openStores(dir)
	defer closing()
	for partition, s := range opened {
		offset, err := s.GetOffset(-1)
		require.NoError(f, err)
		for _, r := range f.readChangelog(partition, kgo.ReadUncommitted()) {
			if r.Offset <= offset {
				continue
			}
			require.NoError(f, s.Set(string(r.Key), bytes.Clone(r.Value)))
			require.NoError(f, s.SetOffset(r.Offset))
			rows++
		}
	}
	return rows
}

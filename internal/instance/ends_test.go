package instance_test

import (
	"context"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
)

// tabled starts a broker whose group table was written by somebody who uses transactions.
func tabled(t testing.TB) (*kfake.Cluster, []string) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "in", "out", "g-table"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, c.ListenAddrs()
}

// transaction writes a table row in a transaction that is still open; end ends it.
func transaction(t testing.TB, brokers []string, id string, rows ...*kgo.Record) (end func(kgo.TransactionEndTry)) {
	t.Helper()
	c := dial(t, brokers, kgo.TransactionalID(id), kgo.TransactionTimeout(time.Minute))
	require.NoError(t, c.BeginTransaction())
	require.NoError(t, c.ProduceSync(t.Context(), rows...).FirstErr())
	return func(how kgo.TransactionEndTry) {
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		require.NoError(t, c.EndTransaction(ctx, how))
	}
}

// Goka waits for the record before the high watermark, and never reads it if it is a transaction marker.
func TestRecoveryEndsWithAnyKindOfLastRecord(t *testing.T) {
	t.Parallel()
	t.Run("stock waits for a marker", func(t *testing.T) {
		t.Parallel()
		_, brokers := tabled(t)
		transaction(t, brokers, "x", keyed("g-table", "k", "7"))(kgo.TryCommit)
		put(t, brokers, keyed("in", "k", "x"))
		r := stock(t, brokers, counting("g"), oldest)
		require.Empty(t, takeIn(t, brokers, "out", 1, 2*time.Second))
		require.False(t, r.recovered())
	})

	for name, c := range map[string]struct {
		write func(t *testing.T, brokers []string)
		next  string // of the count that was committed
	}{
		"commit marker": {func(t *testing.T, brokers []string) {
			transaction(t, brokers, "x", keyed("g-table", "k", "7"))(kgo.TryCommit)
		}, "8"},
		"abort marker": {func(t *testing.T, brokers []string) {
			put(t, brokers, keyed("g-table", "k", "5"))
			transaction(t, brokers, "x", keyed("g-table", "k", "7"))(kgo.TryAbort)
		}, "6"},
		"many aborted": {func(t *testing.T, brokers []string) {
			put(t, brokers, keyed("g-table", "k", "5"))
			for range 30 {
				transaction(t, brokers, "x", keyed("g-table", "k", "7"), keyed("g-table", "k", "8"))(kgo.TryAbort)
			}
		}, "6"},
		"no record": {func(*testing.T, []string) {}, "1"},
		"markers only": {func(t *testing.T, brokers []string) {
			transaction(t, brokers, "x", keyed("g-table", "k", "7"))(kgo.TryAbort)
			transaction(t, brokers, "x", keyed("g-table", "k", "7"))(kgo.TryAbort)
		}, "1"},
	} {
		for store, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
			t.Run(name+", "+store, func(t *testing.T) {
				t.Parallel()
				_, brokers := tabled(t)
				c.write(t, brokers)
				put(t, brokers, keyed("in", "k", "x"))
				inst := run(t, instance.Config{Brokers: brokers, Graph: counting("g"), StorageDir: dir})
				require.Equal(t, []string{c.next}, values(take(t, brokers, "out", 1)))
				inst.stop()
				require.NoError(t, inst.wait(t))

				put(t, brokers, keyed("in", "k", "x"))
				run(t, instance.Config{Brokers: brokers, Graph: counting("g"), StorageDir: dir})
				require.Len(t, take(t, brokers, "out", 2), 2, "and with what it has stored")
			})
		}
	}
}

// Recovery waits for an open transaction: the rows that it commits belong to the table.
func TestRecoveryWaitsForAnOpenTransaction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		how  kgo.TransactionEndTry
		next string
	}{"committed later": {kgo.TryCommit, "8"}, "aborted later": {kgo.TryAbort, "6"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, brokers := tabled(t)
			put(t, brokers, keyed("g-table", "k", "5"))
			end := transaction(t, brokers, "x", keyed("g-table", "k", "7"))
			put(t, brokers, keyed("g-table", "other", "1")) // behind what is undecided
			put(t, brokers, keyed("in", "k", "x"))
			inst := run(t, instance.Config{Brokers: brokers, Graph: counting("g")})
			require.Never(t, inst.recovered, 500*time.Millisecond, 10*time.Millisecond)
			require.Equal(t, instance.Recovering, inst.Health().State)
			end(c.how)
			require.Equal(t, []string{c.next}, values(take(t, brokers, "out", 1)))
		})
	}
}

// An instance that is stopped while it recovers does not wait for the transaction.
func TestStopDuringRecoveryDoesNotWaitForAnOpenTransaction(t *testing.T) {
	t.Parallel()
	_, brokers := tabled(t)
	transaction(t, brokers, "x", keyed("g-table", "k", "7"))
	inst := run(t, instance.Config{Brokers: brokers, Graph: counting("g")})
	eventually(t, func() bool { return inst.Health().Lag != nil }, "it has joined")
	require.Equal(t, instance.Recovering, inst.Health().State)
	inst.stop()
	require.NoError(t, inst.wait(t))
}

// A member joins while another one recovers its tables.
func TestMemberJoinsWhileAnotherRecovers(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "in", "out", "g-table"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	brokers := c.ListenAddrs()
	end := transaction(t, brokers, "x", &kgo.Record{Topic: "g-table", Key: []byte("k0"), Value: []byte("7")},
		&kgo.Record{Topic: "g-table", Key: []byte("k1"), Value: []byte("7")})
	put(t, brokers, keyed("in", "k0", "x"), keyed("in", "k1", "x"))

	first := run(t, instance.Config{Brokers: brokers, Graph: counting("g"), Sarama: lively})
	eventually(t, func() bool { return first.Health().Lag != nil }, "it has joined")
	second := run(t, instance.Config{Brokers: brokers, Graph: counting("g"), Sarama: lively})
	eventually(t, func() bool { return second.Health().Lag != nil }, "it has joined")
	end(kgo.TryCommit)
	first.ready(t)
	second.ready(t)
	require.Equal(t, []string{"8", "8"}, values(take(t, brokers, "out", 2)))
	require.Zero(t, first.Health().Restarts+second.Health().Restarts, "a rebalance is no failure")
}

// A row cannot be read before its table is recovered.
func TestGetDuringRecoveryReturnsAnError(t *testing.T) {
	t.Parallel()
	_, brokers := tabled(t)
	end := transaction(t, brokers, "x", keyed("g-table", "k", "7"))
	g := goka.DefineGroup("g", goka.Persist(codec.String()), goka.Input("in", codec.String(), func(goka.Context, any) {}))
	inst := run(t, instance.Config{Brokers: brokers, Graph: g})
	eventually(t, func() bool { return inst.Health().Lag != nil }, "it has joined")
	_, err := inst.Get("k")
	require.ErrorIs(t, err, instance.ErrNotRunning)
	end(kgo.TryCommit)
	inst.ready(t)
	row, err := inst.Get("k")
	require.NoError(t, err)
	require.Equal(t, "7", row.(codec.Decoded[string]).Value)
}

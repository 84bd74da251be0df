package whole

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/processors"
)

// The inputs of a deadline are read when no committed record of before the deadline is left: an input may end in the markers
// of transactions, in aborted records, or in offsets whose records were removed.
func TestProgressOfADeadline(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		r := newRig(t, guarantee, 1)
		now, read := &ahead{Clock: clock.System()}, make(chan bool, 1)
		arm := func(c *processors.Context, from time.Time) error {
			row := binary.BigEndian.AppendUint64(nil, uint64(from.Add(20*time.Millisecond).UnixMilli()))
			return c.SetValue(row)
		}
		r.deadline = func(c *processors.Context) error {
			p := c.Progress()
			assert.False(t, p.Since.IsZero())
			select {
			case <-read:
			default:
			}
			read <- !p.Through.Before(c.Timestamp())
			return arm(c, c.Timestamp())
		}
		r.run("one", func(c *processors.Context, _ codec.Decoded[string]) error {
			assert.Zero(t, c.Progress(), "of a record")
			return arm(c, c.Now())
		}, processors.WithClock(now))
		becomes := func(want bool) {
			t.Helper()
			require.Eventually(t, func() bool { return <-read == want }, waitLimit, time.Millisecond)
			for range 3 {
				<-read // may be of before
				require.Equal(t, want, <-read)
			}
		}
		r.put(0, "x")
		becomes(true)

		writer, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.TransactionalID(r.group+"-writer"))
		require.NoError(t, err)
		defer writer.Close()
		write := func() {
			require.NoError(t, writer.BeginTransaction())
			for range 5 {
				record := &kgo.Record{Topic: r.in.Name(), Key: []byte(r.key(0)), Value: []byte("x")}
				require.NoError(t, writer.ProduceSync(t.Context(), record).FirstErr())
			}
		}
		for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
			write()
			now.pass(cut.UnreadLimit) // until then, no deadline comes
			becomes(false)
			require.NoError(t, writer.EndTransaction(t.Context(), end))
			becomes(true)
		}
		admin := kadm.NewClient(r.client)
		ends, err := admin.ListEndOffsets(t.Context(), r.in.Name())
		require.NoError(t, err)
		_, err = admin.DeleteRecords(t.Context(), ends.Offsets())
		require.NoError(t, err)
		becomes(true)
	})
}

package turns

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
)

// Removes what exactly once depends on: the judge of the fault matrix must detect it. The first case is a member that
// commits without its generation and continues after its partitions were assigned to others. The second is a local store
// that is written immediately instead of after the commit of the transaction.
func TestOracleFindsWhatIsMissing(t *testing.T) {
	for name, play := range map[string]func(*field){
		"no generation in the commit": noGeneration, "local store written at once": writtenAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			var found wiretest.Report
			for tries := 0; found.Kept() && tries < 5; tries++ { // the fault may meet nothing that it spoils
				f := &field{
					T: t, ctx: ctx, dirs: map[string]string{}, config: config{
						agent: testbroker.Agent(), guarantee: processors.ExactlyOnce, brokers: testbroker.Start(t),
						child: settings{SessionMS: sessionTimeout.Milliseconds()},
					},
				}
				f.prepare(true)
				play(f)
				found = f.found()
			}
			require.False(t, found.Kept(), "a control that finds nothing wrong")
			t.Logf("%d objections, the first: %s", len(found.Violations)+found.Hidden, found.Violations[0])
		})
	}
}

// found ends everything and returns what the judge objects to.
func (f *field) found() wiretest.Report {
	f.Helper()
	f.load.Stop()
	brief, cancel := context.WithTimeout(f.ctx, 3*time.Second)
	defer cancel()
	_ = f.load.Wait(brief) // turns may hang
	for _, i := range f.all {
		if !i.Gone() {
			i.kill(f.T)
		}
	}
	report, _ := f.judge(3 * time.Second)
	return report
}

// noGeneration is a member that leaves out who it is when it commits.
func noGeneration(f *field) {
	f.unaware(func(r kmsg.Request) {
		if r, ok := r.(*kmsg.TxnOffsetCommitRequest); ok {
			r.Generation, r.MemberID, r.InstanceID = -1, "", nil
		}
	})
}

func writtenAtOnce(f *field) {
	f.start("a").kill(f.T)
	f.ask()
	f.killedAt(kmsg.EndTxn, 8, false)
	for f.openRequests() == 0 { // rows without a request do no harm, such as a result while other calls are still open
		f.killedAt(kmsg.EndTxn, 3, false)
	}
	require.Positive(f, f.aheadOfLog(f.dirs["a"]))
	f.start("a")
	progressed(f.ctx, f.load, 1000, 2*time.Second)
}

// openRequests counts the requests to models and tools in transactions that are open.
func (f *field) openRequests() (n int64) {
	f.Helper()
	names := wiretest.NamesOf(f.agent)
	f.withTopics(func(admin *kadm.Client) {
		stable, err := admin.ListCommittedOffsets(f.ctx, names.Enriched, names.ToolUse)
		require.NoError(f, err)
		ends, err := admin.ListEndOffsets(f.ctx, names.Enriched, names.ToolUse)
		require.NoError(f, err)
		ends.Each(func(end kadm.ListedOffset) {
			require.NoError(f, end.Err)
			from, ok := stable.Lookup(end.Topic, end.Partition)
			require.True(f, ok)
			n += end.Offset - from.Offset
		})
	})
	return n
}

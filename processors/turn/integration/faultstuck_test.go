package integration

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/wiretest"
)

// stuck describes what the brokers know of a field on which nothing happens any more: whether records wait for the group, whether an
// open transaction hides records, and whether the workers have answered everything.
func (f *field) stuck() string {
	var b strings.Builder
	client, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...))
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.ctx), 20*time.Second)
	defer cancel()
	admin, group := kadm.NewClient(client), wiretest.NamesOf(f.agent).Group
	fmt.Fprintf(&b, "load: %+v", f.load.Progress())
	lags, err := admin.Lag(ctx, group)
	if err == nil {
		err = lags.Error()
	}
	fmt.Fprintf(&b, "\ngroup: %s, %d members, error: %v", lags[group].State, len(lags[group].Members), err)
	for _, l := range lags[group].Lag.Sorted() {
		if l.Lag != 0 {
			fmt.Fprintf(&b, "\n  %s/%d: committed %d, end %d", l.Topic, l.Partition, l.Commit.At, l.End.Offset)
		}
	}
	ends, err := admin.ListEndOffsets(ctx)
	stable, stableErr := admin.ListCommittedOffsets(ctx)
	fmt.Fprintf(&b, "\nends: errors: %v, %v", err, stableErr)
	ends.Each(func(e kadm.ListedOffset) {
		if s, ok := stable.Lookup(e.Topic, e.Partition); ok && s.Offset != e.Offset && strings.HasPrefix(e.Topic, f.agent) {
			fmt.Fprintf(&b, "\n  %s/%d: stable to %d, end %d", e.Topic, e.Partition, s.Offset, e.Offset)
		}
	})
	open, err := admin.ListTransactions(ctx, nil, nil)
	fmt.Fprintf(&b, "\ntransactions: error: %v", err)
	for _, t := range open.Sorted() {
		fmt.Fprintf(&b, "\n  %s: %s, producer %d", t.TxnID, t.State, t.ProducerID)
	}
	return b.String()
}

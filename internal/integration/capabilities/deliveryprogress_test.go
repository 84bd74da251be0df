package capabilities

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// progress describes the deliveries of n that have not ended, for a test that timed out: their records.
func (r *deliveryRig) progress(n int) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	missing := r.missing(n)
	lines := []string{fmt.Sprintf("%d have not ended", len(missing))}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	c, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.ConsumeTopics(r.topics.MessageOutput.Name(),
		r.topics.ReplyTo.Name(), r.topics.Deliveries.Name(), r.topics.DeliveryReceipts.Name(), r.topics.DeliveryDLQ.Name()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	for fetches := c.PollFetches(ctx); ctx.Err() == nil; fetches = c.PollFetches(ctx) {
		fetches.EachRecord(func(m *kgo.Record) {
			if !missing[string(m.Key)] {
				return
			}
			text := ""
			if m.Topic == r.topics.DeliveryReceipts.Name() {
				d := r.topics.DeliveryReceipts.Codec().Unmarshal(m.Value)
				text = fmt.Sprintf("%+v", d.Value)
			}
			add("%s: %s/%d/%d %s", m.Key, m.Topic, m.Partition, m.Offset, text)
		})
	}
	return strings.Join(lines, "\n")
}

// missing returns the sessions of n whose delivery has not ended.
func (r *deliveryRig) missing(n int) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	missing := map[string]bool{}
	for i := range n {
		missing[number(i)] = true
	}
	for _, finals := range r.finals {
		for _, f := range finals {
			delete(missing, f.SessionID)
		}
	}
	return missing
}

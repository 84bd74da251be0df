package testbroker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/wirecheck"
	"github.com/turntable-streams/turntable/topics"
)

// validate reads the records of topics, or of all, and returns an error if one that Turntable has written is not valid by the schema
// of its topic. It takes records with an ID for those: tests write damaged ones without.
func validate(ctx context.Context, addrs []string, names ...string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.KeepControlRecords())
	if err != nil {
		return fmt.Errorf("testbroker: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	starts, err := admin.ListStartOffsets(ctx, names...)
	if err != nil {
		return fmt.Errorf("testbroker: %w", err)
	}
	ends, err := admin.ListEndOffsets(ctx, names...)
	if err != nil {
		return fmt.Errorf("testbroker: %w", err)
	}
	unread := map[string]map[int32]kgo.Offset{}
	left := 0
	ends.Each(func(o kadm.ListedOffset) {
		if start, ok := starts.Lookup(o.Topic, o.Partition); !ok || o.Err != nil || start.Offset >= o.Offset {
			return
		}
		if unread[o.Topic] == nil {
			unread[o.Topic] = map[int32]kgo.Offset{}
		}
		unread[o.Topic][o.Partition] = kgo.NewOffset().AtStart()
		left++
	})
	client.AddConsumePartitions(unread)
	var invalid []error
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("testbroker: read %d partitions: %w", left, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if end, _ := ends.Lookup(r.Topic, r.Partition); r.Offset == end.Offset-1 {
				left--
			}
			written := slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == topics.HeaderID })
			if r.Attrs.IsControl() || !written || len(invalid) > 10 {
				return
			}
			if err := wirecheck.Record(r.Topic, r.Value); err != nil {
				invalid = append(invalid, err)
			}
		})
	}
	return errors.Join(invalid...)
}

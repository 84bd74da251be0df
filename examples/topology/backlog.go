package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// exchange is a question of the session and, if its turn has ended, the output.
type exchange struct {
	request  string
	question string
	output   *output
}

// requestID returns the request id of the n-th question. The turn processor accepts a request once, and its output
// contains the id.
func requestID(n int) string { return "question-" + strconv.Itoa(n) }

func requestNumber(id string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "question-"))
	return n
}

// backlogDepth is the maximum number of records that are read back per partition.
const backlogDepth = 10_000

// backlog is what earlier runs left.
type backlog struct {
	exchanges []exchange    // of the session so far
	gates     []gateRequest // that are open
	ends      kadm.Offsets  // records before them are in the backlog; the recorder starts there
}

// readBacklog reads what earlier runs left of a session, up to the end offsets of the flow's topics at that moment.
func readBacklog(ctx context.Context, s settings) (b backlog, err error) {
	brokers, session := s.brokers, s.session
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return b, fmt.Errorf("backlog: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	starts, startErr := admin.ListStartOffsets(ctx, s.flowTopics()...)
	ends, endErr := admin.ListEndOffsets(ctx, s.flowTopics()...)
	if err := errors.Join(startErr, endErr, starts.Error(), ends.Error()); err != nil {
		return b, fmt.Errorf("backlog: extent of the topics: %w", err)
	}
	b.ends = ends.Offsets()
	err = replay(ctx, brokers, starts, ends, topicOf(orchestrator, messageInput), func(r *kgo.Record) {
		var m message
		if string(r.Key) != session || json.Unmarshal(r.Value, &m) != nil || m.Role != "user" {
			return
		}
		if id := field[metadata](m.Metadata).RequestID; id != "" {
			b.exchanges = append(b.exchanges, exchange{request: id, question: contentText(m.Content)})
		}
	})
	if err != nil {
		return b, err
	}
	err = replay(ctx, brokers, starts, ends, topicOf(orchestrator, messageOutput), func(r *kgo.Record) {
		var out output
		if string(r.Key) != session || json.Unmarshal(r.Value, &out) != nil {
			return
		}
		for i := range b.exchanges {
			if b.exchanges[i].request == out.RequestID && b.exchanges[i].output == nil {
				b.exchanges[i].output = &out
			}
		}
	})
	if err != nil || !s.approve {
		return b, err
	}
	b.gates, err = openGates(ctx, brokers, starts, ends, session)
	return b, err
}

// replay reads a topic from its start to its end.
func replay(
	ctx context.Context, brokers []string, starts, ends kadm.ListedOffsets, topic string, take func(*kgo.Record),
) error {
	from, left := make(map[int32]kgo.Offset), make(map[int32]bool)
	for partition, end := range ends[topic] {
		if start := max(starts[topic][partition].Offset, end.Offset-backlogDepth); start < end.Offset {
			from[partition] = kgo.NewOffset().At(start)
			left[partition] = true
		}
	}
	if len(left) == 0 {
		return nil
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.KeepControlRecords(), // the last record may be one, and the end has to be seen
	)
	if err != nil {
		return fmt.Errorf("backlog: %w", err)
	}
	defer client.Close()
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end := ends[topic][r.Partition].Offset
			if r.Offset < end && !r.Attrs.IsControl() {
				take(r)
			}
			if r.Offset+1 >= end {
				delete(left, r.Partition)
			}
		})
	}
	return nil
}

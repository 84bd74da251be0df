package wiretest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The header names of the wire format. They are repeated here on purpose: a mistake in the library must show as a
// violation.
const (
	headerID        = "turntable.id"
	headerReason    = "error.reason"
	headerTopic     = "error.source.topic"
	headerPartition = "error.source.partition"
	headerOffset    = "error.source.offset"
	headerGroup     = "error.group"
	headerTruncated = "error.truncated"
)

// Names are the topics of one agent.
type Names struct {
	Agent, Group string

	MessageInput, Enriched, Think, ThinkDLQ                   string
	ToolUse, ToolUseDLQ, ToolUseResult, AllComplete           string
	MessageOutput, ReplyTo, SessionControl, DeadLetters, Loop string
}

// NamesOf returns the topic names of an agent.
func NamesOf(agent string) Names {
	group := agent + "-streams"
	return Names{
		Agent: agent, Group: group,
		MessageInput: agent + "-message-input", Enriched: agent + "-enriched-message-input",
		Think: agent + "-think-request-response", ThinkDLQ: agent + "-think-dlq",
		ToolUse: agent + "-tool-use", ToolUseDLQ: agent + "-tool-use-dlq",
		ToolUseResult: agent + "-tool-use-result", AllComplete: agent + "-tool-use-all-complete",
		MessageOutput: agent + "-message-output", ReplyTo: agent + "-reply-to",
		SessionControl: agent + "-session-control", DeadLetters: group + "-dlq", Loop: group + "-loop",
	}
}

// Inputs returns the topics that the pipeline reads, in a fixed order.
func (n Names) Inputs() []string {
	return []string{
		n.MessageInput, n.Think, n.ThinkDLQ, n.ToolUseResult, n.ToolUseDLQ, n.ReplyTo, n.SessionControl,
	}
}

// All returns the topics that the oracle reads. The loop topic may be missing, because the pipeline creates it.
func (n Names) All() []string {
	return append(n.Inputs(), n.Enriched, n.ToolUse, n.AllComplete, n.MessageOutput, n.DeadLetters, n.Loop)
}

// Coord is the topic, partition and offset of a record.
type Coord struct {
	Topic     string
	Partition int32
	Offset    int64
}

// String returns topic/partition@offset.
func (c Coord) String() string {
	return c.Topic + "/" + strconv.Itoa(int(c.Partition)) + "@" + strconv.FormatInt(c.Offset, 10)
}

func coordOf(r *kgo.Record) Coord {
	return Coord{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
}

// CreateTopics creates the missing topics of an agent, all except the loop topic, with the given partition count, for
// tests whose pipeline does not create them. The replication factor is the broker's default. It blocks until the brokers'
// metadata have the topics.
func CreateTopics(ctx context.Context, bootstrap []string, agent string, partitions int32) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...))
	if err != nil {
		return fmt.Errorf("wiretest: client: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	have, err := admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("wiretest: list topics: %w", err)
	}
	names := NamesOf(agent)
	missing := slices.DeleteFunc(names.All(), func(t string) bool { return t == names.Loop || have.Has(t) })
	if len(missing) == 0 {
		return nil
	}
	created, err := admin.CreateTopics(ctx, partitions, -1, nil, missing...)
	if err != nil {
		return fmt.Errorf("wiretest: create topics: %w", err)
	}
	if err := created.Error(); err != nil {
		return fmt.Errorf("wiretest: create topics: %w", err)
	}
	return awaitTopics(ctx, client, missing)
}

// awaitTopics blocks until the brokers' metadata have topics. A broker can answer the creation before that.
func awaitTopics(ctx context.Context, client *kgo.Client, topics []string) error {
	for {
		counts, err := partitionCounts(ctx, client, topics)
		if err != nil || len(counts) == len(topics) {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wiretest: %d of %d topics exist: %w", len(counts), len(topics), context.Cause(ctx))
		}
	}
}

// partitionCounts returns the partition counts of existing topics. It asks the broker, because the admin client's
// listing may be some seconds old.
func partitionCounts(ctx context.Context, client *kgo.Client, topics []string) (map[string]int32, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, t := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(t)
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("wiretest: list topics: %w", err)
	}
	counts := make(map[string]int32, len(topics))
	for _, t := range resp.Topics {
		if t.ErrorCode == 0 && t.Topic != nil && len(t.Partitions) > 0 {
			counts[*t.Topic] = int32(len(t.Partitions))
		}
	}
	return counts, nil
}

// home returns the partition that Java's default partitioner chooses for a key that is not null.
func partitionOf(key []byte, partitions int32) int32 {
	byKey := kgo.StickyKeyPartitioner(nil).ForTopic("")
	return int32(byKey.Partition(&kgo.Record{Key: key}, int(partitions)))
}

package topics

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

const retentionMS = "retention.ms"

// inputRetention returns the retention.ms for the loop topic: the longest retention of the input topics, so that a looped
// record is kept as long as in its input. -1 is unlimited retention, 0 the broker's default.
func inputRetention(ctx context.Context, admin Admin, c Catalog, poll time.Duration) (int64, error) {
	longest, explicit := int64(0), false
	inputs := []Spec{
		c.MessageInput.spec, c.ThinkRequestResponse.spec, c.ThinkDLQ.spec, c.ToolUseResult.spec, c.ToolUseDLQ.spec,
		c.ReplyTo.spec, c.SessionControl.spec,
	}
	if s := c.CompactionResult.spec; s.Created {
		inputs = append(inputs, s)
	}
	if s := c.GateOutcomes.spec; s.Created {
		inputs = append(inputs, s, c.GateRequests.spec)
	}
	for _, s := range inputs {
		entries, err := configuration(ctx, admin, s.Name, poll)
		if err != nil {
			return 0, fmt.Errorf("topics: describe configuration of %s: %w", s.Name, err)
		}
		for _, e := range entries {
			if e.Name != retentionMS {
				continue
			}
			ms, err := strconv.ParseInt(e.Value, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("topics: %s of %s is not a number", retentionMS, s.Name)
			}
			if longer(ms, longest) {
				longest = ms
				explicit = e.Source == sarama.SourceTopic || e.Source == sarama.SourceUnknown && !e.Default
			}
		}
	}
	if !explicit {
		return 0, nil
	}
	return longest, nil
}

// configuration returns the retention of an existing topic. It retries while the broker that answers does not know the
// topic yet, because metadata reaches the brokers at different times.
func configuration(ctx context.Context, admin Admin, topic string, poll time.Duration) ([]sarama.ConfigEntry, error) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		entries, err := admin.DescribeConfig(sarama.ConfigResource{
			Type: sarama.TopicResource, Name: topic, ConfigNames: []string{retentionMS},
		})
		var describeErr *sarama.DescribeConfigError
		if !errors.Is(err, sarama.ErrUnknownTopicOrPartition) &&
			(!errors.As(err, &describeErr) || describeErr.Err != sarama.ErrUnknownTopicOrPartition) {
			return entries, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// longer reports whether retention a is longer than b. -1 is unlimited.
func longer(a, b int64) bool { return b >= 0 && (a < 0 || a > b) }

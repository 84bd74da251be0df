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

// inputRetention is the retention.ms that keeps a looped record for as long as any input would have kept it: the
// longest of the inputs', -1 for ever, 0 where that is the broker's default.
func inputRetention(ctx context.Context, admin Admin, c Catalog, poll time.Duration) (int64, error) {
	longest, explicit := int64(0), false
	for _, s := range []Spec{
		c.MessageInput.spec, c.ThinkRequestResponse.spec, c.ThinkDLQ.spec, c.ToolUseResult.spec, c.ToolUseDLQ.spec,
		c.ReplyTo.spec, c.SessionControl.spec,
	} {
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
				return 0, fmt.Errorf("topics: %s of %s is no number", retentionMS, s.Name)
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

// configuration asks until the broker that answers has heard of the topic, which is there.
func configuration(ctx context.Context, admin Admin, topic string, poll time.Duration) ([]sarama.ConfigEntry, error) {
	again := time.NewTicker(poll)
	defer again.Stop()
	for {
		entries, err := admin.DescribeConfig(sarama.ConfigResource{
			Type: sarama.TopicResource, Name: topic, ConfigNames: []string{retentionMS},
		})
		var refused *sarama.DescribeConfigError
		if !errors.Is(err, sarama.ErrUnknownTopicOrPartition) &&
			(!errors.As(err, &refused) || refused.Err != sarama.ErrUnknownTopicOrPartition) {
			return entries, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-again.C:
		}
	}
}

// longer compares two retentions, of which -1 is for ever.
func longer(a, b int64) bool { return b >= 0 && (a < 0 || a > b) }

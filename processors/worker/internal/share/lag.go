package share

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

const (
	// lagEvery is how often the brokers are asked for the group's lag.
	lagEvery = 10 * time.Second
	// firstLag is how often they are asked until they know it: a new group has none yet.
	firstLag = time.Second
	// lagLimit bounds one request.
	lagLimit = 5 * time.Second
)

// measure asks for the group's lag until ctx ends. A member that may not describe the group works without it.
func (m *member) measure(ctx context.Context) {
	known := true
	for {
		lag, err := m.lag(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && known {
			m.logger.Warn("the lag of the share group is unknown", zap.Error(err))
		}
		known = err == nil
		m.Source.mu.Lock()
		m.status.Lag = lag
		m.Source.mu.Unlock()
		wait := lagEvery
		if err == nil && lag == nil {
			wait = firstLag
		}
		ticker := m.config.Clock.NewTicker(wait)
		select {
		case <-ticker.C():
		case <-ctx.Done():
		}
		ticker.Stop()
	}
}

// lag returns the number of records that the group has not settled, by topic and partition. Partitions whose lag the broker
// does not know are left out.
func (m *member) lag(ctx context.Context) (map[string]map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, lagLimit)
	defer cancel()
	found, err := topicsOf(ctx, m.client, m.config.Topics)
	if err != nil {
		return nil, err
	}
	group := kmsg.NewDescribeShareGroupOffsetsRequestGroup()
	group.GroupID = m.config.Group
	for _, t := range found {
		topic := kmsg.NewDescribeShareGroupOffsetsRequestGroupTopic()
		topic.Topic = t.name
		for id := range t.leaders {
			topic.Partitions = append(topic.Partitions, id)
		}
		group.Topics = append(group.Topics, topic)
	}
	req := kmsg.NewPtrDescribeShareGroupOffsetsRequest()
	req.Groups = append(req.Groups, group)
	resp, err := req.RequestWith(ctx, m.client)
	if err != nil {
		return nil, err
	}
	lag := map[string]map[int32]int64{}
	for _, g := range resp.Groups {
		err = errors.Join(err, describeError(g.ErrorCode, "group "+g.GroupID))
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				err = errors.Join(err, describeError(p.ErrorCode, fmt.Sprintf("%s/%d", t.Topic, p.Partition)))
				if p.ErrorCode == 0 && p.Lag >= 0 {
					if lag[t.Topic] == nil {
						lag[t.Topic] = map[int32]int64{}
					}
					lag[t.Topic][p.Partition] = p.Lag
				}
			}
		}
	}
	if len(lag) == 0 {
		lag = nil
	}
	return lag, err
}

func describeError(code int16, of string) error {
	if err := kerr.ErrorForCode(code); err != nil {
		return fmt.Errorf("describe offsets of %s: %w", of, err)
	}
	return nil
}

package share

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

// defaultLimit is how often brokers deliver a record by default.
const defaultLimit = 5

// configure sets the configuration of the group. If the broker denies it, the command for an operator is logged and the
// worker continues with the group's present configuration.
func configure(ctx context.Context, client *kgo.Client, group string, lock time.Duration, logger *zap.Logger) error {
	settings := [][2]string{
		{"share.auto.offset.reset", "earliest"},     // the default, latest, skips records that precede the first worker
		{"share.isolation.level", "read_committed"}, // the default delivers records of aborted transactions
		{"share.record.lock.duration.ms", strconv.FormatInt(lock.Milliseconds(), 10)},
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	var list []string
	for _, s := range settings {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = s[0], kmsg.StringPtr(s[1])
		resource.Configs = append(resource.Configs, c)
		list = append(list, s[0]+"="+s[1])
	}
	req.Resources = append(req.Resources, resource)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("worker: configure share group %s: %w", group, err)
	}
	for _, r := range resp.Resources {
		err := kerr.ErrorForCode(r.ErrorCode)
		if err == nil {
			continue
		}
		if kerr.IsRetriable(err) {
			return fmt.Errorf("worker: configure share group %s: %w", group, err)
		}
		why := err.Error()
		if r.ErrorMessage != nil {
			why += ": " + *r.ErrorMessage
		}
		logger.Error("the broker does not let this worker configure its share group: an operator must run the command once; "+
			"until then the group may skip records that precede its first worker",
			zap.String("reason", why),
			zap.String("command", "kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type groups --entity-name "+
				group+" --add-config "+strings.Join(list, ",")))
	}
	return nil
}

// deliveryLimit returns how often the broker delivers a record of the group: the group's setting if it has one, else the
// broker's. If the worker may not read them, it is the default of brokers.
func deliveryLimit(ctx context.Context, client *kgo.Client, group string) (int, error) {
	limit, err := setting(ctx, client, kmsg.ConfigResourceTypeGroupConfig, group, "share.delivery.count.limit",
		kmsg.ConfigSourceGroupConfig)
	if limit > 0 || err != nil {
		return limit, err
	}
	metadata, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err != nil {
		return 0, fmt.Errorf("worker: brokers of share group %s: %w", group, err)
	}
	for _, b := range metadata.Brokers {
		limit, err = setting(ctx, client, kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(b.NodeID)),
			"group.share.delivery.count.limit")
		if limit > 0 || err != nil {
			return limit, err
		}
	}
	return defaultLimit, nil
}

// setting returns a numeric setting, or 0 if the broker has none, does not show it, or it has another source than from.
func setting(
	ctx context.Context, client *kgo.Client, kind kmsg.ConfigResourceType, of, name string, from ...kmsg.ConfigSource,
) (int, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName, resource.ConfigNames = kind, of, []string{name}
	req.Resources = append(req.Resources, resource)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return 0, fmt.Errorf("worker: read setting %s of %s: %w", name, of, err)
	}
	for _, r := range resp.Resources {
		for _, c := range r.Configs {
			if c.Name != name || c.Value == nil || len(from) > 0 && c.Source != from[0] {
				continue
			}
			n, err := strconv.Atoi(*c.Value)
			if err == nil && n > 0 {
				return n, nil
			}
		}
	}
	return 0, nil
}

// errMissing names the usual causes: the groups of an agent create its topics when they start.
var errMissing = errors.New("the topic does not exist: check that a process with the agent's groups runs, and the name of the agent")

// topic is what a member needs to know of a topic.
type topic struct {
	name    string
	leaders map[int32]int32 // broker by partition; negative if there is none
}

// topicsOf returns the topics by ID. It returns an error if one is missing.
func topicsOf(ctx context.Context, client *kgo.Client, names []string) (map[[16]byte]topic, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("worker: metadata: %w", err)
	}
	topics := map[[16]byte]topic{}
	for _, t := range resp.Topics {
		name := ""
		if t.Topic != nil {
			name = *t.Topic
		}
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			return nil, fmt.Errorf("worker: topic %s: %w", name, errMissing)
		case err != nil:
			return nil, fmt.Errorf("worker: topic %s: %w", name, err)
		}
		leaders := map[int32]int32{}
		for _, p := range t.Partitions {
			leaders[p.Partition] = p.Leader
		}
		topics[t.TopicID] = topic{name, leaders}
	}
	return topics, nil
}

package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

// Admin is what Ensure asks of a cluster; sarama.ClusterAdmin is one.
type Admin interface {
	DescribeTopics(topics []string) ([]*sarama.TopicMetadata, error)
	CreateTopic(topic string, detail *sarama.TopicDetail, validateOnly bool) error
	DescribeConfig(resource sarama.ConfigResource) ([]sarama.ConfigEntry, error)
}

var _ Admin = sarama.ClusterAdmin(nil)

// EnsureOption changes what Ensure does.
type EnsureOption func(*ensureOptions)

type ensureOptions struct {
	partitions  int32
	replication int16
	poll        time.Duration
}

// brokers leaves a number to the broker's configuration.
const brokers = -1

// WithPartitions sets the partitions of topics that Ensure creates: at least 1, or -1 for the broker's default, which
// is also Ensure's. Where co-partitioned topics of the catalog exist already, their count must be the same; with -1,
// the new ones take it.
func WithPartitions(n int32) EnsureOption { return func(o *ensureOptions) { o.partitions = n } }

// WithReplication sets the replication factor of topics that Ensure creates: at least 1, or -1 for the broker's
// default, which is also Ensure's. It does not touch topics that exist.
func WithReplication(n int16) EnsureOption { return func(o *ensureOptions) { o.replication = n } }

// withPoll sets how long Ensure waits before it looks again for a topic that it created.
func withPoll(d time.Duration) EnsureOption { return func(o *ensureOptions) { o.poll = d } }

// Ensure creates the topics that the catalog's group needs and the cluster lacks. It never alters a topic that exists,
// and does not mind one that somebody else creates at the same time. All co-partitioned topics get the same count.
//
// It returns ErrCoPartitioning where such topics differ, and ErrPartitions where they exist with another count than the
// configured one; nothing is created then. It blocks until every topic can be seen on the cluster or ctx ends (a single
// request is bounded by the admin's own timeouts). After an error it may be called again.
func Ensure(ctx context.Context, admin Admin, c Catalog, opts ...EnsureOption) error {
	o := ensureOptions{partitions: brokers, replication: brokers, poll: 100 * time.Millisecond}
	for _, opt := range opts {
		opt(&o)
	}
	if o.partitions < 1 && o.partitions != brokers {
		return fmt.Errorf("topics: %d partitions configured, want at least 1, or -1 for the broker's default",
			o.partitions)
	}
	if o.replication < 1 && o.replication != brokers {
		return fmt.Errorf("topics: replication %d configured, want at least 1, or -1 for the broker's default",
			o.replication)
	}
	var wanted []Spec
	for _, s := range c.Specs() {
		if s.Created {
			wanted = append(wanted, s)
		}
	}
	found, err := lookUp(ctx, admin, wanted)
	if err != nil {
		return err
	}
	count, err := commonCount(wanted, found, c, o.partitions)
	if err != nil {
		return err
	}
	// The loop comes last: its retention is that of the inputs, which must be there to tell it.
	loop := slices.IndexFunc(wanted, func(s Spec) bool { return s.Name == c.Loop() })
	for _, phase := range [][]Spec{slices.Delete(slices.Clone(wanted), loop, loop+1), wanted} {
		if found.without(phase) == "" {
			continue
		}
		if err := create(ctx, admin, c, phase, found, count, o); err != nil {
			return err
		}
		if found, err = settle(ctx, admin, phase, o.poll); err != nil {
			return err
		}
		// Whoever created topics at the same time may have been configured otherwise.
		if count, err = commonCount(phase, found, c, o.partitions); err != nil {
			return err
		}
	}
	return nil
}

// EnsureCluster is Ensure over a connection of its own. The configuration's version must be 2.4 or newer for the
// broker's defaults to apply.
func EnsureCluster(
	ctx context.Context, addresses []string, config *sarama.Config, c Catalog, opts ...EnsureOption,
) (err error) {
	admin, err := sarama.NewClusterAdmin(addresses, config)
	if err != nil {
		return fmt.Errorf("topics: connect: %w", err)
	}
	defer func() {
		if closing := admin.Close(); closing != nil {
			err = errors.Join(err, fmt.Errorf("topics: disconnect: %w", closing))
		}
	}()
	return Ensure(ctx, admin, c, opts...)
}

// create makes the topics that were not found.
func create(
	ctx context.Context, admin Admin, c Catalog, specs []Spec, found counts, count int32, o ensureOptions,
) error {
	for _, s := range specs {
		if _, ok := found[s.Name]; ok {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("topics: create %s: %w", s.Name, context.Cause(ctx))
		}
		config := map[string]*string{"cleanup.policy": (*string)(&s.Cleanup)}
		ms := s.Retention.Milliseconds()
		if s.Name == c.Loop() {
			var err error
			if ms, err = inputRetention(ctx, admin, c, o.poll); err != nil {
				return err
			}
		}
		if ms != 0 {
			text := strconv.FormatInt(ms, 10)
			config[retentionMS] = &text
		}
		err := admin.CreateTopic(s.Name, &sarama.TopicDetail{
			NumPartitions: count, ReplicationFactor: o.replication, ConfigEntries: config,
		}, false)
		if err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
			return fmt.Errorf("topics: create %s: %w", s.Name, err)
		}
	}
	return nil
}

// settle waits until all topics can be seen.
func settle(ctx context.Context, admin Admin, specs []Spec, poll time.Duration) (counts, error) {
	again := time.NewTicker(poll)
	defer again.Stop()
	for {
		found, err := lookUp(ctx, admin, specs)
		if err != nil {
			return nil, err
		}
		unseen := found.without(specs)
		if unseen == "" {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("topics: %s was created and cannot be seen yet: %w", unseen, context.Cause(ctx))
		case <-again.C:
		}
	}
}

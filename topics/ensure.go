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

// Admin is the part of sarama.ClusterAdmin that Ensure uses.
type Admin interface {
	DescribeTopics(topics []string) ([]*sarama.TopicMetadata, error)
	CreateTopic(topic string, detail *sarama.TopicDetail, validateOnly bool) error
	DescribeConfig(resource sarama.ConfigResource) ([]sarama.ConfigEntry, error)
}

var _ Admin = sarama.ClusterAdmin(nil)

// EnsureOption configures Ensure.
type EnsureOption func(*ensureOptions)

type ensureOptions struct {
	partitions  int32
	usual       int32 // without partitions and co-partitioned topics
	created     func(topic string, partitions int32)
	replication int16
	poll        time.Duration
	specs       []Spec
}

// brokerDefault selects the broker's configured value.
const brokerDefault = -1

// WithPartitions sets the number of partitions of the topics that Ensure creates: at least 1, or -1, the default, for the
// broker's default. If co-partitioned topics of the catalog exist, n must be their number of partitions; with -1, new
// topics get that number.
func WithPartitions(n int32) EnsureOption { return func(o *ensureOptions) { o.partitions = n } }

// WithDefaultPartitions sets the number of partitions of the topics that Ensure creates if WithPartitions does not and no
// co-partitioned topic of the catalog exists: at least 1, or -1, the default, for the broker's default.
func WithDefaultPartitions(n int32) EnsureOption { return func(o *ensureOptions) { o.usual = n } }

// WithCreated sets a function that Ensure calls for each topic that it has created, with its number of partitions, or -1 for the
// broker's default. Topics that another process creates at the same time are not reported.
func WithCreated(report func(topic string, partitions int32)) EnsureOption {
	return func(o *ensureOptions) { o.created = report }
}

// WithReplication sets the replication factor of the topics that Ensure creates: at least 1, or -1, the default, for the
// broker's default. Existing topics are not changed.
func WithReplication(n int16) EnsureOption { return func(o *ensureOptions) { o.replication = n } }

// WithSpecs makes Ensure create these topics too, whether their specs are marked as Created or not. Co-partitioned ones get the
// number of partitions of those of the catalog. The catalog may be the zero Catalog: then Ensure creates only these.
func WithSpecs(specs ...Spec) EnsureOption {
	return func(o *ensureOptions) { o.specs = append(o.specs, specs...) }
}

// withPoll sets how often Ensure polls for a topic that it created.
func withPoll(d time.Duration) EnsureOption { return func(o *ensureOptions) { o.poll = d } }

// Ensure creates the topics that the catalog's groups need and the cluster lacks. It never alters an existing topic. Other
// processes may call it at the same time. All co-partitioned topics get the same number of partitions.
//
// The error wraps ErrCoPartitioning if existing co-partitioned topics differ in their number of partitions, and
// ErrPartitions if that number is not the configured one, and ErrArchive while the topics are restored or moved; Ensure then creates
// nothing. Ensure blocks until all topics are
// visible on the cluster or ctx ends; single requests are bounded by the timeouts of admin. It may be called again after
// an error.
func Ensure(ctx context.Context, admin Admin, c Catalog, opts ...EnsureOption) error {
	o := ensureOptions{
		partitions: brokerDefault, usual: brokerDefault, replication: brokerDefault, poll: 100 * time.Millisecond,
		created: func(string, int32) {},
	}
	for _, opt := range opts {
		opt(&o)
	}
	for _, n := range []int32{o.partitions, o.usual} {
		if n < 1 && n != brokerDefault {
			return fmt.Errorf("topics: %d partitions configured, want at least 1, or -1 for the broker's default", n)
		}
	}
	if o.replication < 1 && o.replication != brokerDefault {
		return fmt.Errorf("topics: replication %d configured, want at least 1, or -1 for the broker's default",
			o.replication)
	}
	wanted := slices.Clone(o.specs)
	for _, s := range c.Specs() {
		if s.Created && c.Agent != "" {
			wanted = append(wanted, s)
		}
	}
	if err := archived(ctx, admin, c); err != nil {
		return err
	}
	existing, err := describe(ctx, admin, wanted)
	if err != nil {
		return err
	}
	count, err := commonCount(wanted, existing, c, o)
	if err != nil {
		return err
	}
	// The loop topic is created last: its retention is copied from the input topics, which must exist first.
	isLoop := func(s Spec) bool { return s.Name == c.Loop() }
	for _, phase := range [][]Spec{slices.DeleteFunc(slices.Clone(wanted), isLoop), wanted} {
		if existing.firstMissing(phase) == "" {
			continue
		}
		if err := create(ctx, admin, c, phase, existing, count, o); err != nil {
			return err
		}
		if existing, err = awaitVisible(ctx, admin, phase, o.poll); err != nil {
			return err
		}
		// Another process that created topics at the same time may have a different configuration.
		if count, err = commonCount(phase, existing, c, o); err != nil {
			return err
		}
	}
	return nil
}

// archived returns ErrArchive if the journal of a restore or a repartition exists. A principal that may not describe it cannot tell.
func archived(ctx context.Context, admin Admin, c Catalog) error {
	if c.Agent == "" {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("topics: describe: %w", context.Cause(ctx))
	}
	found, err := admin.DescribeTopics([]string{c.Archive()})
	if err != nil {
		return fmt.Errorf("topics: describe: %w", err)
	}
	for _, m := range found {
		if m.Err == sarama.ErrNoError || m.Err == sarama.ErrLeaderNotAvailable {
			return fmt.Errorf("%w: the topic %s has its journal", ErrArchive, c.Archive())
		}
	}
	return nil
}

// EnsureCluster connects to the brokers at addresses, calls Ensure and disconnects. config.Version must be at least 2.4,
// because older brokers cannot apply their own defaults.
func EnsureCluster(
	ctx context.Context, addresses []string, config *sarama.Config, c Catalog, opts ...EnsureOption,
) (err error) {
	admin, err := sarama.NewClusterAdmin(addresses, config)
	if err != nil {
		return fmt.Errorf("topics: connect: %w", err)
	}
	defer func() {
		if closeErr := admin.Close(); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("topics: disconnect: %w", closeErr))
		}
	}()
	return Ensure(ctx, admin, c, opts...)
}

// create creates the specs that do not exist, with count partitions.
func create(
	ctx context.Context, admin Admin, c Catalog, specs []Spec, existing partitionCounts, count int32, o ensureOptions,
) error {
	for _, s := range specs {
		if _, ok := existing[s.Name]; ok {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("topics: create %s: %w", s.Name, context.Cause(ctx))
		}
		config := map[string]*string{}
		if s.Cleanup != "" {
			config["cleanup.policy"] = (*string)(&s.Cleanup)
		}
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
		if s.CompactionLag != 0 {
			text := strconv.FormatInt(s.CompactionLag.Milliseconds(), 10)
			config["min.compaction.lag.ms"] = &text
		}
		err := admin.CreateTopic(s.Name, &sarama.TopicDetail{
			NumPartitions: count, ReplicationFactor: o.replication, ConfigEntries: config,
		}, false)
		switch {
		case err == nil:
			o.created(s.Name, count)
		case !errors.Is(err, sarama.ErrTopicAlreadyExists):
			return fmt.Errorf("topics: create %s: %w", s.Name, err)
		}
	}
	return nil
}

// awaitVisible waits until the cluster describes all topics.
func awaitVisible(ctx context.Context, admin Admin, specs []Spec, poll time.Duration) (partitionCounts, error) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		existing, err := describe(ctx, admin, specs)
		if err != nil {
			return nil, err
		}
		missing := existing.firstMissing(specs)
		if missing == "" {
			return existing, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("topics: %s was created but is not visible yet: %w", missing, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

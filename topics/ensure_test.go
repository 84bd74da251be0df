package topics

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
)

// cluster is an in-memory Admin.
type cluster struct {
	counts    map[string]int32
	created   map[string]*sarama.TopicDetail
	retention map[string]string
	partition int32
	// hide is the number of further descriptions that omit new topics.
	hide int
	// lag is the number of further configuration requests that fail, as on a broker that does not know the topic yet.
	lag int
	// onCreate is called before a topic is created; CreateTopic returns its error.
	onCreate   func(topic string) error
	onDescribe func()
}

func empty() *cluster {
	return &cluster{
		counts: map[string]int32{}, created: map[string]*sarama.TopicDetail{}, retention: map[string]string{}, partition: 3,
	}
}

func (f *cluster) DescribeTopics(names []string) ([]*sarama.TopicMetadata, error) {
	var list []*sarama.TopicMetadata
	for _, name := range names {
		m := &sarama.TopicMetadata{Name: name, Err: sarama.ErrUnknownTopicOrPartition}
		if n, ok := f.counts[name]; ok && (f.created[name] == nil || f.hide <= 0) {
			m.Err = sarama.ErrNoError
			m.Partitions = make([]*sarama.PartitionMetadata, n)
		}
		list = append(list, m)
	}
	if len(f.created) > 0 {
		f.hide--
	}
	if f.onDescribe != nil {
		f.onDescribe()
	}
	return list, nil
}

func (f *cluster) CreateTopic(name string, detail *sarama.TopicDetail, _ bool) error {
	if f.onCreate != nil {
		if err := f.onCreate(name); err != nil {
			return err
		}
	}
	if _, ok := f.counts[name]; ok {
		return &sarama.TopicError{Err: sarama.ErrTopicAlreadyExists}
	}
	n := detail.NumPartitions
	if n == brokerDefault {
		n = f.partition
	}
	f.counts[name], f.created[name] = n, detail
	return nil
}

func (f *cluster) DescribeConfig(r sarama.ConfigResource) ([]sarama.ConfigEntry, error) {
	if _, ok := f.counts[r.Name]; !ok {
		return nil, sarama.ErrUnknownTopicOrPartition
	}
	if f.lag--; f.lag >= 0 {
		return nil, &sarama.DescribeConfigError{Err: sarama.ErrUnknownTopicOrPartition}
	}
	if d := f.created[r.Name]; d != nil && d.ConfigEntries["retention.ms"] != nil {
		f.retention[r.Name] = *d.ConfigEntries["retention.ms"]
	}
	if ms, ok := f.retention[r.Name]; ok {
		return []sarama.ConfigEntry{{Name: "retention.ms", Value: ms, Source: sarama.SourceTopic}}, nil
	}
	return []sarama.ConfigEntry{{Name: "retention.ms", Value: "604800000", Source: sarama.SourceDefault}}, nil
}

func harbor(t testing.TB) Catalog {
	t.Helper()
	c, err := For("harbor")
	require.NoError(t, err)
	return c
}

func TestEnsureCreatesTheMissingTopics(t *testing.T) {
	f, c := empty(), harbor(t)
	require.NoError(t, Ensure(t.Context(), f, c))
	want := []string{
		"message-input", "enriched-message-input", "think-request-response", "think-dlq", "tool-use", "tool-use-dlq",
		"tool-use-result", "tool-use-all-complete", "tool-use-latency", "message-output", "reply-to",
		"session-control", "streams-dlq", "streams-loop", "streams-table",
	}
	require.Len(t, f.created, len(want))
	for _, suffix := range want {
		d := f.created["harbor-"+suffix]
		require.NotNil(t, d, suffix)
		// The other topics get the broker's default; the loop topic is created later, with their number of partitions.
		if suffix == "streams-loop" {
			require.EqualValues(t, 3, d.NumPartitions)
		} else {
			require.EqualValues(t, -1, d.NumPartitions, suffix)
		}
		require.EqualValues(t, -1, d.ReplicationFactor)
	}
	require.Equal(t, "compact,delete", *f.created["harbor-reply-to"].ConfigEntries["cleanup.policy"])
	require.Equal(t, "86400000", *f.created["harbor-reply-to"].ConfigEntries["retention.ms"])
	require.Equal(t, "compact", *f.created["harbor-streams-table"].ConfigEntries["cleanup.policy"])
	require.Equal(t, "delete", *f.created["harbor-streams-dlq"].ConfigEntries["cleanup.policy"])
	require.Equal(t, "delete", *f.created["harbor-streams-loop"].ConfigEntries["cleanup.policy"])
	require.NotContains(t, f.created["harbor-streams-loop"].ConfigEntries, "retention.ms")

	require.NoError(t, Ensure(t.Context(), f, c), "a second call finds everything")
	require.Len(t, f.created, len(want))
}

func TestEnsureCreatesTheTopicsOfSpecsBesideACatalogOrAlone(t *testing.T) {
	own := WithSpecs(Spec{Name: "lines", CoPartitioned: true}, Spec{Name: "words", Cleanup: CleanupCompact})
	f := empty()
	require.NoError(t, Ensure(t.Context(), f, Catalog{}, own, WithPartitions(4)))
	require.Len(t, f.created, 2)
	require.EqualValues(t, 4, f.created["lines"].NumPartitions)
	require.NotContains(t, f.created["lines"].ConfigEntries, "cleanup.policy")
	require.Equal(t, "compact", *f.created["words"].ConfigEntries["cleanup.policy"])

	require.NoError(t, Ensure(t.Context(), f, harbor(t), own))
	require.EqualValues(t, 4, f.created["harbor-message-input"].NumPartitions, "as the co-partitioned topic that exists")
}

func TestEnsureUsesConfiguredPartitionsAndReplication(t *testing.T) {
	f := empty()
	c, err := For("harbor", WithRouteTTL(time.Hour))
	require.NoError(t, err)
	require.NoError(t, Ensure(t.Context(), f, c, WithPartitions(12), WithReplication(2)))
	for name, d := range f.created {
		require.EqualValues(t, 12, d.NumPartitions, name)
		require.EqualValues(t, 2, d.ReplicationFactor, name)
	}
	require.Equal(t, "3600000", *f.created["harbor-reply-to"].ConfigEntries["retention.ms"])
	require.ErrorContains(t, Ensure(t.Context(), f, c, WithPartitions(0)), "0 partitions")
	require.ErrorContains(t, Ensure(t.Context(), f, c, WithReplication(-2)), "replication -2")
}

func TestNewTopicsGetThePartitionCountOfExistingOnes(t *testing.T) {
	f := empty()
	f.counts["harbor-message-input"] = 7
	require.NoError(t, Ensure(t.Context(), f, harbor(t)))
	for name, d := range f.created {
		require.EqualValues(t, 7, d.NumPartitions, name)
	}
}

func TestEnsureFailsIfCoPartitionedTopicsDiffer(t *testing.T) {
	f := empty()
	f.counts["harbor-message-input"], f.counts["harbor-reply-to"] = 4, 1
	f.counts["harbor-tool-use"] = 4
	err := Ensure(t.Context(), f, harbor(t))
	require.ErrorIs(t, err, ErrCoPartitioning)
	require.ErrorContains(t, err, "1 partition: harbor-reply-to; 4 partitions: harbor-message-input, harbor-tool-use")
	require.Empty(t, f.created)
}

func TestTopicsWithOtherKeysMayDifferInPartitions(t *testing.T) {
	f := empty()
	f.counts["harbor-message-input"], f.counts["harbor-streams-dlq"], f.counts["harbor-tool-use-latency"] = 4, 1, 2
	require.NoError(t, Ensure(t.Context(), f, harbor(t)))
}

func TestEnsureFailsIfExistingTopicsHaveAnotherPartitionCount(t *testing.T) {
	f := empty()
	f.counts["harbor-message-input"] = 4
	err := Ensure(t.Context(), f, harbor(t), WithPartitions(8))
	require.ErrorIs(t, err, ErrPartitions)
	require.ErrorContains(t, err, "8 configured, but 4 partitions: harbor-message-input")
	require.ErrorContains(t, err, "To migrate")
	require.Empty(t, f.created)
	require.NoError(t, Ensure(t.Context(), f, harbor(t), WithPartitions(4)))
}

func TestDefaultPartitionsAreThoseOfAnAgentWithoutTopics(t *testing.T) {
	created := map[string]int32{}
	report := WithCreated(func(topic string, partitions int32) { created[topic] = partitions })
	f := empty()
	require.NoError(t, Ensure(t.Context(), f, harbor(t), WithDefaultPartitions(12), report))
	require.EqualValues(t, 12, f.counts["harbor-message-input"])
	require.EqualValues(t, 12, f.counts["harbor-streams-table"])
	require.Len(t, created, len(f.created))
	require.EqualValues(t, 12, created["harbor-message-input"])

	f = empty()
	f.counts["harbor-message-input"], f.counts["harbor-streams-dlq"] = 4, 7
	require.NoError(t, Ensure(t.Context(), f, harbor(t), WithDefaultPartitions(12)))
	require.EqualValues(t, 4, f.counts["harbor-streams-table"], "topics that exist decide")

	f = empty()
	require.NoError(t, Ensure(t.Context(), f, harbor(t), WithDefaultPartitions(12), WithPartitions(2)))
	require.EqualValues(t, 2, f.counts["harbor-streams-table"])
	require.Error(t, Ensure(t.Context(), empty(), harbor(t), WithDefaultPartitions(0)))
}

func TestEnsureAcceptsTopicsThatAnotherProcessCreates(t *testing.T) {
	f := empty()
	f.onCreate = func(topic string) error {
		f.counts[topic] = 3
		return nil
	}
	require.NoError(t, Ensure(t.Context(), f, harbor(t)))

	f = empty()
	f.onCreate = func(topic string) error {
		if topic == "harbor-reply-to" {
			f.counts[topic] = 1
		}
		return nil
	}
	require.ErrorIs(t, Ensure(t.Context(), f, harbor(t)), ErrCoPartitioning, "the other process has another configuration")
}

func TestErrorNamesTheTopicThatCannotBeCreated(t *testing.T) {
	f := empty()
	f.onCreate = func(string) error { return sarama.ErrPolicyViolation }
	err := Ensure(t.Context(), f, harbor(t))
	require.ErrorIs(t, err, sarama.ErrPolicyViolation)
	require.ErrorContains(t, err, "harbor-message-input")
}

func TestEnsureWaitsUntilTopicsAreVisible(t *testing.T) {
	f := empty()
	f.hide = 5
	require.NoError(t, Ensure(t.Context(), f, harbor(t), withPoll(time.Millisecond)))

	f = empty()
	f.hide = 1 << 30
	ctx, cancel := context.WithCancelCause(t.Context())
	f.onDescribe = func() {
		if f.hide < 1<<30-3 {
			cancel(errors.New("stopped"))
		}
	}
	require.ErrorContains(t, Ensure(ctx, f, harbor(t), withPoll(time.Millisecond)), "stopped")
	require.NotContains(t, f.created, "harbor-streams-loop")
}

func TestLoopTopicHasTheLongestRetentionOfTheInputs(t *testing.T) {
	for name, test := range map[string]struct {
		set  map[string]string
		want string
	}{
		"shorter than the broker's default": {set: map[string]string{"message-input": "1000"}, want: ""},
		"longer":                            {set: map[string]string{"message-input": "1209600000"}, want: "1209600000"},
		"unlimited": {
			set:  map[string]string{"message-input": "-1", "tool-use-result": "1209600000"},
			want: "-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := empty()
			for suffix, ms := range test.set {
				f.counts["harbor-"+suffix], f.retention["harbor-"+suffix] = 2, ms
			}
			require.NoError(t, Ensure(t.Context(), f, harbor(t)))
			got := f.created["harbor-streams-loop"].ConfigEntries["retention.ms"]
			if test.want == "" {
				require.Nil(t, got)
				return
			}
			require.Equal(t, test.want, *got)
		})
	}
}

func TestEnsureRetriesIfABrokerDoesNotKnowATopicYet(t *testing.T) {
	f := empty()
	f.lag = 5
	f.counts["harbor-message-input"], f.retention["harbor-message-input"] = 2, "-1"
	require.NoError(t, Ensure(t.Context(), f, harbor(t), withPoll(time.Millisecond)))
	require.Equal(t, "-1", *f.created["harbor-streams-loop"].ConfigEntries["retention.ms"])
}

func TestEnsureCreatesTopicsOnABroker(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(5),
		kfake.SeedTopics(4, "harbor-message-input"))
	require.NoError(t, err)
	defer broker.Close()
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	c := harbor(t)
	require.NoError(t, EnsureCluster(t.Context(), broker.ListenAddrs(), config, c))

	admin, err := sarama.NewClusterAdmin(broker.ListenAddrs(), config)
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close()) }()
	found, err := admin.ListTopics()
	require.NoError(t, err)
	for _, s := range c.Specs() {
		if !s.Created {
			require.NotContains(t, found, s.Name)
			continue
		}
		require.EqualValues(t, 4, found[s.Name].NumPartitions, s.Name)
	}
	require.Equal(t, "compact,delete", *found["harbor-reply-to"].ConfigEntries["cleanup.policy"])
	require.NotContains(t, found["harbor-streams-loop"].ConfigEntries, "retention.ms")

	other, err := For("lighthouse")
	require.NoError(t, err)
	require.NoError(t, EnsureCluster(t.Context(), broker.ListenAddrs(), config, other), "the broker's defaults")
	found, err = admin.ListTopics()
	require.NoError(t, err)
	for _, s := range other.Specs() {
		if s.Created {
			require.EqualValues(t, 5, found[s.Name].NumPartitions, s.Name)
		}
	}
	require.ErrorIs(t, EnsureCluster(t.Context(), broker.ListenAddrs(), config, c, WithPartitions(2)), ErrPartitions)
}

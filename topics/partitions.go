package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/IBM/sarama"
)

var (
	// ErrCoPartitioning is wrapped by the error of Ensure if co-partitioned topics have different numbers of partitions.
	ErrCoPartitioning = errors.New("topics: co-partitioned topics differ")
	// ErrPartitions is wrapped by the error of Ensure if existing topics do not have the configured number of partitions.
	ErrPartitions = errors.New("topics: partitions of topics in use cannot change")
	// ErrArchive is wrapped by the error of Ensure while a restore or a repartition of the agent is not finished, and by that of
	// groups that start meanwhile.
	ErrArchive = errors.New("topics: a restore or a repartition of the agent is not finished: run that command again, which continues; " +
		"delete no topic")
)

// partitionCounts has the number of partitions of each existing topic, by name.
type partitionCounts map[string]int32

// describe returns the topics of specs that exist.
func describe(ctx context.Context, admin Admin, specs []Spec) (partitionCounts, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("topics: describe: %w", context.Cause(ctx))
	}
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	metadata, err := admin.DescribeTopics(names)
	if err != nil {
		return nil, fmt.Errorf("topics: describe: %w", err)
	}
	existing := partitionCounts{}
	for _, m := range metadata {
		switch m.Err {
		case sarama.ErrNoError, sarama.ErrLeaderNotAvailable:
			// A topic that is being created may have no partitions yet. It counts as missing.
			if n := len(m.Partitions); n > 0 {
				existing[m.Name] = int32(n)
			}
		case sarama.ErrUnknownTopicOrPartition:
		default:
			return nil, fmt.Errorf("topics: describe %s: %w", m.Name, m.Err)
		}
	}
	return existing, nil
}

// firstMissing returns the name of the first topic that does not exist, or "" if all exist.
func (p partitionCounts) firstMissing(specs []Spec) string {
	for _, s := range specs {
		if _, ok := p[s.Name]; !ok {
			return s.Name
		}
	}
	return ""
}

// commonCount returns the number of partitions for new topics: that of the existing co-partitioned topics, otherwise the
// configured one, otherwise the default.
func commonCount(specs []Spec, existing partitionCounts, c Catalog, o ensureOptions) (int32, error) {
	configured := o.partitions
	byCount := map[int32][]string{}
	for _, s := range specs {
		if n, ok := existing[s.Name]; ok && s.CoPartitioned {
			byCount[n] = append(byCount[n], s.Name)
		}
	}
	if len(byCount) == 0 && configured == brokerDefault {
		return o.usual, nil
	}
	if len(byCount) == 0 {
		return configured, nil
	}
	if len(byCount) > 1 {
		return 0, fmt.Errorf("%w: %s; records of one session would be in different partitions: "+
			"stop all processes of the agent and run turntable repartition (processors/archive), which gives all the same number; "+
			"delete no topic",
			ErrCoPartitioning, listed(byCount))
	}
	var count int32
	for n := range byCount {
		count = n
	}
	if configured != brokerDefault && configured != count {
		return 0, fmt.Errorf("%w: %d configured, but %s; sessions would lose their state. To migrate: "+
			"stop all processes of the agent and run turntable repartition %d (processors/archive)",
			ErrPartitions, configured, listed(byCount), configured)
	}
	return count, nil
}

// listed returns the topics by their number of partitions, in ascending order: "1 partition: a, b; 4 partitions: c".
func listed(byCount map[int32][]string) string {
	ns := make([]int32, 0, len(byCount))
	for n := range byCount {
		ns = append(ns, n)
	}
	slices.Sort(ns)
	parts := make([]string, len(ns))
	for i, n := range ns {
		plural := "s"
		if n == 1 {
			plural = ""
		}
		parts[i] = fmt.Sprintf("%d partition%s: %s", n, plural, strings.Join(byCount[n], ", "))
	}
	return strings.Join(parts, "; ")
}

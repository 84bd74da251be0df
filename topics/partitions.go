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
	// ErrCoPartitioning is a cluster where topics that must have one number of partitions differ.
	ErrCoPartitioning = errors.New("topics: co-partitioned topics differ")
	// ErrPartitions is a configured number of partitions that topics in use do not have.
	ErrPartitions = errors.New("topics: partitions of topics in use cannot change")
)

// counts holds the partitions of the topics that exist, by name.
type counts map[string]int32

func lookUp(ctx context.Context, admin Admin, specs []Spec) (counts, error) {
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
	found := counts{}
	for _, m := range metadata {
		switch m.Err {
		case sarama.ErrNoError, sarama.ErrLeaderNotAvailable:
			// A topic that is being created may not show its partitions yet.
			if n := len(m.Partitions); n > 0 {
				found[m.Name] = int32(n)
			}
		case sarama.ErrUnknownTopicOrPartition:
		default:
			return nil, fmt.Errorf("topics: describe %s: %w", m.Name, m.Err)
		}
	}
	return found, nil
}

// without names the first topic that does not exist.
func (f counts) without(specs []Spec) string {
	for _, s := range specs {
		if _, ok := f[s.Name]; !ok {
			return s.Name
		}
	}
	return ""
}

// commonCount is the number of partitions for new topics: the one that the existing co-partitioned topics have, else
// the configured one.
func commonCount(specs []Spec, found counts, c Catalog, configured int32) (int32, error) {
	byCount := map[int32][]string{}
	for _, s := range specs {
		if n, ok := found[s.Name]; ok && s.CoPartitioned {
			byCount[n] = append(byCount[n], s.Name)
		}
	}
	if len(byCount) == 0 {
		return configured, nil
	}
	if len(byCount) > 1 {
		return 0, fmt.Errorf("%w: %s; a session's records would meet different tables: "+
			"delete the topics that have the wrong count while the pipeline is stopped, and start again",
			ErrCoPartitioning, listed(byCount))
	}
	var existing int32
	for n := range byCount {
		existing = n
	}
	if configured != brokers && configured != existing {
		return 0, fmt.Errorf("%w: %d configured, but %s; sessions would leave their state behind. To migrate: "+
			"let the open turns end, stop group %s, delete these topics, and start it with the new count "+
			"(the histories are lost); or run a second pipeline under another agent name and move the writers there",
			ErrPartitions, configured, listed(byCount), c.Group())
	}
	return existing, nil
}

// listed is the topics by count, smallest first: "1 partition: a, b; 4 partitions: c".
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

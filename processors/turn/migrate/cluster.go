package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// migration is one run of Import or Export.
type migration struct {
	brokers []string
	catalog topics.Catalog
	conf    *sarama.Config
	logger  *zap.Logger
	reached func(step string) // called between the steps of an import, for tests

	client sarama.Client
	admin  sarama.ClusterAdmin
	reader *processors.Follower
}

func (m *migration) source() string { return m.catalog.ThinkRequestResponse.Name() }

// connect runs do with connections to the brokers.
func (m *migration) connect(ctx context.Context, opts []processors.Option, do func(context.Context) error) (err error) {
	if m.client, err = sarama.NewClient(m.brokers, m.conf); err != nil {
		return fmt.Errorf("migrate: connect: %w", err)
	}
	defer func() {
		if failed := m.client.Close(); err == nil && failed != nil && !errors.Is(failed, sarama.ErrClosedClient) {
			err = fmt.Errorf("migrate: disconnect: %w", failed)
		}
	}()
	if m.admin, err = sarama.NewClusterAdminFromClient(m.client); err != nil { // closing it would close the client
		return fmt.Errorf("migrate: connect: %w", err)
	}
	m.reader, err = processors.NewFollower(m.brokers, []string{m.source()}, func(processors.Inbound) {}, opts...)
	if err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = m.reader.Run(reading) // nil
	}()
	defer func() {
		stop()
		<-ended
	}()
	select {
	case <-m.reader.Ready():
	case <-ctx.Done():
		return ctx.Err()
	}
	return do(ctx)
}

// partitions returns the partitions of the source, and checks that another topic has as many.
func (m *migration) partitions(other string) ([]int32, error) {
	from, err := m.client.Partitions(m.source())
	if err != nil {
		return nil, fmt.Errorf("migrate: partitions of %s: %w", m.source(), err)
	}
	to, err := m.client.Partitions(other)
	if err != nil {
		return nil, fmt.Errorf("migrate: partitions of %s: %w", other, err)
	}
	if len(from) != len(to) {
		return nil, fmt.Errorf("%w: %s has %d, %s has %d; nothing is written", ErrPartitions, m.source(), len(from), other, len(to))
	}
	slices.Sort(from)
	return from, nil
}

// idle returns ErrActive if the group of the turn has members.
func (m *migration) idle() error {
	err := m.withoutMembers(string(m.catalog.Group()))
	if errors.Is(err, ErrActive) {
		return fmt.Errorf("%w; stop FlightDeck's processing application, and all instances of this one, and start again", err)
	}
	return err
}

// withoutMembers returns ErrActive if a group has members.
func (m *migration) withoutMembers(group string) error {
	found, err := m.admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		return fmt.Errorf("migrate: members of group %s: %w", group, err)
	}
	for _, g := range found {
		switch {
		case g.Err != sarama.ErrNoError && g.Err != sarama.ErrGroupIDNotFound:
			return fmt.Errorf("migrate: members of group %s: %w", group, g.Err)
		case len(g.Members) > 0:
			return fmt.Errorf("%w: %s has %d", ErrActive, group, len(g.Members))
		}
	}
	return nil
}

// committed returns the offsets of a group in the source.
func (m *migration) committed(group string) (map[int32]*sarama.OffsetFetchResponseBlock, error) {
	return m.committedIn(group, m.source())
}

// committedIn returns the offsets of a group in a topic, empty if it has none.
func (m *migration) committedIn(group, topic string) (map[int32]*sarama.OffsetFetchResponseBlock, error) {
	answer, err := m.admin.ListConsumerGroupOffsets(group, nil)
	switch {
	case errors.Is(err, sarama.ErrGroupIDNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("migrate: offsets of group %s: %w", group, err)
	case answer.Err != sarama.ErrNoError:
		return nil, fmt.Errorf("migrate: offsets of group %s: %w", group, answer.Err)
	}
	return answer.Blocks[topic], nil
}

// progress returns the recorded progress.
func (m *migration) progress() (progress, error) {
	group := m.catalog.HistoryImportGroup()
	blocks, err := m.committed(group)
	if err != nil {
		return nil, err
	}
	return readProgress(group, m.source(), blocks)
}

// ends returns where the group of the turn continues in each partition.
func (m *migration) ends(partitions []int32) (map[int32]int64, error) {
	group := string(m.catalog.Group())
	blocks, err := m.committed(group)
	if err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	for _, p := range partitions {
		oldest, err := m.client.GetOffset(m.source(), p, sarama.OffsetOldest)
		if err != nil {
			return nil, fmt.Errorf("migrate: begin of %s/%d: %w", m.source(), p, err)
		}
		newest, err := m.client.GetOffset(m.source(), p, sarama.OffsetNewest)
		if err != nil {
			return nil, fmt.Errorf("migrate: end of %s/%d: %w", m.source(), p, err)
		}
		block := blocks[p]
		switch {
		case block != nil && block.Err != sarama.ErrNoError:
			return nil, fmt.Errorf("migrate: offset of group %s in %s/%d: %w", group, m.source(), p, block.Err)
		case block != nil && block.Offset > newest:
			return nil, fmt.Errorf("%w: group %s has committed offset %d in %s/%d, which ends at %d", ErrOffsets, group,
				block.Offset, m.source(), p, newest)
		case block != nil && block.Offset >= 0:
			ends[p] = block.Offset
		case oldest == newest:
			ends[p] = newest
		default:
			return nil, fmt.Errorf("%w: group %s has committed none in %s/%d, which has records: it is unknown which of them "+
				"FlightDeck has processed; if it has never run, start without the import", ErrOffsets, group, m.source(), p)
		}
	}
	return ends, nil
}

package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/processors"
)

// offsets are offsets to commit, by topic and partition.
type offsets map[string]map[int32]sarama.OffsetAndMetadata

func (o offsets) set(topic string, partition int32, at int64) {
	if o[topic] == nil {
		o[topic] = map[int32]sarama.OffsetAndMetadata{}
	}
	o[topic][partition] = sarama.OffsetAndMetadata{Offset: at, LeaderEpoch: -1}
}

// passBy moves the group past the records that FlightDeck's application would read when it returns, and must not:
//
//   - tool-use-all-complete and session-end. The application reads them in the same group, the turn only writes them. It
//     would send the model a tool message for every step since the import, and delete the history of every session that ended.
//   - what its repartition topics still have if the brokers have forgotten its offsets there, which they do seven days after
//     it stopped: the messages that it processed last. Offsets that exist are kept.
//
// It leaves memoir-context where the application stopped: the application must read the memories that were written since.
// The turn reads all other topics of the application, so the group's offsets are the right ones.
func (m *migration) passBy() error {
	group := string(m.catalog.Group())
	names, err := m.client.Topics()
	if err != nil {
		return fmt.Errorf("migrate: topics: %w", err)
	}
	moved := offsets{}
	for _, name := range names {
		written := name == m.catalog.ToolUseAllComplete.Name() || name == m.catalog.SessionEnd.Name()
		if !written && (!strings.HasPrefix(name, group+"-") || !strings.HasSuffix(name, "-repartition")) {
			continue
		}
		partitions, err := m.client.Partitions(name)
		if err != nil {
			return fmt.Errorf("migrate: partitions of %s: %w", name, err)
		}
		committed, err := m.committedIn(group, name)
		if err != nil {
			return err
		}
		for _, p := range partitions {
			if b := committed[p]; !written && b != nil && b.Offset >= 0 {
				continue
			}
			end, err := m.client.GetOffset(name, p, sarama.OffsetNewest)
			if err != nil {
				return fmt.Errorf("migrate: end of %s/%d: %w", name, p, err)
			}
			moved.set(name, p, end)
		}
	}
	return m.commitOffsets(group, moved)
}

// commitOffsets commits offsets for a group without members. It returns ErrActive if the group has some.
func (m *migration) commitOffsets(group string, o offsets) error {
	if len(o) == 0 {
		return nil
	}
	answer, err := m.admin.AlterConsumerGroupOffsets(group, o, nil)
	if err != nil {
		return fmt.Errorf("migrate: commit offsets of group %s: %w", group, err)
	}
	for topic, partitions := range answer.Errors {
		for partition, code := range partitions {
			switch code {
			case sarama.ErrNoError:
			case sarama.ErrUnknownMemberId, sarama.ErrIllegalGeneration, sarama.ErrRebalanceInProgress:
				return fmt.Errorf("%w: %s; its offsets cannot be moved", ErrActive, group)
			default:
				return fmt.Errorf("migrate: commit the offset of group %s in %s/%d: %w", group, topic, partition, code)
			}
		}
	}
	return nil
}

// routesStore is the changelog topic of the reply routes of FlightDeck's application.
func (m *migration) routesStore() string {
	return string(m.catalog.Group()) + "-reply-to-store-changelog"
}

// forgetRoutes writes tombstones to the store of FlightDeck's reply routes for those that were removed and that FlightDeck will
// not read itself, because the group's offsets are past the tombstones of reply-to. FlightDeck would send the next answer
// of such a session to the service of an old route. It does not write routes: those since the import are used up.
func (m *migration) forgetRoutes(ctx context.Context, w *writer, p progress) error {
	names, err := m.client.Topics()
	if err != nil {
		return fmt.Errorf("migrate: topics: %w", err)
	}
	topic, store := m.catalog.ReplyTo.Name(), m.routesStore()
	if !slices.Contains(names, topic) || !slices.Contains(names, store) {
		return nil
	}
	partitions, err := m.partitions(store)
	if err != nil {
		return err
	}
	group := string(m.catalog.Group())
	committed, err := m.committedIn(group, topic)
	if err != nil {
		return err
	}
	for _, partition := range partitions {
		block := committed[partition]
		if block == nil || block.Offset <= 0 {
			continue // FlightDeck reads all of it
		}
		removed := map[string]bool{}
		_, err := m.reader.ReplayFrom(ctx, topic, partition, 0, func(_ context.Context, r processors.Inbound) bool {
			switch {
			case r.Offset >= block.Offset:
				return false
			case r.Value == nil && len(r.Key) > 0:
				removed[string(r.Key)] = true
			default:
				delete(removed, string(r.Key))
			}
			return true
		})
		if err != nil {
			return fmt.Errorf("migrate: read %s/%d: %w", topic, partition, err)
		}
		for key := range removed {
			w.add(store, key, nil, time.Time{})
			if !w.full() {
				continue
			}
			if err := w.commit(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

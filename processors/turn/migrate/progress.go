package migrate

import (
	"fmt"

	"github.com/IBM/sarama"
	"github.com/go-json-experiment/json"
)

// phase is how far the migration of an agent is.
type phase string

const (
	importing phase = "importing"
	completed phase = "imported"
	exported  phase = "exported"
)

// mark is the metadata of an offset of the import's group. The offset is where the import is in its second pass: rows of
// sessions whose last record is before it are written.
type mark struct {
	Phase phase `json:"phase"`
	// End is the end of the import: the offset that the group of the turn had committed when it began.
	End int64 `json:"end"`
}

// position is the progress in a partition.
type position struct {
	mark
	next int64
}

// progress is the progress by partition; empty before the import has begun.
type progress map[int32]position

// is reports whether the migration is in a phase.
func (p progress) is(in phase) bool { return len(p) > 0 && p[0].Phase == in }

// in returns the progress with another phase.
func (p progress) in(next phase) progress {
	all := progress{}
	for partition, at := range p {
		at.Phase = next
		all[partition] = at
	}
	return all
}

// ends returns the ends of the import by partition.
func (p progress) ends() map[int32]int64 {
	all := map[int32]int64{}
	for partition, at := range p {
		all[partition] = at.End
	}
	return all
}

// offsets returns what is committed.
func (p progress) offsets(topic string) (map[string][]*sarama.PartitionOffsetMetadata, error) {
	if len(p) == 0 {
		return nil, nil
	}
	var all []*sarama.PartitionOffsetMetadata
	for partition, at := range p {
		raw, err := json.Marshal(at.mark)
		if err != nil {
			return nil, fmt.Errorf("migrate: encode progress: %w", err)
		}
		metadata := string(raw)
		all = append(all, &sarama.PartitionOffsetMetadata{
			Partition: partition, Offset: at.next, LeaderEpoch: -1, Metadata: &metadata,
		})
	}
	return map[string][]*sarama.PartitionOffsetMetadata{topic: all}, nil
}

// readProgress reads the progress from the offsets of the import's group.
func readProgress(group, topic string, blocks map[int32]*sarama.OffsetFetchResponseBlock) (progress, error) {
	p := progress{}
	for partition, block := range blocks {
		switch {
		case block.Err != sarama.ErrNoError:
			return nil, fmt.Errorf("migrate: offset of group %s in %s/%d: %w", group, topic, partition, block.Err)
		case block.Offset < 0:
			continue
		}
		at := position{next: block.Offset}
		if err := json.Unmarshal([]byte(block.Metadata), &at.mark); err != nil {
			return nil, fmt.Errorf("migrate: group %s has a foreign offset in %s/%d; the import cannot continue: %w",
				group, topic, partition, err)
		}
		p[partition] = at
	}
	return p, nil
}

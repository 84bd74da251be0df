package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/topics"
)

// startInputs commits where inputs without a committed offset start:
//
//   - An input that the metadata of the group's other offsets lists starts at its oldest offset. The group has read it
//     before; the topic was deleted and recreated, or an operator deleted its offsets.
//   - Any other input of a group that has committed offsets starts at its newest offset: a group that is taken over from
//     an older application must not read records from before that. The same holds for an input that a new version of the
//     program adds.
//   - All inputs of a group without committed offsets start at their oldest offset, or where the predecessor stopped. These
//     offsets are committed before anything is read: from then on an input without an offset is one that the group never
//     had, however soon the first run ends.
//
// The coordinator accepts these commits only while the group has no other members. Otherwise an input without an offset
// starts at its oldest.
func (r *run) startInputs() error {
	inst := r.instance
	admin, err := sarama.NewClusterAdminFromClient(r.client)
	if err != nil {
		return err
	}
	committed, err := offsetsOf(admin, inst.group)
	if err != nil {
		return err
	}
	h, err := r.historyOf(committed)
	if err != nil {
		return err
	}
	before := &sarama.OffsetFetchResponse{}
	if len(h.read) == 0 {
		if before, err = offsetsOf(admin, inst.cfg.Predecessor); err != nil {
			return err
		}
	}
	inst.relist = h.relist
	starts := map[cut.Partition]int64{}
	for _, topic := range inst.inputTopics() {
		if err := r.startInput(topic, h, before, starts); err != nil {
			return err
		}
	}
	return r.commitStarts(starts)
}

// history is what a group's committed offsets show.
type history struct {
	read   map[string]bool        // topics with an offset that counts
	stale  map[cut.Partition]bool // offsets of a topic that has been deleted since
	listed []cut.Listed
	relist bool // the metadata of an offset is out of date
}

// historyOf reads a group's committed offsets. Its error wraps ErrPartitions if the rows are spread over another
// number of partitions than the inputs have now, or topics.ErrArchive while processors/archive writes the topics.
func (r *run) historyOf(committed *sarama.OffsetFetchResponse) (history, error) {
	h := history{read: map[string]bool{}, stale: map[cut.Partition]bool{}}
	for topic, blocks := range committed.Blocks {
		for p, b := range blocks {
			l, ours := cut.ParseListed(b.Metadata)
			if ours {
				h.listed = append(h.listed, l)
			}
			if b.Metadata == cut.Moving {
				return h, fmt.Errorf("%w (group %s, topic %s)", topics.ErrArchive, r.instance.group, topic)
			}
			input, known := r.inputs[topic]
			switch {
			case topic == string(goka.GroupTable(r.instance.cfg.Graph.Group())):
				// A cut of timers alone commits it, as a stand-in.
			case b.Offset < 0:
			case known && ours && l.OfAnother(input.ID):
				h.stale[cut.Partition{Topic: topic, ID: p}] = true
			case known && r.rowsBy(topic) && l.Partitions() > 0 && l.Partitions() != input.Partitions:
				return h, partedFrom(l.Partitions(), topic, input.Partitions)
			default:
				h.read[topic] = true
				h.relist = h.relist || known && !r.listing.Current(topic, b.Metadata)
			}
		}
	}
	return h, nil
}

// rowsBy reports whether the rows of the group are divided among partitions like the records of an input.
func (r *run) rowsBy(topic string) bool {
	return r.instance.cfg.Graph.GroupTable() != nil && !r.instance.repartitions(topic)
}

// lists reports whether the group has read a topic before.
func (h history) lists(topic string) bool {
	for _, l := range h.listed {
		if l.Has(topic) {
			return true
		}
	}
	return false
}

// startInput adds the offsets at which an input starts to starts.
func (r *run) startInput(topic string, h history, before *sarama.OffsetFetchResponse, starts map[cut.Partition]int64) error {
	inst := r.instance
	at := sarama.OffsetOldest
	again := h.lists(topic)
	if !again && len(h.read) > 0 {
		at = sarama.OffsetNewest
	}
	partitions, err := r.topics.Partitions(topic)
	if err != nil {
		return err
	}
	begun := 0
	for _, p := range partitions {
		here := cut.Partition{Topic: topic, ID: p}
		if h.read[topic] && !h.stale[here] {
			continue // it has an offset, or its topic has: then Sarama starts it at the oldest
		}
		offset, err := r.client.GetOffset(topic, p, at)
		if err != nil {
			return err
		}
		end, err := r.client.GetOffset(topic, p, sarama.OffsetNewest)
		if err != nil {
			return err
		}
		if b := before.GetBlock(topic, p); !again && b != nil && b.Offset > offset && b.Offset <= end {
			offset = b.Offset
			inst.cfg.Logger.Info("an input starts where the predecessor stopped", zap.String("topic", topic),
				zap.Int32("partition", p), zap.Int64("offset", offset), zap.String("predecessor", inst.cfg.Predecessor))
		}
		starts[here] = offset
		begun++
	}
	switch {
	case begun == 0:
	case again:
		inst.cfg.Logger.Warn("an input that the group has read before has no offsets and starts at its oldest: it was deleted "+
			"and recreated, or its offsets were deleted", zap.String("topic", topic))
	case at == sarama.OffsetNewest:
		inst.cfg.Logger.Info("an input that the group never had starts at its newest offset", zap.String("topic", topic))
	}
	return nil
}

// commitStarts commits offsets for a group without members. If the group has members, it logs a warning and commits
// nothing.
func (r *run) commitStarts(starts map[cut.Partition]int64) error {
	inst := r.instance
	if len(starts) == 0 {
		return nil
	}
	plain := cut.NewPlain(r.client, r.listing)
	none := cut.Member{Group: inst.group, Generation: sarama.GroupGenerationUndefined}
	err := plain.Close(context.Background(), starts, none)
	if hasMembers(err) && inst.last.ID != "" { // perhaps only this instance, before its restart
		err = plain.Close(context.Background(), starts, inst.last)
	}
	if hasMembers(err) {
		inst.cfg.Logger.Warn("the group has members: inputs without an offset start at their oldest", zap.Error(err))
		return nil
	}
	return err
}

// hasMembers reports whether the coordinator rejected a commit because of the group's members.
func hasMembers(err error) bool {
	return errors.Is(err, sarama.ErrUnknownMemberId) || errors.Is(err, sarama.ErrIllegalGeneration) ||
		errors.Is(err, sarama.ErrRebalanceInProgress)
}

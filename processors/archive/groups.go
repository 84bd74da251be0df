package archive

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
)

// guarded returns the groups that must not start while their topics are written.
func (p *plan) guarded() []string {
	groups := slices.Concat(slices.Collect(maps.Keys(p.Groups)), p.tables())
	slices.Sort(groups)
	return slices.Compact(groups)
}

// tables returns the groups that have a table.
func (p *plan) tables() (groups []string) {
	for _, t := range p.Topics {
		if group, is := cutTable(t.Name); is {
			groups = append(groups, group)
		}
	}
	return groups
}

// cutTable returns the group of a table.
func cutTable(topic string) (group string, is bool) {
	ending := string(goka.GroupTable(""))
	if len(topic) <= len(ending) || topic[len(topic)-len(ending):] != ending {
		return "", false
	}
	return topic[:len(topic)-len(ending)], true
}

// guard commits an offset of the journal's topic for each group. An instance reads the offsets of its group when it starts, and
// refuses to run if it finds this one. topics.Ensure refuses because of the topic itself.
func (j *journal) guard(ctx context.Context, p *plan) error {
	for _, group := range p.guarded() {
		if err := j.at("guard"); err != nil {
			return err
		}
		if err := j.commit(ctx, group, map[string]positions{j.name: {0: {0, cut.Moving}}}); err != nil {
			return err
		}
	}
	states, err := j.states(ctx)
	if err != nil {
		return err
	}
	return j.stopped(states, p)
}

// unguard lets the groups start.
func (j *journal) unguard(ctx context.Context, p *plan) error {
	for _, group := range p.guarded() {
		if err := j.fenced(ctx, "unguard", func() error {
			return j.retry(ctx, "delete the offset of the journal of group", group, func() error {
				answers, err := j.admin.DeleteOffsets(ctx, group, kadm.TopicsSet{j.name: {0: struct{}{}}})
				if errors.Is(err, kerr.GroupIDNotFound) {
					return nil
				}
				if err == nil {
					err = answers.Error()
				}
				return err
			})
		}); err != nil {
			return err
		}
	}
	return nil
}

// commit commits offsets for a group without members and reads them back: brokers delete the offsets of a deleted topic some time
// later, also those of a topic of the same name that was created since.
func (j *journal) commit(ctx context.Context, group string, all map[string]positions) error {
	offsets := kadm.Offsets{}
	for topic, partitions := range all {
		for n, at := range partitions {
			offsets.Add(kadm.Offset{Topic: topic, Partition: n, At: at.At, LeaderEpoch: -1, Metadata: at.Metadata})
		}
	}
	return j.retry(ctx, "commit offsets of group", group, func() error {
		err := j.admin.CommitAllOffsets(ctx, group, offsets)
		switch {
		case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.RebalanceInProgress):
			return fmt.Errorf("%w: the group %s has members: stop them and run the same command again, which continues (%w)", ErrRunning, group,
				errors.New(err.Error())) // as a cause it would be retried
		case err != nil:
			return err
		}
		now, err := j.committed(ctx, group)
		if err != nil {
			return err
		}
		for topic, partitions := range all {
			if !maps.Equal(now[topic], partitions) {
				return kerr.UnstableOffsetCommit // and commit again
			}
		}
		return nil
	})
}

// commitShare sets where a share group starts.
func (j *journal) commitShare(ctx context.Context, group string, all map[string]positions) error {
	offsets := kadm.Offsets{}
	for topic, partitions := range all {
		for n, at := range partitions {
			offsets.Add(kadm.Offset{Topic: topic, Partition: n, At: at.At, LeaderEpoch: -1})
		}
	}
	return j.retry(ctx, "set the offsets of share group", group, func() error {
		answers, err := j.admin.AlterShareGroupOffsets(ctx, group, offsets)
		if err == nil {
			err = answers.Error()
		}
		if errors.Is(err, kerr.NonEmptyGroup) {
			return fmt.Errorf("%w: the share group %s has members: stop them and run the same command again, which continues", ErrRunning, group)
		}
		return err
	})
}

// settle sets the offsets of all groups in the topics that were written. at has them by topic.
func (j *journal) settle(ctx context.Context, p *plan, at map[string]map[reader]positions) error {
	states, err := j.states(ctx)
	if err != nil {
		return err
	}
	if err := j.stopped(states, p); err != nil {
		return err
	}
	byGroup := map[reader]map[string]positions{}
	for name, readers := range at {
		listed, err := j.topicsOf(ctx, name)
		if err != nil {
			return err
		}
		id := listed[name].ID
		for group, all := range readers {
			for n, o := range all {
				if group.group == j.Catalog.HistoryImportGroup() {
					break // it says that the histories were imported
				}
				o.Metadata = cut.Relisted(o.Metadata, hex.EncodeToString(id[:]), int(p.To))
				all[n] = o
			}
			if byGroup[group] == nil {
				byGroup[group] = map[string]positions{}
			}
			byGroup[group][name] = all
		}
	}
	for group, all := range byGroup {
		commit := j.commit
		if group.share {
			commit = j.commitShare
		}
		if err := j.fenced(ctx, "settle", func() error { return commit(ctx, group.group, all) }); err != nil {
			return err
		}
		j.log.Info("offsets set", zap.String("group", group.group), zap.Int("topics", len(all)))
	}
	return nil
}

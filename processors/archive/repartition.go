package archive

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
)

// Repartition moves a stopped agent to n partitions: the topics that have the partitions of its sessions, with their tables. Rows and
// records go to the partitions of their keys, those of a key stay in their order, and each group continues at the first record that it
// has not read. Topics of which nothing depends on the partition, such as dead letters, stay as they are.
//
// The records are copied to topics beside ("{topic}-archive") and read back first. Only then are the topics deleted, created with n
// partitions and filled from the copies, which are deleted last. After an interruption, the same call continues at any point; until
// it has ended no group of the agent starts. Before the first topic is deleted, Undo takes it back.
//
// It returns ErrRunning, ErrChanged, ErrForeign or ErrUnfinished if it must not run or continue.
func Repartition(ctx context.Context, cfg Config, n int32) (Result, error) {
	if n < 1 {
		return Result{}, fmt.Errorf("%w: %d partitions, want at least 1", ErrConfig, n)
	}
	j, err := openJournal(ctx, cfg, true)
	if err != nil {
		return Result{}, err
	}
	defer j.client.Close()
	return j.repartition(ctx, n)
}

func (j *journal) repartition(ctx context.Context, n int32) (result Result, err error) {
	p, known, err := j.plan()
	if err != nil {
		return result, err
	}
	if known && p.To != n {
		return result, unfinished(p)
	}
	phase, err := j.phase()
	if err != nil {
		return result, err
	}
	if phase == copies {
		if p, err = j.agreed(ctx, p, known, n); err != nil || p == nil {
			return result, err
		}
		if err := j.guard(ctx, p); err != nil {
			return result, err
		}
		if err := j.setAside(ctx, p, &result); err != nil {
			return result, err
		}
		phase = moving
		if err := j.enter(ctx, phase); err != nil {
			return result, err
		}
	}
	if phase == moving {
		if err := j.move(ctx, p, &result); err != nil {
			return result, err
		}
	}
	return result, j.close(ctx, p)
}

// agreed returns the plan: that of an earlier call if the agent has not changed since, otherwise a new one. It is nil if there is
// nothing to do.
func (j *journal) agreed(ctx context.Context, p *plan, known bool, n int32) (*plan, error) {
	now, err := j.snapshot(ctx)
	if err != nil {
		if !known {
			err = errors.Join(err, j.end(ctx))
		}
		return nil, err
	}
	if known {
		what := p.differs(now)
		if what == "" {
			return p, nil
		}
		if err := j.discard(ctx, p); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %s: the copies are discarded, and nothing else was deleted; stop all processes of the agent and run the "+
			"same command again, which begins anew", ErrChanged, what)
	}
	now.To = n
	moves := false
	for _, t := range now.Topics {
		moves = moves || t.Moved && len(t.Parts) != int(n)
	}
	if !moves {
		j.log.Info("the topics have this number of partitions already", zap.Int32("partitions", n))
		return nil, j.end(ctx)
	}
	return now, j.write(ctx, keyPlan, func() any { return now })
}

// moved returns the two copies of a topic: to the topic beside, and from there to its place.
func (p *plan) moved(t topic) (aside, back copying) {
	aside = copying{
		topic: t, from: t.Name, spans: t.Parts, readers: p.readers(t.Name), tables: p.tables(), to: copyName(t.Name),
		parts: p.To, rehash: true,
	}
	return aside, copying{topic: t, gone: t.ID, from: copyName(t.Name), to: t.Name, parts: p.To}
}

// setAside copies the topics and checks that the copies have all that the agent has.
func (j *journal) setAside(ctx context.Context, p *plan, result *Result) error {
	for _, t := range p.Topics {
		if !t.Moved {
			continue
		}
		aside, _ := p.moved(t)
		made, err := j.copy(ctx, j.cluster, aside, result)
		if err != nil {
			return err
		}
		if err := j.check(ctx, &aside, &made); err != nil {
			return err
		}
	}
	if result.Repeated > 0 {
		j.log.Warn("groups with different backlogs will read some records again; undo is still possible", zap.Int64("records", result.Repeated))
	}
	now, err := j.snapshot(ctx)
	if err != nil {
		return err
	}
	if what := p.differs(now); what != "" {
		return fmt.Errorf("%w: %s; nothing was deleted: stop all processes of the agent and run the same command again, which discards the "+
			"copies", ErrChanged, what)
	}
	return nil
}

// move deletes each topic, creates it with its new partitions and fills it from its copy.
func (j *journal) move(ctx context.Context, p *plan, result *Result) error {
	at := map[string]map[reader]positions{}
	for _, t := range p.Topics {
		if !t.Moved {
			continue
		}
		aside, back := p.moved(t)
		made, exists, err := j.last(ctx, &aside, result)
		if err != nil {
			return err
		}
		if exists {
			if err := j.fenced(ctx, "delete "+t.Name, func() error { return j.deleteTopic(ctx, t.Name, t.ID) }); err != nil {
				return err
			}
		}
		back.readers, back.spans = aside.placed(made), made.spans()
		if at[t.Name], err = j.fill(ctx, j.cluster, back, result); err != nil {
			return err
		}
	}
	return j.settle(ctx, p, at)
}

// last returns the copy of a topic, and whether the topic still exists. Programs that read in no group, such as doors, may have written
// to it since it was copied: what they have written is copied too. A copy that another program has deleted is made again.
func (j *journal) last(ctx context.Context, aside *copying, result *Result) (made progress, exists bool, err error) {
	for {
		listed, err := j.topicsOf(ctx, aside.from)
		if err != nil {
			return made, false, err
		}
		if listed[aside.from].ID != aside.topic.ID {
			var back progress
			_, err1 := j.get(keyCopy+aside.to, &made)
			_, err2 := j.get(keyCopy+aside.from, &back)
			if err = errors.Join(err1, err2); err == nil && !back.Done {
				err = j.intact(ctx, aside, made)
			}
			return made, false, err
		}
		if made, err = j.copy(ctx, j.cluster, *aside, result); err != nil {
			return made, true, err
		}
		if err := j.check(ctx, aside, &made); err != nil {
			return made, true, err
		}
		now := []topic{{Name: aside.from, Parts: make([]span, len(made.Spans))}}
		if err := j.ends(ctx, now); err != nil {
			return made, true, err
		}
		rest := false
		for n, was := range made.Spans {
			is := &now[0].Parts[n]
			is.Start = was.End
			rest = rest || is.End > is.Start
		}
		if !rest {
			return made, true, j.intact(ctx, aside, made)
		}
		j.log.Warn("a program writes to a topic that is moved: its records are copied too; stop it", zap.String("topic", aside.from))
		made.Spans, made.Segment, made.Next, made.Done, made.Checked = now[0].Parts, 0, 0, false, false
		if err := j.write(ctx, keyCopy+aside.to, func() any { return made }); err != nil {
			return made, true, err
		}
	}
}

// dropCopies deletes the copies.
func (j *journal) dropCopies(ctx context.Context, p *plan) error {
	for _, t := range p.Topics {
		var made progress
		if known, err := j.get(keyCopy+copyName(t.Name), &made); err != nil || !known {
			if err != nil {
				return err
			}
			continue
		}
		if err := j.fenced(ctx, "drop", func() error { return j.deleteTopic(ctx, copyName(t.Name), made.ID) }); err != nil {
			return err
		}
	}
	return nil
}

// Undo takes back a restore or a repartition that has not ended: it deletes what the call has written, and the agent can start. A
// repartition that has begun to delete topics can only be finished: Undo returns ErrUnfinished.
func Undo(ctx context.Context, cfg Config) error {
	j, err := openJournal(ctx, cfg, false)
	if err != nil {
		return err
	}
	defer j.client.Close()
	p, known, err := j.plan()
	if err != nil {
		return err
	}
	phase, err := j.phase()
	switch {
	case err != nil:
		return err
	case phase != copies:
		return unfinished(p)
	case known:
		return j.discard(ctx, p)
	case j.id != topicID{}:
		return j.end(ctx)
	}
	return nil
}

// discard deletes what was written. A process that takes over does so too, because this one may have been paused before a deletion.
func (j *journal) discard(ctx context.Context, p *plan) error {
	if err := j.needless(ctx, p); err != nil {
		return err
	}
	if err := j.enter(ctx, discarding); err != nil {
		return err
	}
	for _, t := range p.Topics {
		for _, name := range []string{t.Name, copyName(t.Name)} {
			var made progress
			if known, err := j.get(keyCopy+name, &made); err != nil {
				return err
			} else if !known {
				continue
			}
			if err := j.fenced(ctx, "discard "+name, func() error { return j.deleteTopic(ctx, name, made.ID) }); err != nil {
				return err
			}
		}
	}
	if err := j.unguard(ctx, p); err != nil {
		return err
	}
	return j.end(ctx)
}

// needless returns an error if a copy has the only records of a topic: another program has deleted the topic.
func (j *journal) needless(ctx context.Context, p *plan) error {
	for _, t := range p.Topics {
		var made progress
		if known, err := j.get(keyCopy+copyName(t.Name), &made); err != nil || !known {
			if err != nil {
				return err
			}
			continue
		}
		listed, err := j.topicsOf(ctx, t.Name, copyName(t.Name))
		if err != nil {
			return err
		}
		if copied := copyName(t.Name); listed[t.Name].ID != t.ID && listed[copied].ID == made.ID {
			return fmt.Errorf("%w: another program has deleted the topic %s, of which %s has a copy, and nothing was discarded: save its "+
				"records, delete %s alone, and run the same command again", ErrForeign, t.Name, copied, copied)
		}
	}
	return nil
}

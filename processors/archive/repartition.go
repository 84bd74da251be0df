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
		j.log.Warn("the agent has changed since the copies were made: they are made again", zap.String("what", what))
		return nil, errors.Join(fmt.Errorf("%w: %s: the copies are discarded, and nothing else was deleted; stop all processes of the agent and "+
			"run the same command again", ErrChanged, what), j.discard(ctx, p))
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
		topic: t, from: t.Name, spans: t.Parts, readers: p.readers(t.Name), to: copyName(t.Name), parts: p.To, rehash: true,
	}
	return aside, copying{topic: t, from: copyName(t.Name), to: t.Name, parts: p.To}
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
		if err := j.verify(ctx, &aside, made); err != nil {
			return err
		}
	}
	now, err := j.snapshot(ctx)
	if err != nil {
		return err
	}
	if what := p.differs(now); what != "" {
		return fmt.Errorf("%w: %s; nothing was deleted: stop all processes of the agent and run the same command again, which begins anew",
			ErrChanged, what)
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
		var made progress
		if _, err := j.get(keyCopy+aside.to, &made); err != nil {
			return err
		}
		var err error
		if back.readers, err = j.placed(ctx, &aside, made); err != nil {
			return err
		}
		if back.spans, err = j.filled(ctx, &aside); err != nil {
			return err
		}
		if err := j.enter(ctx, moving); err != nil {
			return err
		}
		if err := j.deleteTopic(ctx, t.Name, t.ID); err != nil {
			return err
		}
		if at[t.Name], err = j.fill(ctx, j.cluster, back, result); err != nil {
			return err
		}
	}
	return j.settle(ctx, p, at)
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
		if err := j.at("drop"); err != nil {
			return err
		}
		if err := j.deleteTopic(ctx, copyName(t.Name), made.ID); err != nil {
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
	case p.To > 0 && phase != copies, phase == done:
		return unfinished(p)
	case known:
		return j.discard(ctx, p)
	case j.id != [16]byte{}:
		return j.end(ctx)
	}
	return nil
}

// discard deletes what was written.
func (j *journal) discard(ctx context.Context, p *plan) error {
	for _, t := range p.Topics {
		for _, name := range []string{t.Name, copyName(t.Name)} {
			var made progress
			if known, err := j.get(keyCopy+name, &made); err != nil {
				return err
			} else if !known {
				continue
			}
			if err := j.enter(ctx, copies); err != nil {
				return err
			}
			if err := j.deleteTopic(ctx, name, made.ID); err != nil {
				return err
			}
		}
	}
	if err := j.unguard(ctx, p); err != nil {
		return err
	}
	return j.end(ctx)
}

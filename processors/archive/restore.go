package archive

import (
	"context"
	"errors"
	"fmt"
)

// Restore writes a backup to a cluster: it creates the topics with their settings, writes the records in their order with their
// timestamps, and sets the offsets of the groups to the same records. Topics that exist must be empty. It checks the whole backup
// before it writes anything. After an interruption, a call with the same directory continues; until then no group of the agent starts.
//
// It returns ErrDirectory, ErrRunning or ErrForeign if it must not run.
func Restore(ctx context.Context, cfg Config, dir string) (Result, error) {
	d, err := open(dir)
	if err != nil {
		return Result{}, err
	}
	if err := d.verify(); err != nil {
		return Result{}, err
	}
	if d.plan.Agent != cfg.Catalog.Agent {
		return Result{}, fmt.Errorf("%w: %s has a backup of the agent %s", ErrDirectory, dir, d.plan.Agent)
	}
	j, err := openJournal(ctx, cfg, true)
	if err != nil {
		return Result{}, err
	}
	defer j.client.Close()
	return j.restore(ctx, d)
}

func (j *journal) restore(ctx context.Context, d *directory) (result Result, err error) {
	p, known, err := j.plan()
	switch {
	case err != nil:
		return result, err
	case known && p.id() != d.plan.id():
		return result, unfinished(p)
	case !known:
		if err := j.vacant(ctx, d.plan); err != nil {
			return result, errors.Join(err, j.end(ctx)) // nothing has begun
		}
		if err := j.write(ctx, keyPlan, func() any { return d.plan }); err != nil {
			return result, err
		}
	}
	phase, err := j.phase()
	if err != nil {
		return result, err
	}
	if phase == done {
		return result, j.close(ctx, d.plan)
	}
	if err := j.guard(ctx, d.plan); err != nil {
		return result, err
	}
	at := map[string]map[reader]positions{}
	for _, t := range d.plan.Topics {
		c := copying{
			topic: t, from: t.Name, spans: t.Parts, readers: d.plan.readers(t.Name), to: t.Name, parts: int32(len(t.Parts)),
		}
		if at[t.Name], err = j.fill(ctx, d, c, &result); err != nil {
			return result, err
		}
	}
	if err := j.settle(ctx, d.plan, at); err != nil {
		return result, err
	}
	return result, j.close(ctx, d.plan)
}

// vacant returns an error if a topic of the plan has records, or a group of it members.
func (j *journal) vacant(ctx context.Context, p *plan) error {
	states, err := j.states(ctx)
	if err != nil {
		return err
	}
	if err := j.stopped(states, p); err != nil {
		return err
	}
	for _, t := range p.Topics {
		if err := j.at("vacant " + t.Name); err != nil {
			return err
		}
		listed, err := j.topicsOf(ctx, t.Name)
		if err != nil {
			return err
		}
		found := []topic{{Name: t.Name, Parts: make([]span, len(listed[t.Name].Partitions))}}
		if len(found[0].Parts) == 0 {
			continue
		}
		if err := j.ends(ctx, found); err != nil {
			return err
		}
		for n, s := range found[0].Parts {
			if s.End > s.Start {
				return fmt.Errorf("%w: %s/%d has records, and nothing was written: restore to a cluster without the topics of the agent %s, or "+
					"save them with a backup and delete them first", ErrForeign, t.Name, n, p.Agent)
			}
		}
	}
	return nil
}

// fill copies a topic to where it belongs, checks it while nothing of it is deleted by age or key, and returns where its groups are.
func (j *journal) fill(ctx context.Context, src source, c copying, result *Result) (map[reader]positions, error) {
	p, err := j.copy(ctx, src, c, result)
	if err != nil {
		return nil, err
	}
	if err := j.check(ctx, &c, &p); err != nil {
		return nil, err
	}
	return c.placed(p), j.fenced(ctx, "finish "+c.to, func() error { return j.finish(ctx, c.topic) })
}

// plan returns what the journal is about.
func (j *journal) plan() (p *plan, known bool, err error) {
	p = &plan{}
	known, err = j.get(keyPlan, p)
	return p, known, err
}

// unfinished says what must be finished first.
func unfinished(p *plan) error {
	what := "a restore from another backup"
	if p.To > 0 {
		what = fmt.Sprintf("a repartition to %d partitions", p.To)
	}
	return fmt.Errorf("%w: %s of the agent %s has begun: run that command again, which continues, or undo it; delete no topic", ErrUnfinished,
		what, p.Agent)
}

// close ends the work: the groups may start, and the journal is deleted.
func (j *journal) close(ctx context.Context, p *plan) error {
	if err := j.enter(ctx, done); err != nil {
		return err
	}
	if err := j.unguard(ctx, p); err != nil {
		return err
	}
	if p.To > 0 {
		if err := j.dropCopies(ctx, p); err != nil {
			return err
		}
	}
	return j.end(ctx)
}

package archive

import (
	"context"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// Backup writes the topics of a stopped agent, with their settings and records, and the offsets of the groups that read them, to a
// directory, which must not exist or be empty. After an interruption, a call with the same directory continues. A directory holds
// one backup: it is complete when Backup has returned nil, and is not written again.
//
// It returns ErrRunning while a group of the agent has members, ErrUnfinished while it is restored or moved, and ErrChanged if the agent has run since the backup began; another
// directory is needed then. It changes nothing on the cluster. The files have prompts and answers in clear text, readable by the
// user of this process only.
func Backup(ctx context.Context, cfg Config, dir string) (Result, error) {
	c, err := connect(cfg)
	if err != nil {
		return Result{}, err
	}
	defer c.client.Close()
	return c.backup(ctx, dir)
}

func (c *cluster) backup(ctx context.Context, dir string) (result Result, err error) {
	d, err := open(dir)
	if err != nil {
		return result, err
	}
	if d.Files != nil {
		return result, fmt.Errorf("%w: %s has a complete backup already: name a new directory", ErrDirectory, dir)
	}
	now, err := c.settled(ctx)
	if err != nil {
		return result, err
	}
	if err := d.begin(now); err != nil {
		return result, err
	}
	sums := map[string]string{}
	for _, t := range d.plan.Topics {
		for n, span := range t.Parts {
			name := d.file(t.Name, n)
			if sum, err := d.readRecords(name, func(*kgo.Record) error { return nil }); err == nil { // an earlier call has written it
				sums[name] = sum
				continue
			}
			if err := c.at("file"); err != nil {
				return result, err
			}
			if sums[name], err = d.writeRecords(name, func(yield func(*kgo.Record) error) error {
				return c.read(ctx, t.Name, int32(n), span.Start, span.End, func(r *kgo.Record) error {
					result.Records++
					return yield(r)
				})
			}); err != nil {
				return result, err
			}
		}
		result.Topics++
		c.log.Info("topic saved", zap.String("topic", t.Name), zap.Int("of", len(d.plan.Topics)), zap.Int("topics", result.Topics))
	}
	if now, err = c.settled(ctx); err != nil {
		return result, err
	}
	if what := d.plan.differs(now); what != "" {
		return result, fmt.Errorf("%w: %s; %s is no backup: stop all processes of the agent and name a new directory", ErrChanged, what, dir)
	}
	return result, d.save(completeFile, complete{d.plan.id(), sums})
}

// settled is snapshot, of an agent whose topics are not restored or moved.
func (c *cluster) settled(ctx context.Context) (*plan, error) {
	now, err := c.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := c.topicsOf(ctx, c.Catalog.Archive())
	if err == nil && listed.Has(c.Catalog.Archive()) {
		err = fmt.Errorf("%w: the topic %s has its journal: run that command again, which continues, or undo it, and save the agent then",
			ErrUnfinished, c.Catalog.Archive())
	}
	return now, err
}

// begin makes the directory that of a plan, or checks that it is.
func (d *directory) begin(now *plan) error {
	if d.plan != nil {
		if what := d.plan.differs(now); what != "" || d.plan.Agent != now.Agent || len(d.plan.Topics) != len(now.Topics) {
			return fmt.Errorf("%w: %s has a part of an older backup, and the agent has run since (%s): name a new directory", ErrChanged,
				d.path, what)
		}
		return nil
	}
	entries, err := os.ReadDir(d.path)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	for _, e := range entries {
		if e.Name() != planFile+".part" {
			return fmt.Errorf("%w: %s has other files, such as %s: name a new directory", ErrDirectory, d.path, e.Name())
		}
	}
	d.plan = now
	return d.save(planFile, now)
}

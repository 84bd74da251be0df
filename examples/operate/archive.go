package main

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/archive"
	"github.com/turntable-streams/turntable/topics"
)

// stoppedAgent are the flags of the commands for a stopped agent.
type stoppedAgent struct {
	Topic []string `placeholder:"NAME" help:"More topics of the agent, those of graphs of your own: they have the partitions of the sessions."`
}

// backupCommand saves a stopped agent to a directory.
type backupCommand struct {
	stoppedAgent
	Directory string `arg:"" help:"A new directory, or one of a backup that was interrupted."`
}

// restoreCommand restores an agent from a directory.
type restoreCommand struct {
	stoppedAgent
	Directory   string `arg:"" help:"The directory of a complete backup."`
	Replication int16  `placeholder:"N" help:"Replicas of the topics (default: as they were)."`
	Undo        bool   `help:"Take back a restore that has not ended: delete what it has written."`
}

// repartitionCommand moves a stopped agent to another number of partitions.
type repartitionCommand struct {
	stoppedAgent
	Partitions int32 `arg:"" help:"Number of partitions of the topics of the sessions."`
	Undo       bool  `help:"Take back a repartition that has not deleted a topic yet."`
	Yes        bool  `short:"y" help:"Do not ask for confirmation."`
}

// archiveResult is the JSON of the commands backup, restore and repartition.
type archiveResult struct {
	Agent    string `json:"agent"`
	Topics   int    `json:"topics"`
	Records  int64  `json:"records"`
	Repeated int64  `json:"repeated"`
}

func (c *backupCommand) Run(ctx context.Context, o *operator) error {
	return o.archived(ctx, c.stoppedAgent, 0, func(cfg archive.Config) (archive.Result, error) {
		return archive.Backup(ctx, cfg, c.Directory)
	})
}

func (c *restoreCommand) Run(ctx context.Context, o *operator) error {
	return o.archived(ctx, c.stoppedAgent, c.Replication, func(cfg archive.Config) (archive.Result, error) {
		if c.Undo {
			return archive.Result{}, archive.Undo(ctx, cfg)
		}
		return archive.Restore(ctx, cfg, c.Directory)
	})
}

func (c *repartitionCommand) Run(ctx context.Context, o *operator) error {
	if err := o.confirm(ctx, c.Yes || c.Undo, "Move all topics of the sessions of %s to %d partitions? They are copied, deleted and created again: "+
		"make a backup before.", o.agent, c.Partitions); err != nil {
		return err
	}
	return o.archived(ctx, c.stoppedAgent, 0, func(cfg archive.Config) (archive.Result, error) {
		if c.Undo {
			return archive.Result{}, archive.Undo(ctx, cfg)
		}
		return archive.Repartition(ctx, cfg, c.Partitions)
	})
}

// archived runs do with the topics of the agent. It takes as long as the records need: --timeout is for the first answers.
func (o *operator) archived(ctx context.Context, more stoppedAgent, replication int16, do func(archive.Config) (archive.Result, error)) error {
	cluster, err := o.connect(ctx)
	if err != nil {
		return err
	}
	o.timer.Stop()
	progress := zap.NewDevelopmentConfig() // to standard error
	progress.Level.SetLevel(zap.InfoLevel)
	progress.DisableCaller = true
	logger, err := progress.Build()
	if err != nil {
		return err
	}
	cfg := archive.Config{
		Brokers: o.brokers, Kafka: append(o.options[:len(o.options):len(o.options)], processors.WithLogger(logger)),
		Catalog: cluster.catalog, Replication: replication,
	}
	for _, name := range more.Topic {
		cfg.Specs = append(cfg.Specs, topics.Spec{Name: name, CoPartitioned: true})
	}
	done, err := do(cfg)
	if err != nil {
		return err
	}
	return o.print(archiveResult{o.agent, done.Topics, done.Records, done.Repeated}, func(t *columns) {
		t.line(fmt.Sprintf("done: %d topics, %d records", done.Topics, done.Records))
		if done.Repeated > 0 {
			t.line(fmt.Sprintf("%d records are read once more by groups that were behind in other partitions", done.Repeated))
		}
	})
}

package main

import (
	"context"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/migrate"
)

// importVariable says whether the first start takes over the histories of FlightDeck's application.
const importVariable = "HISTORY_IMPORT"

// readImport reads HISTORY_IMPORT. Processes without the turn ignore it.
func (s *settings) readImport() error {
	on, err := flagged(importVariable)
	s.imports = on && s.parts.turn
	return err
}

// afterImport imports the histories of FlightDeck's application before the turn's group runs. Meanwhile the doors accept
// messages, and the process is not healthy.
func (p *pipeline) afterImport(runGroup func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		result, err := migrate.Import(ctx, p.kafka.Brokers, p.catalog, p.turn, p.migration()...)
		switch {
		case ctx.Err() != nil:
			return nil // stopped: the next start continues
		case err != nil:
			return err
		case result.Already:
			p.logger.Info("FlightDeck's histories were imported before")
		}
		return runGroup(ctx)
	}
}

// exportHistories gives the histories back to FlightDeck's application, for -export-history.
func exportHistories(ctx context.Context, logger *zap.Logger) error {
	s, err := readSettings(logger)
	if err != nil {
		return err
	}
	p := &pipeline{settings: s, logger: logger}
	_, err = migrate.Export(ctx, s.kafka.Brokers, s.catalog, p.migration()...)
	return err
}

// migration returns the options of the turn's group that a migration needs.
func (p *pipeline) migration() []processors.Option {
	return append(append([]processors.Option{}, p.kafka.Options...), processors.WithTopics(p.catalog), processors.WithLogger(p.logger))
}

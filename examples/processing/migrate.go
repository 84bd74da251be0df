package main

import (
	"context"
	"fmt"

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

// exportHistories gives the histories back to FlightDeck's application, for -export-history. With deliveries it gives the
// outputs that they have not read back to chat-api.
func exportHistories(ctx context.Context, logger *zap.Logger) error {
	s, err := readSettings(logger)
	if err != nil {
		return err
	}
	p := &pipeline{settings: s, logger: logger}
	if _, err = migrate.Export(ctx, s.kafka.Brokers, s.catalog, p.migration()...); err != nil || len(s.services.Names()) == 0 {
		return err
	}
	if err = migrate.ReturnOutputs(ctx, s.kafka.Brokers, s.catalog, s.chatGroup, p.migration()...); err != nil {
		return fmt.Errorf("the histories are exported, but OUTPUT_CONSUMER_GROUP cannot be moved; stop chat-api and repeat the export: %w", err)
	}
	return nil
}

// migration returns the options of the turn's group that a migration needs.
func (p *pipeline) migration() []processors.Option {
	return append(append([]processors.Option{}, p.kafka.Options...), processors.WithTopics(p.catalog), processors.WithLogger(p.logger))
}

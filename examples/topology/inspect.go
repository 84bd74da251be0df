package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// inspect prints the state of a session in the orchestrator's group table. It reads the table from Kafka, up to the last
// committed row. It needs no running agent and does not disturb one.
func inspect(ctx context.Context, brokers []string, session string, out io.Writer, logger *zap.Logger) error {
	catalog, err := topics.For(orchestrator)
	if err != nil {
		return err
	}
	row, err := lastRow(ctx, brokers, catalog.Table(), session, logger)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	if row == nil {
		return fmt.Errorf("inspect: the table of %s has no session %q", orchestrator, session)
	}
	state, err := turn.TableCodec().Decode(row)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	description, err := turn.Describe(state)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	_, err = fmt.Fprintf(out, "session %s of %s\n%s", session, orchestrator, description)
	return err
}

// tableLimit bounds the wait for the brokers and for the table.
const tableLimit = 10 * time.Second

// lastRow returns the last row of a key in a table, nil if it has none.
func lastRow(ctx context.Context, brokers []string, table, key string, logger *zap.Logger) (row []byte, err error) {
	rows, err := processors.NewTableFollower(brokers, []string{table}, func(r processors.Inbound) {
		if string(r.Key) == key { // all rows of a key are in one partition, so this is called by one goroutine
			row = r.Value
		}
	}, processors.WithLogger(logger))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, tableLimit)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- rows.Run(ctx) }()
	select {
	case <-rows.Ready():
	case <-ctx.Done():
		err = fmt.Errorf("the table %s cannot be read: %w", table, ctx.Err())
	}
	stop()
	if failed := <-done; failed != nil {
		err = failed
	}
	return row, err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// recoveryTimeout is how long a processor may take to recover its table.
const recoveryTimeout = 10 * time.Minute

// storeSessions writes rows of idle sessions to the group's table in the processor's format.
func (t *trial) storeSessions(ctx context.Context) error {
	catalog, err := topics.For(t.agent)
	if err != nil {
		return err
	}
	table := catalog.Table()
	compact := "compact"
	created, err := t.brokers.admin.CreateTopic(ctx, int32(t.Partitions), -1, map[string]*string{"cleanup.policy": &compact}, table)
	if err = errors.Join(err, created.Err); err != nil {
		return fmt.Errorf("bench: create %s: %w", table, err)
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(t.brokers.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(50_000))
	if err != nil {
		return err
	}
	defer c.Close()
	row, err := turnrow.Table.Marshal(storedRow())
	if err != nil {
		return err
	}
	var failed error // written only by the client's callback goroutine
	for i := range t.Stored {
		key := fmt.Sprintf("stored-%07d", i)
		c.Produce(ctx, &kgo.Record{
			Topic: table, Partition: codec.PartitionOf(key, int32(t.Partitions)), Key: []byte(key), Value: row,
		}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed = err
			}
		})
	}
	if err := errors.Join(c.Flush(ctx), failed); err != nil {
		return fmt.Errorf("bench: fill %s: %w", table, err)
	}
	return nil
}

// storedRow is the row of a short conversation.
func storedRow() *turnrow.State {
	message := `{"role":"user","content":"` + strings.Repeat("berth nine ", 20) + `"}`
	return &turnrow.State{
		Version: 1, TouchedMs: time.Now().UnixMilli(), History: []byte("[" + message + "," + message + "]"), HistoryLength: 2,
		Causes: make([]byte, 5*24), Calls: make([]byte, 4*24),
	}
}

// measureRecovery measures how long the processor takes to recover its table, without a local store and with one. The
// processor is running afterwards.
func (t *trial) measureRecovery(ctx context.Context) (fresh, again time.Duration, err error) {
	began := time.Now()
	if err := t.start(ctx); err != nil {
		return 0, 0, err
	}
	fresh = time.Since(began)
	for _, p := range t.processes {
		if err := p.stop(); err != nil {
			return 0, 0, err
		}
	}
	t.processes = nil
	began = time.Now()
	err = t.startAll(ctx)
	return fresh, time.Since(began), err
}

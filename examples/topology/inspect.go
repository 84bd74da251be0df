package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/processors/turn"
)

// inspect prints the state of a session in the orchestrator's group table. It reads the table from Kafka up to its stable
// end into a view in memory. It needs no running processor and does not disturb one.
func inspect(ctx context.Context, brokers []string, session string, out io.Writer) error {
	row, err := tableRow(ctx, brokers, goka.GroupTable(goka.Group(topicOf(orchestrator, "streams"))), session)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	if row == nil {
		return fmt.Errorf("inspect: the table of %s has no session %q", orchestrator, session)
	}
	text, err := turn.Describe(row)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	_, err = fmt.Fprintf(out, "session %s of %s\n%s", session, orchestrator, text)
	return err
}

// tableLimit bounds the wait for a transaction at the end of the table.
const tableLimit = 10 * time.Second

// tableRow returns nil if the table has no such key.
func tableRow(ctx context.Context, brokers []string, table goka.Table, key string) (row any, err error) {
	client, err := sarama.NewClient(brokers, kafka.Config())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, consumer.Close()) }() // a view leaves it open
	view, err := goka.NewView(brokers, table, turn.TableCodec(),
		goka.WithViewStorageBuilder(storage.MemoryBuilder()),
		goka.WithViewHasher(codec.KeyHasher()),
		goka.WithViewConsumerSaramaBuilder(func([]string, string) (sarama.Consumer, error) { return consumer, nil }),
		goka.WithViewTopicManagerBuilder(func([]string) (goka.TopicManager, error) {
			return &instance.TopicManager{Client: client, Limit: tableLimit}, nil
		}),
	)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- view.Run(ctx) }()
	select {
	case <-view.WaitRunning():
		row, err := view.Get(key)
		stop()
		return row, errors.Join(err, <-done)
	case err := <-done:
		stop()
		return nil, err
	}
}

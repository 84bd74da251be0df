package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
)

// Stock Goka is the floor's loop in the callbacks of a Goka processor, with the Sarama configuration of this library: the
// cost of the two libraries without guarantees. It has no table either.

// rawCodec is the codec of bytes.
type rawCodec struct{}

func (rawCodec) Encode(value any) ([]byte, error) { return value.([]byte), nil }
func (rawCodec) Decode(raw []byte) (any, error)   { return raw, nil }

// runGoka runs until ctx ends. It calls ready when it has its partitions.
func runGoka(ctx context.Context, c childSpec, ready func()) error {
	names := wiretest.NamesOf(c.Agent)
	conf := kafka.Config()
	conf.Consumer.Offsets.AutoCommit.Enable, conf.Consumer.Offsets.AutoCommit.Interval = true, 5*time.Second
	loops := make([]*plainLoop, c.Partitions) // one per partition, used only by the partition's goroutine
	for i := range loops {
		loops[i] = newPlainLoop(names)
	}
	handle := func(topic string) goka.ProcessCallback {
		return func(at goka.Context, value any) {
			l := loops[at.Partition()]
			l.write = func(topic string, key, value []byte) { at.Emit(goka.Stream(topic), string(key), value) }
			l.answer(topic, []byte(at.Key()), value.([]byte), l.clock.at(time.Now()))
			select {
			case err := <-l.failed:
				at.Fail(err)
			default:
			}
		}
	}
	var edges []goka.Edge
	for _, topic := range []string{names.MessageInput, names.Think, names.ToolUseResult} {
		edges = append(edges, goka.Input(goka.Stream(topic), rawCodec{}, handle(topic)))
	}
	for _, topic := range []string{names.Enriched, names.ToolUse, names.MessageOutput} {
		edges = append(edges, goka.Output(goka.Stream(topic), rawCodec{}))
	}
	p, err := goka.NewProcessor(c.Brokers, goka.DefineGroup(goka.Group(names.Group), edges...),
		goka.WithLogger(log.New(io.Discard, "", 0)), goka.WithHasher(codec.KeyHasher()),
		goka.WithConsumerGroupBuilder(goka.ConsumerGroupBuilderWithConfig(conf)),
		goka.WithConsumerSaramaBuilder(goka.SaramaConsumerBuilderWithConfig(kafka.Copy(conf))),
		goka.WithProducerBuilder(goka.ProducerBuilderWithConfig(kafka.Copy(conf))),
		goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithConfig(kafka.Copy(conf), goka.NewTopicManagerConfig())),
	)
	if err != nil {
		return fmt.Errorf("bench: goka: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	if err := p.WaitForReadyContext(ctx); err != nil {
		return fmt.Errorf("bench: goka: %w", err)
	}
	ready()
	return <-ended
}

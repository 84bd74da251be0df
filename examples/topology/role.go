package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// role is a program outside of the turn processor (a model, a tool, a dispatcher, a sink): it reads one topic in a
// consumer group and answers each record with records. It is at-least-once: a record is committed when its answers
// are acknowledged, and answered again after a crash.
type role struct {
	group string
	topic string
	// dlq receives the unchanged records for which answer returns an error, with the reason in headers. If "", they are
	// dropped.
	dlq    string
	answer func(r *kgo.Record) ([]*kgo.Record, error)
}

// run ends with ctx, and then without an error. It calls ready when it is a member of its group.
func (r role) run(ctx context.Context, brokers []string, instance string, ready func(), logger *zap.Logger) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...),
		kgo.ConsumerGroup(r.group),
		// A killed static member rejoins immediately, without waiting for the session timeout of its former process.
		kgo.InstanceID(instance),
		kgo.SessionTimeout(sessionTimeout),
		kgo.ConsumeTopics(r.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { ready() }),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(maxRecord),
	)
	if err != nil {
		return fmt.Errorf("%s: %w", r.group, err)
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		for _, e := range fetches.Errors() {
			if errors.Is(e.Err, kerr.FencedInstanceID) {
				return fmt.Errorf("%s: another process runs as instance %q: %w", r.group, instance, e.Err)
			}
			logger.Warn("fetch", zap.String("group", r.group), zap.String("topic", e.Topic), zap.Error(e.Err))
		}
		if err := r.serve(ctx, client, fetches.Records(), logger); err != nil {
			if ctx.Err() != nil {
				return nil // uncommitted records are redelivered at the next start
			}
			return fmt.Errorf("%s: %w", r.group, err)
		}
	}
}

func (r role) serve(ctx context.Context, client *kgo.Client, records []*kgo.Record, logger *zap.Logger) error {
	for _, record := range records {
		answers, err := r.answer(record)
		if err != nil {
			logger.Warn("record rejected", zap.String("group", r.group), zap.Int64("offset", record.Offset), zap.Error(err))
			answers = r.deadLetter(record, err)
		}
		if err := client.ProduceSync(ctx, answers...).FirstErr(); err != nil {
			return err
		}
	}
	if len(records) == 0 {
		return nil
	}
	return client.CommitRecords(ctx, records...)
}

func (r role) deadLetter(record *kgo.Record, reason error) []*kgo.Record {
	if r.dlq == "" {
		return nil
	}
	return []*kgo.Record{{Topic: r.dlq, Key: record.Key, Value: record.Value, Headers: []kgo.RecordHeader{
		{Key: "error.reason", Value: []byte(reason.Error())},
		{Key: "error.source.topic", Value: []byte(record.Topic)},
		{Key: "error.source.partition", Value: strconv.AppendInt(nil, int64(record.Partition), 10)},
		{Key: "error.source.offset", Value: strconv.AppendInt(nil, record.Offset, 10)},
	}}}
}

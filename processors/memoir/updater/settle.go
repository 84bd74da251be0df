package updater

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// The reasons of failures that do not use the text of the updater's error.
var (
	errLate     = errors.New("updater: no memory in time")
	errPanic    = errors.New("updater: the updater panicked")
	errTooLong  = errors.New("updater: the memory is longer than the limit")
	errTooLarge = errors.New("updater: the memory does not fit into a record")
)

// maxReason is the limit of a failure's reason, in bytes.
const maxReason = 4 << 10

// settle calls the updater and returns the record of its memory or its failure. Its error is that of ctx, which has ended, or
// a responder.CalledAgain.
func (w *Worker) settle(ctx context.Context, r worker.Record, e Ended) (processors.Outbound, error) {
	if len(e.Messages) == 0 {
		return w.memory(r.Inbound, e, Memory{}), nil
	}
	var m Memory
	var err error
	again := w.rules.Retried(r, e.Deadline)
	// Without an ID, because the ends of turns are no reason to stop: the session has ended.
	end := w.memories.Call(ctx, "", e.Deadline, func(ctx context.Context) error {
		m, err = w.call(ctx, e)
		return err
	})
	switch {
	case end == responder.Stopped:
		return processors.Outbound{}, ctx.Err()
	case end == responder.Late:
		return w.failure(r.Inbound, errLate), nil
	case end == responder.Failed && !errors.Is(err, errPanic) && again(err):
		return processors.Outbound{}, responder.Again(err)
	case end == responder.Failed:
		return w.failure(r.Inbound, err), nil
	case len(m.Text) > e.Limit:
		return w.failure(r.Inbound, errTooLong), nil
	}
	return w.memory(r.Inbound, e, m), nil
}

// call calls the updater, and reports what it used.
func (w *Worker) call(ctx context.Context, e Ended) (m Memory, err error) {
	began := w.rules.Clock.Now()
	defer func() {
		if recover() != nil {
			err = errPanic // without the panic value, which may quote the conversation
		}
		w.report(e, Usage{m.InputTokens, m.OutputTokens, m.Cost, w.rules.Clock.Now().Sub(began)}, err)
	}()
	return w.updater.Update(ctx, e)
}

func (w *Worker) report(e Ended, u Usage, err error) {
	w.rules.Logger.Info("memory updater called", zap.String("agent", e.Agent), zap.String("snapshot", e.Key),
		zap.Int64("input_tokens", u.InputTokens), zap.Int64("output_tokens", u.OutputTokens), zap.Float64p("cost", u.Cost),
		zap.Duration("took", u.Took), zap.Bool("failed", err != nil))
	if f := w.rules.metrics.Called; f != nil {
		f(e.Agent, u, err)
	}
}

// memory returns the record of a memory; that of the snapshot in the place of a blank one.
func (w *Worker) memory(r processors.Inbound, e Ended, m Memory) processors.Outbound {
	if strings.TrimSpace(m.Text) == "" {
		m.Text = e.Memory
	}
	return processors.Outbound{
		Topic: w.topics.MemoirContext.Name(), Key: string(r.Key), Headers: headers(r, memorySuffix, goka.Headers{}),
		Value: append([]byte{}, m.Text...), // not nil, which would make the group forget the user
	}
}

// failure returns the record of memoir-dlq for a snapshot: its bytes unchanged, with the reason in the headers.
func (w *Worker) failure(r processors.Inbound, cause error) processors.Outbound {
	reason := truncate.Text(cause.Error(), maxReason)
	w.rules.Logger.Warn("memory not updated: the snapshot is dead-lettered", zap.String("agent", w.topics.Agent),
		zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset), zap.String("reason", reason))
	return processors.Outbound{
		Topic: w.topics.MemoirDLQ.Name(), Key: string(r.Key),
		Headers: headers(r, failureSuffix, w.memories.ErrorHeaders(r, reason)),
		Value:   bytes.Clone(r.Value), // the record is remembered; a reference would keep the consumer's whole batch in memory
	}
}

// headers adds to the headers of a record that answers a snapshot its ID and the version that the snapshot has.
func headers(of processors.Inbound, suffix string, h goka.Headers) goka.Headers {
	h[topics.HeaderID] = []byte(responder.KeyOf(of) + suffix)
	if version := of.Header(topics.HeaderMemoirVersion); len(version) > 0 {
		h[topics.HeaderMemoirVersion] = bytes.Clone(version)
	}
	return h
}

// shorten replaces a memory that is too large by a failure, and shortens a failure.
func (w *Worker) shorten(r processors.Inbound) responder.Shorten {
	return func(out processors.Outbound) (processors.Outbound, bool) {
		if out.Topic == w.topics.MemoirContext.Name() {
			return w.failure(r, errTooLarge), true
		}
		return responder.ShortenLetter(out)
	}
}

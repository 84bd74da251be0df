package compact

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// ErrTurnEnded is the context.Cause of a call whose turn ended before it did.
var ErrTurnEnded = responder.ErrTurnEnded

// The errors of results that do not use the text of the compactor's error.
var (
	errLate     = errors.New("compact: the compactor did not answer in time")
	errPanic    = errors.New("compact: the compactor panicked")
	errTooLarge = errors.New("compact: the summary does not fit into a record")
	errMessages = errors.New("compact: messages of the request cannot be read")
)

// maxReason is the limit of an error's text in a result, in bytes.
const maxReason = 4 << 10

// Worker calls a compactor for the requests of an agent. Its methods are safe for concurrent use.
type Worker struct {
	topics    topics.Catalog
	compactor Compactor
	settings  responder.Settings
	results   *responder.Responder[requestKey]
}

type requestKey struct{ session, id string }

// New returns a worker for an agent's compactor. It does not connect to the brokers. The caller owns the publisher and must
// keep it open until Run has returned.
func New(agent string, to processors.Publisher, c Compactor, cfg Config) (*Worker, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	settings := cfg.settings(catalog)
	if c == nil {
		settings.Wrong("the compactor", "is nil")
	}
	results, err := responder.New[requestKey](catalog, to, settings)
	if err != nil {
		return nil, err
	}
	return &Worker{topics: catalog, compactor: c, settings: settings, results: results}, nil
}

// Run handles requests until ctx ends. Then it waits for running calls (Config.Grace) and returns nil. While the
// brokers are unavailable, Run retries. It also follows message-output, and ends the running call of a turn that has ended.
// opts are the connection options of processors.New.
func (w *Worker) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	return w.results.Run(ctx, brokers, responder.Source{
		Topic: w.topics.CompactionRequest.Name(), Handle: w.handle, GiveUp: w.giveUp,
	}, opts...)
}

// Handle handles one record of compaction-request, for callers with a consumer of their own. It returns nil when its result
// is acknowledged; a repeat of a request publishes the same result again. Handle returns an error only if ctx ended or the
// publisher is closed; the record must then be redelivered.
func (w *Worker) Handle(ctx context.Context, r processors.Inbound) error {
	return w.handle(ctx, responder.First(r))
}

// HandleOutput takes a record of message-output, for callers with a consumer of their own: it ends the running call of the
// record's turn. Run does this by itself.
func (w *Worker) HandleOutput(r processors.Inbound) { w.results.Observe(r) }

func (w *Worker) handle(ctx context.Context, d responder.Delivery) error {
	r := d.Inbound
	c, err := w.read(r)
	switch {
	case errors.Is(err, errMessages):
		return w.results.Publish(ctx, r, w.failure(r, c.Key, err), w.shorten(r, c.Key))
	case err != nil:
		w.settings.Logger.Warn("compaction request dropped: no turn can use its result", zap.String("topic", r.Topic),
			zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset), zap.Error(err))
		return nil
	}
	earlier := []responder.Sought{{Topic: w.topics.CompactionResult.Name(), ID: resultID(c.Key)}}
	return w.results.Settle(ctx, d, requestKey{c.SessionID, c.Key}, earlier, w.shorten(r, c.Key),
		func() (processors.Outbound, error) { return w.settle(ctx, r, c) })
}

// giveUp answers a request that was interrupted as often as the broker delivers it.
func (w *Worker) giveUp(ctx context.Context, r worker.Record, reason error) error {
	c, err := w.read(r.Inbound)
	if err != nil && !errors.Is(err, errMessages) {
		return nil
	}
	return w.results.Publish(ctx, r.Inbound, w.failure(r.Inbound, c.Key, reason), w.shorten(r.Inbound, c.Key))
}

// read decodes a request. With errMessages its key is set.
func (w *Worker) read(r processors.Inbound) (c Conversation, err error) {
	in := w.topics.CompactionRequest.Codec().Unmarshal(r.Value)
	switch {
	case in.Err != nil:
		return c, in.Err
	case in.Tombstone() || in.Value.CompactionID == "":
		return c, errors.New("it has no compaction_id")
	}
	c = Conversation{
		Agent: w.topics.Agent, SessionID: string(r.Key), UserID: in.Value.UserID, Key: in.Value.CompactionID,
		Deadline: w.settings.Deadline(r),
	}
	for message, err := range topics.Messages(in.Value.Messages) {
		if err != nil {
			return c, errMessages
		}
		c.Messages = append(c.Messages, message)
	}
	return c, nil
}

// settle calls the compactor and returns the record of its result, or an empty record if the turn has ended. It returns an
// error only if ctx ended.
func (w *Worker) settle(ctx context.Context, r processors.Inbound, c Conversation) (processors.Outbound, error) {
	var s Summary
	var err error
	end := w.results.Call(ctx, c.Key, c.Deadline, func(ctx context.Context) error {
		s, err = w.call(ctx, c)
		return err
	})
	switch end {
	case responder.Stopped:
		return processors.Outbound{}, ctx.Err()
	case responder.Skipped, responder.TurnEnded:
		return processors.Outbound{}, nil
	case responder.Late:
		return w.failure(r, c.Key, errLate), nil
	case responder.Failed:
		return w.failure(r, c.Key, err), nil
	}
	return w.result(r, topics.CompactionResult{
		CompactionID: c.Key, Summary: s.Text, InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, Cost: s.Cost,
	}), nil
}

func (w *Worker) call(ctx context.Context, c Conversation) (s Summary, err error) {
	defer func() {
		if recover() != nil {
			err = errPanic // without the panic value, which may quote the conversation
		}
	}()
	return w.compactor.Compact(ctx, c)
}

// resultID is the turntable.id of a request's result.
func resultID(key string) string { return key + "/result" }

func (w *Worker) result(r processors.Inbound, v topics.CompactionResult) processors.Outbound {
	session := string(r.Key)
	now := topics.Timestamp(w.settings.Clock.Now())
	v.SessionID, v.Timestamp = &session, &now
	// The codec cannot fail for these fields.
	out, _ := processors.OutboundOf(w.topics.CompactionResult, session, v, resultID(v.CompactionID))
	return out
}

// failure returns a result without a summary.
func (w *Worker) failure(r processors.Inbound, key string, cause error) processors.Outbound {
	reason := truncate.Text(cause.Error(), maxReason)
	w.settings.Logger.Warn("no summary: the turn continues without one", zap.String("agent", w.topics.Agent),
		zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset), zap.String("reason", reason))
	return w.result(r, topics.CompactionResult{CompactionID: key, Error: &reason})
}

// shorten replaces a summary that is too large by an error.
func (w *Worker) shorten(r processors.Inbound, key string) responder.Shorten {
	shortened := false
	return func(processors.Outbound) (processors.Outbound, bool) {
		if shortened {
			return processors.Outbound{}, false
		}
		shortened = true
		return w.failure(r, key, errTooLarge), true
	}
}

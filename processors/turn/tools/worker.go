package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// Worker runs the tools of an agent. Its methods are safe for concurrent use.
type Worker struct {
	topics    topics.Catalog
	tools     map[string]*tool
	rules     rules
	total     int // calls that the tools can run at a time
	readAhead int // 0: by default
	calls     *responder.Responder[callKey]
}

// callKey identifies a call. A model may reuse a tool_use_id in a later step, whose record has another turntable.id.
// Records without a turntable.id are the same call only if tool and input are the same too: the result of another call
// must not be published for this one.
type callKey struct {
	session, toolUse, id string
	toolAndInput         digests.Digest // zero if there is an id
}

func (c Call) memoryKey() callKey {
	key := callKey{session: c.SessionID, toolUse: c.ToolUseID, id: c.id}
	if c.id == "" {
		key.toolAndInput = digests.Of("tool call", c.Name, string(c.Input))
	}
	return key
}

// NewWorker returns a worker for an agent's tools. functions maps tool names to functions. NewWorker does not connect to the brokers.
// The caller owns the publisher and must keep it open until Run has returned.
func NewWorker(agent string, to processors.Publisher, functions map[string]Func, c Config) (*Worker, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r := c.rules(catalog)
	if len(functions) == 0 {
		r.Wrong("the list of tools", "is empty")
	}
	if r.Limiter == nil {
		r.Limiter = worker.NewLimiterAt(r.Clock)
	}
	w := &Worker{topics: catalog, tools: map[string]*tool{}, rules: r, readAhead: c.ReadAhead}
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		if strings.TrimSpace(name) == "" || functions[name] == nil {
			r.Wrong(fmt.Sprintf("tool %q", name), "has no name or no function")
		}
		calls := cmp.Or(r.ofTool[name], r.Concurrency)
		w.tools[name] = w.newTool(name, functions[name], calls)
		w.total += calls
	}
	for _, name := range slices.Sorted(maps.Keys(r.ofTool)) {
		if w.tools[name] == nil {
			r.Wrong("ToolConcurrency", "names %q, which is no tool", name)
		}
	}
	if w.calls, err = responder.New[callKey](catalog, to, r.Settings); err != nil {
		return nil, err
	}
	return w, nil
}

// Run processes calls until ctx ends. Then it waits for running tools (Config.Grace) and returns nil. While the brokers are
// unavailable, Run retries. It also follows message-output, and ends the running tools of a turn that has ended, for
// example because it was cancelled or timed out. opts are the connection options of processors.New.
func (w *Worker) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	return w.calls.Run(ctx, brokers, responder.Source{
		Topic: w.topics.ToolUse.Name(), Handle: w.handle, GiveUp: w.giveUp,
		Config: func(c *worker.Config) {
			// Calls wait for their tool in the handler, outside of the slots: a slow tool does not delay the others.
			c.Concurrency = w.total
			if w.readAhead == 0 {
				c.ReadAhead = w.total + max(c.Waiting, 0)
			}
		},
	}, opts...)
}

// giveUp ends a call that was interrupted as often as the broker delivers it.
func (w *Worker) giveUp(ctx context.Context, r worker.Record, reason error) error {
	call, err := w.readCall(r.Inbound)
	if err != nil {
		return w.deadLetter(ctx, r.Inbound, reason)
	}
	out, err := w.answer(call, failed(reason.Error(), reasonFailed), 0)
	if err != nil {
		return err
	}
	return w.calls.Publish(ctx, r.Inbound, out, w.shorten(r.Inbound, call))
}

// Handle handles one record of tool-use, for callers with a consumer of their own. It returns nil when the call is
// settled: its result is acknowledged, it is pending, or it is left to other workers. A repeat of a settled call publishes
// the same result again; a repeat waits while the call is still running. Handle returns an error only if ctx ended or the
// publisher is closed; the record must then be redelivered.
func (w *Worker) Handle(ctx context.Context, r processors.Inbound) error {
	return w.handle(ctx, responder.First(r))
}

func (w *Worker) handle(ctx context.Context, d responder.Delivery) error {
	r := d.Inbound
	if r.Value == nil {
		return nil
	}
	call, err := w.readCall(r)
	if err != nil {
		return w.deadLetter(ctx, r, err)
	}
	t, known := w.tools[call.Name]
	if !known && w.rules.leaveOthers {
		return nil
	}
	shorten := w.shorten(r, call)
	return w.calls.Settle(ctx, d, call.memoryKey(), w.results(call), shorten, func() (processors.Outbound, error) {
		if !known {
			return w.answer(call, failed("there is no tool of this name", reasonUnknown), 0)
		}
		return w.settle(ctx, t, call)
	})
}

// results are the records that settle a call; none if the call has no turntable.id, because its result then has none either.
func (w *Worker) results(c Call) []responder.Sought {
	if c.id == "" {
		return nil
	}
	return []responder.Sought{{Topic: w.topics.ToolUseResult.Name(), ID: c.id + resultSuffix}}
}

// resultSuffix is what the turntable.id of a result has after that of its call.
const resultSuffix = "/result"

// ErrTurnEnded is the context.Cause of a tool whose turn ended before it did.
var ErrTurnEnded = responder.ErrTurnEnded

// HandleOutput takes a record of message-output, for callers with a consumer of their own: it ends the running tools of the
// record's turn, and calls of that turn that are handled later are skipped. Each process of a worker needs every record of
// message-output, so its consumer must not share a group with other processes. Run does this by itself.
func (w *Worker) HandleOutput(r processors.Inbound) { w.calls.Observe(r) }

// answer returns the record of a result. A result that the turn could not decode is replaced by an error.
func (w *Worker) answer(c Call, res result, took time.Duration) (processors.Outbound, error) {
	out, err := w.record(c, res, took)
	if err != nil {
		return w.record(c, failed("what the tool returned is nested too deep", reasonInvalid), took)
	}
	return out, nil
}

// shorten replaces a result that is too large for a record: with an error, then with the error without the tool_id, whose
// length nothing limits, then with a dead letter of the call's record.
func (w *Worker) shorten(r processors.Inbound, c Call) responder.Shorten {
	tries := 0
	return func(out processors.Outbound) (processors.Outbound, bool) {
		tries++
		was := w.topics.ToolUseResult.Codec().Unmarshal(out.Value).Value
		text := fmt.Sprintf("the result of %d bytes does not fit into a record", len(was.Result))
		switch tries {
		case 1:
		case 2:
			c.toolID, text = nil, "the call leaves no room for a result in a record"
		case 3:
			return w.letter(r, errResultSize), true
		default:
			return responder.ShortenLetter(out)
		}
		out, err := w.record(c, failed(text, reasonTooLarge), time.Duration(was.LatencyMS)*time.Millisecond)
		return out, err == nil
	}
}

// errResultSize is the reason of a dead letter for a call that has no result, because it would be too large.
var errResultSize = errors.New("tools: no result of the call fits into a record")

// deadLetter dead-letters a record that is not a valid call, as FlightDeck's workers do.
func (w *Worker) deadLetter(ctx context.Context, r processors.Inbound, reason error) error {
	w.rules.Logger.Warn("record of tool-use is not a valid call: dead-lettered", zap.Int32("partition", r.Partition),
		zap.Int64("offset", r.Offset), zap.Error(reason))
	return w.calls.Publish(ctx, r, w.letter(r, reason), responder.ShortenLetter)
}

// letter returns the record of tool-use-dlq for a record of tool-use.
func (w *Worker) letter(r processors.Inbound, reason error) processors.Outbound {
	return processors.Outbound{
		Topic: w.topics.ToolUseDLQ.Name(), Key: string(r.Key), Value: r.Value,
		Headers: w.calls.ErrorHeaders(r, reason.Error()),
	}
}

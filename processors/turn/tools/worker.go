package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/internal/settled"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by everything that New and Run refuse.
var ErrConfig = errors.New("tools: bad configuration")

// Worker runs tools. Its methods are safe for concurrent use.
type Worker struct {
	topics topics.Catalog
	tools  map[string]tool
	rules  rules
	calls  *settled.Results[callKey]
}

// tool is a function and its places.
type tool struct {
	run    Func
	places chan struct{}
}

// callKey names a call. A model may reuse a tool_use_id in a later step, whose record has another turntable.id. Records
// of a writer that sets none are the same call only if they ask the same of the same tool: the result of another call
// must not be published for this one.
type callKey struct {
	session, toolUse, id string
	asked                digests.Digest // zero where there is an id
}

func (c Call) memoryKey() callKey {
	key := callKey{session: c.SessionID, toolUse: c.ToolUseID, id: c.id}
	if c.id == "" {
		key.asked = digests.Of("tool call", c.Name, string(c.Input))
	}
	return key
}

// New makes a worker of an agent's tools, by name. It contacts nobody. The publisher is the caller's; it is used until
// Run has returned.
func New(agent string, to turn.Publisher, functions map[string]Func, opts ...Option) (*Worker, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r := rules{
		group: agent + "-tool-execution", concurrency: defaultConcurrency, window: defaultWindow,
		timeout: defaultTimeout, remembered: settled.Defaults, clock: clock.System(), logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&r)
	}
	if to == nil {
		r.refuse("no publisher")
	}
	if len(functions) == 0 {
		r.refuse("no tools")
	}
	w := &Worker{topics: catalog, tools: map[string]tool{}}
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		if strings.TrimSpace(name) == "" || functions[name] == nil {
			r.refuse("tool %q: no name or no function", name)
		}
		w.tools[name] = tool{functions[name], make(chan struct{}, max(r.concurrency, 1))}
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	w.rules = r
	w.calls = settled.New[callKey](to, r.remembered, r.clock, r.logger)
	return w, nil
}

// Run takes calls until ctx ends; then what runs may finish (WithDrain), and Run returns nil. Brokers that are away are
// waited for. The options are those of processors.New about connections.
func (w *Worker) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	err := processors.Consume(ctx, brokers, processors.Consumption{
		Group: w.rules.group, Topics: []string{w.topics.ToolUse.Name()}, Handle: w.Handle,
		// Calls wait for their tool in the handler, so that one tool does not hold up the others.
		Concurrency: w.rules.window, Window: w.rules.window, Drain: w.rules.drain,
	}, append([]processors.Option{processors.WithLogger(w.rules.logger)}, opts...)...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// Handle handles one record of tool-use, for callers with a consumer of their own. It returns nil when the call is
// settled: its result is acknowledged, it is pending, or it is another worker's. A repeat of a settled call publishes the
// same result again; a repeat of a call that is still running waits for it. An error says that Handle was stopped, by ctx
// or by a publisher that is closed; the record must be redelivered.
func (w *Worker) Handle(ctx context.Context, r processors.Inbound) error {
	if r.Value == nil {
		return nil
	}
	call, err := w.readCall(r)
	if err != nil {
		return w.refuse(ctx, r, err)
	}
	t, known := w.tools[call.Name]
	if !known && w.rules.leaveOthers {
		return nil
	}
	return w.calls.Settle(ctx, call.memoryKey(), w.shorten(call), func() (processors.Outbound, error) {
		if !known {
			return w.answer(call, failed("there is no tool of this name", reasonUnknown), 0)
		}
		return w.settle(ctx, t, call)
	})
}

// settle runs the tool and returns the record of its result, none where it is pending. Its error says that it was
// interrupted.
func (w *Worker) settle(ctx context.Context, t tool, c Call) (none processors.Outbound, err error) {
	select {
	case t.places <- struct{}{}:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	begun := w.rules.clock.Now()
	left := c.Deadline.Sub(begun)
	if left <= 0 {
		<-t.places
		return w.answer(c, failed("the call was too old when its tool could begin", reasonTimeout), 0)
	}
	inner, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	came := make(chan outcome, 1)
	go func() {
		// Also where nobody waits for the tool any more: it keeps its place until it returns.
		defer func() { <-t.places }()
		came <- attempt(inner, t.run, c)
	}()
	var o outcome
	select {
	case o = <-came:
	case <-inner.Done():
		select {
		case o = <-came: // it was in time after all
		default:
			o.err = inner.Err()
		}
	}
	if ctx.Err() != nil && o.err != nil {
		return none, ctx.Err() // what the tool says to that is not its result
	}
	if _, ok := o.value.(Pending); ok && o.err == nil {
		return none, nil
	}
	return w.answer(c, o.result(inner), w.rules.clock.Now().Sub(begun))
}

// outcome is what a tool returned.
type outcome struct {
	value any
	err   error
}

// errPanic is a tool that panicked. What it panicked with is not for the model.
var errPanic = errors.New("the tool panicked")

func attempt(ctx context.Context, run Func, c Call) (o outcome) {
	defer func() {
		if thrown := recover(); thrown != nil {
			o = outcome{nil, errPanic}
		}
	}()
	value, err := run(ctx, c)
	return outcome{value, err}
}

func (o outcome) result(ctx context.Context) result {
	switch {
	case o.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failed("the tool did not end before the call's deadline", reasonTimeout)
	case o.err != nil:
		return failed(o.err.Error(), reasonFailed)
	}
	res, err := resultOf(o.value)
	if err != nil {
		return failed("what the tool returned is no JSON", reasonInvalid)
	}
	return res
}

// answer is the record of a result. One that the turn could not read is replaced by an error.
func (w *Worker) answer(c Call, res result, took time.Duration) (processors.Outbound, error) {
	out, err := w.record(c, res, took)
	if err != nil {
		return w.record(c, failed("what the tool returned is nested too deep", reasonInvalid), took)
	}
	return out, nil
}

// shorten replaces a result that does not fit into a record by an error.
func (w *Worker) shorten(c Call) settled.Shorten {
	done := false
	return func(out processors.Outbound) (processors.Outbound, bool) {
		if done {
			return out, false
		}
		done = true
		was := w.topics.ToolUseResult.Codec().Unmarshal(out.Value).Value
		text := fmt.Sprintf("the result of %d bytes does not fit into a record", len(was.Result))
		out, err := w.record(c, failed(text, reasonTooLarge), time.Duration(was.LatencyMS)*time.Millisecond)
		return out, err == nil
	}
}

// asItStands is for a record that nothing shorter replaces.
func asItStands(out processors.Outbound) (processors.Outbound, bool) { return out, false }

// refuse dead-letters a record that is no call, as FlightDeck's workers do.
func (w *Worker) refuse(ctx context.Context, r processors.Inbound, reason error) error {
	w.rules.logger.Warn("record of tool-use is dead-lettered", zap.Int32("partition", r.Partition),
		zap.Int64("offset", r.Offset), zap.Error(reason))
	out := processors.Outbound{
		Topic: w.topics.ToolUseDLQ.Name(), Key: string(r.Key), Value: r.Value, Headers: goka.Headers{
			topics.HeaderErrorReason:          []byte(reason.Error()),
			topics.HeaderErrorSourceTopic:     []byte(r.Topic),
			topics.HeaderErrorSourcePartition: []byte(strconv.Itoa(int(r.Partition))),
			topics.HeaderErrorSourceOffset:    []byte(strconv.FormatInt(r.Offset, 10)),
			topics.HeaderErrorGroup:           []byte(w.rules.group),
		},
	}
	err := w.calls.Publish(ctx, out, asItStands)
	if errors.Is(err, processors.ErrTooLarge) {
		// Its headers do not fit beside it. It stands where it stood, which is logged.
		return nil
	}
	return err
}

package processors_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/tester"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// asked is a record of the tests' input topic.
type asked struct {
	Session *string `json:"session"`
	Text    string  `json:"text"`
}

const (
	group   = goka.Group("floor")
	askName = "asks"
)

var (
	asks    = topics.New(topics.Spec{Name: askName}, codec.JSON[asked]())
	answers = topics.New(topics.Spec{Name: "answers"}, codec.String())
)

// rig is a stock Goka processor on goka/tester.
type rig struct {
	t       *testing.T
	gt      *tester.Tester
	answers *tester.QueueTracker
	dlq     *tester.QueueTracker
	loop    *tester.QueueTracker
}

func newRig(t *testing.T, h processors.Handler[asked], opts ...goka.ProcessorOption) *rig {
	return newRigOf(t, []processors.Source{processors.Input(asks, h)}, opts...)
}

func newRigOf(t *testing.T, inputs []processors.Source, opts ...goka.ProcessorOption) *rig {
	t.Helper()
	gt := tester.New(t)
	edges := processors.Edges(group, inputs...)
	edges = append(edges, goka.Persist(codec.String()), goka.Output(answers.Stream(), answers.Codec()))
	graph := goka.DefineGroup(group, edges...)
	options := append([]goka.ProcessorOption{
		goka.WithTester(gt), goka.WithNilHandling(goka.NilDecode), goka.WithLogger(quiet{}),
	}, opts...)
	p, err := goka.NewProcessor(nil, graph, options...)
	require.NoError(t, err)
	r := &rig{t: t, gt: gt}
	r.answers = gt.NewQueueTracker("answers")
	r.dlq = gt.NewQueueTracker("floor-dlq")
	r.loop = gt.NewQueueTracker("floor-loop")
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ran)
	})
	return r
}

// pipe hands over a record and waits until it and what it brought about are done.
func (r *rig) pipe(key string, raw []byte, headers goka.Headers) {
	r.t.Helper()
	d := codec.Decoded[asked]{Raw: raw, Err: errRaw}
	if raw == nil {
		d.Err = nil
	}
	r.gt.Consume(askName, key, d, tester.WithHeaders(headers), tester.WithTime(stamp))
}

type letter struct {
	key     string
	value   []byte
	headers goka.Headers
}

func next(q *tester.QueueTracker) (letter, bool) {
	headers, key, raw, ok := q.NextRawWithHeaders()
	return letter{key, raw, headers}, ok
}

func (r *rig) letter() letter {
	r.t.Helper()
	l, ok := next(r.dlq)
	require.True(r.t, ok, "no dead letter")
	return l
}

func (r *rig) none(q *tester.QueueTracker) {
	r.t.Helper()
	_, ok := next(q)
	require.False(r.t, ok)
}

var (
	stamp  = time.UnixMilli(1_700_000_000_123)
	errRaw = context.Canceled // any: it makes the codec write raw bytes
)

type quiet struct{}

func (quiet) Print(...any)          {}
func (quiet) Println(...any)        {}
func (quiet) Printf(string, ...any) {}

// gokaContext lets a struct embed goka.Context, which has a method of the interface's own name.
type gokaContext = goka.Context

// runtimeContext is the context of this project's runtime, for a group of four partitions of which this is the first.
type runtimeContext struct {
	gokaContext
	owns  func(key string) bool
	now   time.Time
	trace func(what string)
}

func (c runtimeContext) Now() time.Time     { return c.now }
func (c runtimeContext) Owns(k string) bool { return c.owns(k) }

func (c runtimeContext) EmitWithHeaders(topic goka.Stream, key string, value any, headers goka.Headers) {
	c.Emit(topic, key, value, goka.WithCtxEmitHeaders(headers))
}

func (c runtimeContext) EmitWithID(topic goka.Stream, key string, value any, id string) {
	c.EmitWithHeaders(topic, key, value, runtimeapi.IDHeaders(id))
}

func (runtimeContext) Part(uint32) ([]byte, error) { return nil, nil }

func (runtimeContext) Parts() ([]uint32, error) { return nil, nil }

func (c runtimeContext) SetPart(n uint32, value []byte) {
	what := "part "
	if value == nil {
		what = "no part "
	}
	c.trace(what + strconv.Itoa(int(n)))
}

var _ runtimeapi.Runtime = runtimeContext{}

func underRuntime(owns func(key string) bool, more func(goka.Context) goka.Context) goka.ProcessorOption {
	return goka.WithContextWrapper(func(ctx goka.Context) goka.Context {
		trace := func(string) {}
		if more != nil {
			ctx = more(ctx)
			if t, ok := ctx.(tracing); ok {
				trace = func(what string) { *t.order = append(*t.order, what) }
			}
		}
		return runtimeContext{gokaContext: ctx, owns: owns, now: stamp.Add(time.Second), trace: trace}
	})
}

func everyKey(string) bool { return true }

// tracing notes the order of effects.
type tracing struct {
	gokaContext
	order *[]string
}

func (c tracing) Emit(topic goka.Stream, key string, value any, o ...goka.ContextOption) {
	*c.order = append(*c.order, string(topic))
	c.gokaContext.Emit(topic, key, value, o...)
}

func (c tracing) SetValue(value any, o ...goka.ContextOption) {
	*c.order = append(*c.order, "row")
	c.gokaContext.SetValue(value, o...)
}

func withHeaders(h goka.Headers) tester.EmitOption { return tester.WithHeaders(h) }

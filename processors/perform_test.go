package processors

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/topics"
)

// plainContext is Goka's context as far as an edge uses it. Its Fail returns, as Goka's does while it shuts down.
type plainContext struct {
	gokaContext
	failed   error
	emitted  int
	tableBad bool
}

type gokaContext = goka.Context

func (c *plainContext) Group() goka.Group     { return "floor" }
func (c *plainContext) Topic() goka.Stream    { return "asks" }
func (c *plainContext) Partition() int32      { return 2 }
func (c *plainContext) Offset() int64         { return 7 }
func (c *plainContext) Key() string           { return "s-1" }
func (c *plainContext) Timestamp() time.Time  { return time.Time{} }
func (c *plainContext) Headers() goka.Headers { return nil }
func (c *plainContext) Fail(err error)        { c.failed = err }

func (c *plainContext) Value() any {
	if c.tableBad {
		panic("goka: table is gone")
	}
	return nil
}

func (c *plainContext) Emit(goka.Stream, string, any, ...goka.ContextOption) { c.emitted++ }

func TestHandlerErrorFailsAndPanics(t *testing.T) {
	ctx, cause := &plainContext{}, errors.New("disk is full")
	thrown := thrownBy(func() {
		perform(newContext(ctx, defaults("floor"), []byte("x")), StageHandle, func(c *Context) error {
			require.NoError(t, c.Emit("answers", "s-1", "x", nil))
			return cause
		})
	})
	var err *RecordError
	require.ErrorAs(t, ctx.failed, &err)
	require.Equal(t, ctx.failed, thrown, "Fail alone returns while Goka shuts down")
	require.ErrorIs(t, err, cause)
	require.Equal(t, &RecordError{
		Group: "floor", Topic: "asks", Partition: 2, Offset: 7, Key: "s-1", Stage: StageHandle, Err: cause,
	}, err)
	require.EqualError(t, err, `processors: group floor, record asks/2@7, key "s-1", handle: disk is full`)
	require.Zero(t, ctx.emitted)
}

// retryingContext is the context of a runtime that calls failed handlers again. It records the dead letter.
type retryingContext struct {
	plainContext
	verdicts []runtimeapi.Verdict
	failures int
	at       error // of FailAtRecord
	ended    bool
	reason   string
}

func (c *retryingContext) Now() time.Time   { return time.Time{} }
func (c *retryingContext) Owns(string) bool { return true }
func (c *retryingContext) EmitWithID(topic goka.Stream, key string, value any, id string) {
	c.emitted++
}
func (c *retryingContext) Part(uint32) ([]byte, error) { return nil, errors.New("store is closed") }
func (c *retryingContext) Parts() ([]uint32, error)    { return nil, nil }
func (c *retryingContext) SetPart(uint32, []byte)      {}
func (c *retryingContext) Ended() bool                 { return c.ended }
func (c *retryingContext) FailAtRecord(err error)      { c.at = err }

func (c *retryingContext) EmitWithHeaders(_ goka.Stream, _ string, _ any, headers goka.Headers) {
	c.emitted++
	c.reason = string(headers[topics.HeaderErrorReason])
}

func (c *retryingContext) HandlerFailed(error) (runtimeapi.Verdict, int) {
	c.failures++
	next := c.verdicts[0]
	c.verdicts = c.verdicts[1:]
	return next, c.failures
}

func TestRuntimeDecidesWhatFollowsAFailure(t *testing.T) {
	cause := errors.New("disk is full")
	fails := func(c *Context) error {
		if err := c.Emit("answers", "s-1", "x", nil); err != nil {
			return err
		}
		return cause
	}
	do := func(h func(*Context) error, confidential bool, verdicts ...runtimeapi.Verdict) (*retryingContext, any) {
		ctx := &retryingContext{verdicts: verdicts}
		c := newContext(ctx, defaults("floor"), []byte("x"))
		c.record.confidential = confidential
		return ctx, thrownBy(func() { perform(c, StageHandle, h) })
	}
	ctx, thrown := do(fails, false, runtimeapi.Retry, runtimeapi.Retry, runtimeapi.GiveUp)
	require.Nil(t, thrown)
	require.Equal(t, "3 attempts failed: disk is full", ctx.reason)
	require.Equal(t, 1, ctx.emitted, "failed attempts have no effects")

	ctx, _ = do(fails, true, runtimeapi.GiveUp)
	require.Equal(t, "1 attempts failed: the topic is confidential, the error is in the log", ctx.reason)

	ctx, thrown = do(fails, false, runtimeapi.Retry, runtimeapi.Ended)
	require.Nil(t, thrown)
	require.Zero(t, ctx.emitted)

	ctx, thrown = do(fails, false, runtimeapi.Fail)
	require.ErrorIs(t, thrown.(error), cause)
	require.Zero(t, ctx.emitted)

	ctx, thrown = do(func(*Context) error { return fmt.Errorf("%w: version 9", ErrKeepRecord) }, false)
	require.Nil(t, thrown)
	require.ErrorIs(t, ctx.at, ErrKeepRecord)
	require.Zero(t, ctx.emitted+ctx.failures)

	ctx, thrown = do(func(c *Context) error {
		_, err := c.Part(1)
		return err
	}, false)
	require.ErrorContains(t, thrown.(error), "store is closed", "not the handler's failure")
	require.Zero(t, ctx.emitted+ctx.failures)

	in := Input(topics.New(topics.Spec{Name: "asks"}, codec.Bytes()), nil).in.(*input[[]byte])
	in.receive(&retryingContext{ended: true}, defaults("floor"), nil)
}

func TestPanicOfGokaIsLeftToGoka(t *testing.T) {
	ctx := &plainContext{tableBad: true}
	for name, h := range map[string]func(*Context) error{
		"passing": func(c *Context) error { c.Value(); return nil },
		"swallowing": func(c *Context) error {
			defer func() { _ = recover() }()
			c.Value()
			return nil
		},
	} {
		thrown := thrownBy(func() { perform(newContext(ctx, defaults("floor"), nil), StageHandle, h) })
		require.Equal(t, "goka: table is gone", thrown, name)
	}
	require.Zero(t, ctx.emitted)
}

func TestDeadlineRunsAsARecordDoes(t *testing.T) {
	ctx := &plainContext{}
	OnDeadline(ctx, func(c *Context) error { return c.Emit("answers", c.Key(), "late", nil) })
	require.Equal(t, 1, ctx.emitted)
	OnDeadline(ctx, func(*Context) error { panic("bug") })
	require.Equal(t, 2, ctx.emitted, "a dead letter")
	require.NotNil(t, thrownBy(func() { OnDeadline(ctx, func(*Context) error { return errors.New("x") }) }))
	var err *RecordError
	require.ErrorAs(t, ctx.failed, &err)
	require.Equal(t, StageDeadline, err.Stage)
}

func TestForeignValueFailsByName(t *testing.T) {
	ctx := &plainContext{}
	in := Input(topics.New(topics.Spec{Name: "asks"}, codec.Bytes()), nil)
	require.NotNil(t, thrownBy(func() { in.in.(*input[[]byte]).receive(ctx, defaults("floor"), 42) }))
	require.ErrorIs(t, ctx.failed, ErrType)
}

func TestShrinkCutsValueThenHeadersThenKey(t *testing.T) {
	own := func(n int) goka.Headers {
		return goka.Headers{"trace": []byte(strings.Repeat("h", n)), topics.HeaderErrorReason: []byte("r")}
	}
	const limit = 1000
	for name, tc := range map[string]struct {
		key, value int
		headers    goka.Headers
		wantKey    int
		wantOwn    bool
	}{
		"nothing":           {10, 100, own(10), 10, true},
		"value":             {10, 5000, own(10), 10, true},
		"value and headers": {10, 5000, own(5000), 10, false},
		"all":               {5000, 5000, own(5000), 700, false},
		"key alone":         {5000, 0, own(10), 700, false},
	} {
		key, value := shrink(strings.Repeat("k", tc.key), make([]byte, tc.value), tc.headers, limit)
		require.LessOrEqual(t, recordBytes(key, value, tc.headers), limit, name)
		require.Equal(t, tc.wantOwn, tc.headers["trace"] != nil, name)
		require.NotNil(t, value, name)
		if tc.wantKey == tc.key {
			require.Len(t, key, tc.key, name)
		} else {
			require.Greater(t, len(key), tc.wantKey, name)
		}
		require.Equal(t, tc.value+tc.key > limit, tc.headers[topics.HeaderErrorTruncated] != nil, name)
	}
}

func TestReasonIsOneShortLineOfText(t *testing.T) {
	require.Equal(t, "a b ? c", cleanReason("a\nb \xff\x00c"))
	long := cleanReason(strings.Repeat("ä", 2000))
	require.Equal(t, strings.Repeat("ä", 512), long)
	require.Equal(t, strings.Repeat("ä", 511), cleanReason("x" + strings.Repeat("ä", 2000))[1:])
}

func thrownBy(f func()) (thrown any) {
	defer func() { thrown = recover() }()
	f()
	return nil
}

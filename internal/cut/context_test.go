package cut

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// left is Goka's context. It records the calls that reach it, and the results given to DeferCommit.
type left struct {
	gokaContext
	topics []string
	rows   []any
	open   int
	ended  chan error
	at     time.Time // of the record
}

func (c *left) Partition() int32     { return 0 }
func (c *left) Key() string          { return "k" }
func (c *left) Topic() goka.Stream   { return "in" }
func (c *left) Timestamp() time.Time { return c.at }
func (c *left) Fail(error)           {}

func (c *left) Emit(topic goka.Stream, _ string, _ any, options ...goka.ContextOption) {
	apply(options)
	c.topics = append(c.topics, string(topic))
}

func (c *left) SetValue(row any, options ...goka.ContextOption) {
	apply(options)
	c.rows = append(c.rows, row)
}

func (c *left) DeferCommit() func(error) {
	c.open++
	return func(err error) { c.ended <- err }
}

// memory is a store of rows.
type memory map[string]string

func (m memory) Get(key string) ([]byte, error) { return []byte(m[key]), nil }
func (m memory) Parts(string) ([]uint32, error) { return nil, nil }
func (m memory) Delete(key string) error        { delete(m, key); return nil }

func (m memory) Set(key string, value []byte) error {
	if string(value) == "full" {
		return errFull
	}
	m[key] = string(value)
	return nil
}

var errFull = errors.New("full")

func wrapped(t *testing.T, o ProducerOptions, edges ...goka.Edge) (*lined, *left, memory, runtimeapi.Runtime) {
	t.Helper()
	s, inGoka, rows := onLine(t, o), &left{ended: make(chan error, 10)}, memory{}
	edges = append(edges, goka.Output("out", codec.String()), goka.Persist(codec.String()))
	w := &Wrap{
		Edges: EdgesOf(goka.DefineGroup("g", edges...)), Failed: func(error) {},
		Rows: func(int32) Rows { return rows }, Clock: clock.System(),
	}
	return s, inGoka, rows, w.Context(inGoka, s.Producer).(runtimeapi.Runtime)
}

func (c *left) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-c.ended:
		return err
	case <-time.After(testTimeout):
		t.Fatal("Goka is not told")
		return nil
	}
}

// waits checks that Goka still has to wait for something.
func (c *left) waits(t *testing.T) {
	t.Helper()
	select {
	case err := <-c.ended:
		t.Fatal("Goka is notified too early", err)
	case <-time.After(5 * time.Millisecond):
	}
}

func TestOutputsAndRowsAreSentByOurProducerNotGokas(t *testing.T) {
	s, inGoka, rows, ctx := wrapped(t, ProducerOptions{Ordered: true})
	headers := goka.Headers{"id": []byte("1"), runtimeapi.HeaderNullKey: nil}
	ctx.EmitWithHeaders("out", "u", "first", headers)
	ctx.Emit("out", "u", "")
	ctx.Emit("out", "u", nil)
	ctx.SetValue("row")
	require.Equal(t, memory{"k": "row"}, rows)
	require.Len(t, headers, 2)

	first, empty, tombstone := s.next(t), s.next(t), s.next(t)
	require.Equal(t, []sarama.RecordHeader{{Key: []byte("id"), Value: []byte("1")}}, first.Headers)
	require.Nil(t, first.Key)
	require.Equal(t, "first", text(first))
	key, err := empty.Key.Encode()
	require.NoError(t, err)
	require.Equal(t, "u", string(key))
	require.Empty(t, empty.Headers)
	require.NotNil(t, empty.Value)
	require.Nil(t, tombstone.Value)

	settled := s.Seal()
	s.nothing(t) // the outputs are not acknowledged
	for _, m := range []*sarama.ProducerMessage{first, empty, tombstone} {
		inGoka.waits(t)
		s.ack(m)
	}
	require.NoError(t, inGoka.end(t))
	row := s.next(t)
	require.Equal(t, "table row", row.Topic+" "+text(row))
	s.ack(row)
	ended(t, settled)
	require.Equal(t, 1, inGoka.open, "a row is not waited for")
	require.Empty(t, inGoka.topics)
	require.Empty(t, inGoka.rows)
}

func TestIDIsTheOnlyHeaderOfItsOutput(t *testing.T) {
	s, inGoka, _, ctx := wrapped(t, ProducerOptions{}, goka.Output("both", codec.Bytes()),
		goka.Input("both", codec.String(), func(goka.Context, any) {}))
	ctx.EmitWithHeaders("out", "u", "x", goka.Headers{"turntable.id": []byte("1")})
	ctx.EmitWithID("out", "u", "x", "1")
	like, m := s.next(t), s.next(t)
	require.Equal(t, like.Headers, m.Headers)
	require.Equal(t, text(like), text(m))
	require.Equal(t, keyOf(like), keyOf(m))

	ctx.EmitWithID("out", "u", nil, "")
	m = s.next(t)
	require.Empty(t, m.Headers)
	require.Nil(t, m.Value)
	ctx.EmitWithID("both", "u", "x", "1")
	require.Equal(t, []string{"both"}, inGoka.topics)
}

func TestRecordIsDoneWhenAllOutputsAreAcknowledged(t *testing.T) {
	s, inGoka, _, ctx := wrapped(t, ProducerOptions{})
	ctx.EmitWithID("out", "u", "a", "1")
	a := s.next(t)
	ctx.EmitWithID("out", "u", "b", "2")
	b := s.next(t)
	s.ack(a)
	inGoka.waits(t)
	s.ack(b)
	require.NoError(t, inGoka.end(t))

	ctx.EmitWithID("out", "u", "c", "3") // the callback continues
	inGoka.waits(t)
	s.ack(s.next(t))
	require.NoError(t, inGoka.end(t))
	require.Equal(t, 2, inGoka.open)
}

func TestFirstErrorOfACallbackIsReported(t *testing.T) {
	s, inGoka, _, ctx := wrapped(t, ProducerOptions{Ordered: true})
	for range 3 {
		ctx.Emit("out", "u", "x")
	}
	s.errs <- &sarama.ProducerError{Msg: s.next(t), Err: sarama.ErrMessageSizeTooLarge}
	inGoka.waits(t)
	s.errs <- &sarama.ProducerError{Msg: s.next(t), Err: sarama.ErrNotEnoughReplicas}
	inGoka.waits(t)
	s.ack(s.next(t))
	require.EqualError(t, inGoka.end(t), "error emitting to out: cut: topic out: "+sarama.ErrMessageSizeTooLarge.Error())
}

// Acknowledgements arrive while the callback emits: whenever all deferred commits are finished, no output of the callback
// is open.
func TestGokaIsNotifiedOnlyWhenNoOutputIsOpen(t *testing.T) {
	var o outputs
	var mu sync.Mutex
	waiting, open := 0, 0
	deferCommit := func() func(error) {
		mu.Lock()
		defer mu.Unlock()
		waiting++
		return func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if waiting--; err != nil || waiting < 0 {
				t.Errorf("told %d times too often, or of %v", -waiting, err)
			}
			if waiting == 0 && open > 0 {
				t.Errorf("told while %d are open", open)
			}
		}
	}
	emitted, acks := make(chan struct{}, 8), sync.WaitGroup{}
	for range 2 {
		acks.Go(func() {
			for range emitted {
				mu.Lock()
				open--
				mu.Unlock()
				o.acknowledged("out", nil)
			}
		})
	}
	for range 5000 {
		o.add(deferCommit)
		mu.Lock()
		if open++; waiting == 0 {
			t.Error("Goka does not wait")
		}
		mu.Unlock()
		emitted <- struct{}{}
	}
	close(emitted)
	acks.Wait()
	require.Zero(t, waiting)
	require.Zero(t, open)
}

func TestOutputThatIsRefusedFailsItsCallback(t *testing.T) {
	s, inGoka, _, ctx := wrapped(t, ProducerOptions{Ordered: true})
	ctx.Emit("out", "u", "x")
	s.errs <- &sarama.ProducerError{Msg: s.next(t), Err: sarama.ErrMessageSizeTooLarge}
	require.EqualError(t, inGoka.end(t), "error emitting to out: cut: topic out: "+sarama.ErrMessageSizeTooLarge.Error())
}

func TestWithoutALeaseNothingIsSentAndTheCallbackFails(t *testing.T) {
	s, inGoka, _, ctx := wrapped(t, ProducerOptions{Ordered: true, Lease: NewLease(time.Hour, Now)})
	ctx.Emit("out", "u", "x")
	require.ErrorContains(t, inGoka.end(t), ErrLease.Error())
	ctx.SetValue("row")
	require.ErrorIs(t, inGoka.end(t), ErrLease)
	s.nothing(t)
}

func TestRowThatIsNotStoredFails(t *testing.T) {
	s, _, _, ctx := wrapped(t, ProducerOptions{})
	require.PanicsWithError(t, "error storing value: full", func() { ctx.SetValue("full") })
	s.Seal()
	s.nothing(t)
}

// Goka's own path would send a tombstone while it shuts down.
func TestEncodingErrorFailsTheCallback(t *testing.T) {
	s, inGoka, rows, ctx := wrapped(t, ProducerOptions{})
	for _, write := range []func(){func() { ctx.Emit("out", "u", 1) }, func() { ctx.SetValue(1) }} {
		require.Panics(t, write)
	}
	require.Empty(t, inGoka.topics)
	require.Empty(t, inGoka.rows)
	require.Empty(t, rows)
	require.Zero(t, inGoka.open)
	s.Seal()
	s.nothing(t)
}

// Invalid emits, and those with options that only Goka can read, take Goka's own path.
func TestInvalidEmitsTakeGokasOwnPath(t *testing.T) {
	s, inGoka, rows, ctx := wrapped(t, ProducerOptions{},
		goka.Loop(codec.String(), func(goka.Context, any) {}),
		goka.Output("both", codec.Bytes()), goka.Input("both", codec.String(), func(goka.Context, any) {}),
		goka.Output("g-table", codec.String()), goka.Output("g-loop", codec.String()))
	for _, topic := range []goka.Stream{"", "unknown", "both", "g-table", "g-loop"} {
		ctx.Emit(topic, "u", "x")
	}
	ctx.Emit("out", "u", "x", goka.WithCtxEmitHeaders(goka.Headers{"id": nil}))
	require.Equal(t, []string{"", "unknown", "both", "g-table", "g-loop", "out"}, inGoka.topics)

	ctx.SetValue(nil)
	ctx.SetValue("x", goka.WithCtxEmitHeaders(goka.Headers{"id": nil}))
	require.Equal(t, []any{nil, "x"}, inGoka.rows)
	require.Empty(t, rows)
	require.Zero(t, inGoka.open)
	s.Seal()
	s.nothing(t)
}

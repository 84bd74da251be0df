package instance_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

var errPoison = errors.New("poison")

// picky is the format of a careful program: it refuses what it does not know.
type picky struct{}

func (picky) Marshal(v string) ([]byte, error) { return []byte(v), nil }

func (picky) Unmarshal(raw []byte) (string, error) {
	if string(raw) == "poison" {
		return "", errPoison
	}
	return string(raw), nil
}

// explosive is the format of a careless one.
type explosive struct{ picky }

func (explosive) Unmarshal(raw []byte) (string, error) {
	if string(raw) == "poison" {
		panic("index out of range")
	}
	return string(raw), nil
}

// plain is a format as a codec of Goka's, without ours around it.
type plain struct{ codec.Format[string] }

func (c plain) Encode(value any) ([]byte, error)   { return c.Marshal(value.(string)) }
func (c plain) Decode(raw []byte) (v any, _ error) { return c.Unmarshal(raw) }

// forwardingPlain is forwarding with codecs of Goka's kind.
func forwardingPlain(f codec.Format[string]) *goka.GroupGraph {
	return goka.DefineGroup("g",
		goka.Input("in", plain{f}, func(ctx goka.Context, m any) { ctx.Emit("out", ctx.Key(), m) }),
		goka.Output("out", plain{f}))
}

// forwardingOurs is forwarding with typed edges.
func forwardingOurs(formats map[string]codec.Format[string]) *goka.GroupGraph {
	out := topics.New(topics.Spec{Name: "out"}, codec.String())
	var inputs []processors.Source
	for name, f := range formats {
		in := topics.New(topics.Spec{Name: name}, codec.Of(f))
		inputs = append(inputs, processors.Input(in, func(c *processors.Context, d codec.Decoded[string]) error {
			return processors.Emit(c, out, c.Key(), d.Value, nil)
		}))
	}
	edges := processors.Edges("g", inputs...)
	return goka.DefineGroup("g", append(edges, goka.Output(out.Stream(), out.Codec()))...)
}

// In stock Goka a decode error shuts the processor down, and again after every restart.
func TestPoisonDoesNotStopTheGroup(t *testing.T) {
	t.Parallel()
	t.Run("stock stops at every start", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		put(t, brokers, keyed("in", "k", "poison"), keyed("in", "k", "after"))
		for range 2 {
			require.ErrorContains(t, stock(t, brokers, forwardingPlain(picky{}), oldest).wait(t), "poison")
		}
		require.Equal(t, int64(-1), committed(t, brokers, "g", "in", codec.PartitionOf("k", 2)))
	})
	t.Run("ours passes by", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "a", "b", "out")
		graph := func() *goka.GroupGraph {
			return forwardingOurs(map[string]codec.Format[string]{"a": picky{}, "b": explosive{}})
		}
		for _, in := range []string{"a", "b"} {
			put(t, brokers, keyed(in, "k", in+" before"), keyed(in, "k", "poison"), keyed(in, "k", in+" after"))
		}
		inst := run(t, instance.Config{Brokers: brokers, Graph: graph(), DeadLetters: "g-dlq"})
		require.ElementsMatch(t, []string{"a before", "a after", "b before", "b after"},
			values(take(t, brokers, "out", 4)))
		letters := take(t, brokers, "g-dlq", 2)
		inst.stop()
		require.NoError(t, inst.wait(t))
		require.Zero(t, inst.Health().Restarts)

		sources := map[string]bool{}
		for _, l := range letters {
			require.Equal(t, []string{"k", "poison"}, []string{string(l.Key), string(l.Value)})
			h := headersOf(l)
			sources[h[topics.HeaderErrorSourceTopic]] = true
			require.Equal(t, "1", h[topics.HeaderErrorSourceOffset])
			require.Equal(t, "g", h[topics.HeaderErrorGroup])
			require.NotEmpty(t, h[topics.HeaderErrorReason])
		}
		require.Equal(t, map[string]bool{"a": true, "b": true}, sources)

		put(t, brokers, keyed("a", "k", "a, later"), keyed("b", "k", "b, later"))
		run(t, instance.Config{Brokers: brokers, Graph: graph(), DeadLetters: "g-dlq"})
		require.ElementsMatch(t, []string{"a, later", "b, later"}, values(take(t, brokers, "out", 6))[4:])
		require.Len(t, take(t, brokers, "g-dlq", 2), 2, "poison is met once")
	})
}

func headersOf(r *kgo.Record) map[string]string {
	h := map[string]string{}
	for _, header := range r.Headers {
		h[header.Key] = string(header.Value)
	}
	return h
}

// inChild runs a test once more in a process of its own, where fatal is called, and returns what it printed. The
// process must die.
func inChild(t *testing.T, fatal func()) string {
	t.Helper()
	const child = "TURNTABLE_TEST_CHILD"
	if os.Getenv(child) != "" {
		fatal()
		return ""
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run="+pattern)
	cmd.Env = append(os.Environ(), child+"=1")
	printed, err := cmd.CombinedOutput()
	require.NoError(t, ctx.Err())
	require.Error(t, err, "the process lives")
	return string(printed)
}

// In stock Goka a codec that panics kills the process, with every group in it. The test above shows what this runtime
// does instead.
func TestStockGokaCrashesOnAPanickingCodec(t *testing.T) {
	t.Parallel()
	printed := inChild(t, func() {
		_, brokers := cluster(t, "in", "out")
		put(t, brokers, keyed("in", "k", "poison"))
		_ = stock(t, brokers, forwardingPlain(explosive{}), oldest).wait(t)
	})
	require.Contains(t, printed, "negative WaitGroup counter")
}

// In stock Goka an emit after the callback has returned settles its record twice.
func TestEmitAfterTheCallbackReturnedIsRefused(t *testing.T) {
	t.Parallel()
	t.Run("stock dies", func(t *testing.T) {
		t.Parallel()
		printed := inChild(t, func() {
			_, brokers := cluster(t, "in", "out")
			put(t, brokers, keyed("in", "k", "x"))
			var late goka.Context
			returned := make(chan struct{})
			g := goka.DefineGroup("g", goka.Output("out", codec.String()),
				goka.Input("in", codec.String(), func(ctx goka.Context, _ any) { late = ctx; close(returned) }))
			r := stock(t, brokers, g, func(c *sarama.Config) {
				oldest(c)
				c.Producer.Flush.Frequency, c.Producer.Flush.Bytes = 0, 0
			})
			receive(t, returned)
			eventually(t, func() bool { return committed(t, brokers, "g", "in", codec.PartitionOf("k", 2)) == 1 })
			// It panics here where the record is acknowledged before Emit returns, and elsewhere if not. In a goroutine of
			// the test it would have the test clean up first, and a stock processor does not stop after that.
			go late.Emit("out", "k", "late")
			_ = r.wait(t)
		})
		require.Contains(t, printed, "negative WaitGroup counter")
	})
	t.Run("ours refuses it", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		put(t, brokers, keyed("in", "k", "x"))
		contexts := make(chan *processors.Context, 2)
		in := topics.New(topics.Spec{Name: "in"}, codec.String())
		out := topics.New(topics.Spec{Name: "out"}, codec.String())
		edges := processors.Edges("g", processors.Input(in,
			func(c *processors.Context, d codec.Decoded[string]) error {
				contexts <- c
				return processors.Emit(c, out, c.Key(), d.Value, nil)
			}))
		g := goka.DefineGroup("g", append(edges, goka.Output(out.Stream(), out.Codec()))...)
		inst := run(t, instance.Config{Brokers: brokers, Graph: g, DeadLetters: "g-dlq"})
		late := receive(t, contexts)
		take(t, brokers, "out", 1)
		require.ErrorIs(t, processors.Emit(late, out, "k", "late", nil), processors.ErrReturned)
		require.ErrorIs(t, late.SetValue("late"), processors.ErrReturned)

		put(t, brokers, keyed("in", "k", "y"))
		require.Equal(t, []string{"x", "y"}, values(take(t, brokers, "out", 2)))
		require.Zero(t, inst.Health().Restarts)
	})
}

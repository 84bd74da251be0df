package processors

import (
	"errors"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// keyed is a context with a key, which notes what is sent: dead letters, and what goes to the loop.
type keyed struct {
	plainContext
	key    string
	looped int
}

func (c *keyed) Key() string { return c.key }

func (c *keyed) Loopback(string, any, ...goka.ContextOption) { c.looped++ }

var texts = topics.New(topics.Spec{Name: "asks"}, codec.JSON[string]())

// Whether Goka decodes or the edge does makes no difference.
func TestKnownRecordsAreHandledWithoutTheHandler(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		key, value                        string
		asked, handled, letters, rerouted int
	}{
		"known":           {"s-1", `"known"`, 1, 0, 0, 0},
		"another":         {"s-1", `"x"`, 1, 1, 0, 0},
		"known poison":    {"s-1", `known`, 1, 0, 0, 0},
		"poison":          {"s-1", `"x`, 1, 0, 1, 0},
		"empty":           {"s-1", ``, 1, 0, 1, 0},
		"tombstone":       {"s-1", "-", 0, 1, 0, 0},
		"no key":          {"", `"known"`, 0, 0, 1, 0},
		"another key":     {"s-2", `"s-1"`, 1, 0, 0, 1},
		"panic":           {"s-1", `"panic"`, 1, 0, 1, 0},
		"panic of Goka's": {"s-1", `"row"`, 1, 0, 0, 0},
	} {
		for _, late := range []bool{false, true} {
			ctx, asked, handled := &keyed{key: tc.key}, 0, 0
			var kept *Context
			source := Input(texts, func(_ *Context, in codec.Decoded[string]) error {
				require.Equal(t, in.Tombstone(), in.Value == "")
				handled++
				return nil
			}, KeyedBy(func(v string) *string {
				if v != "s-1" {
					v = tc.key
				}
				return &v
			}), Known[string](func(c *Context, raw []byte) bool {
				asked, kept = asked+1, c
				require.Equal(t, tc.key, c.Key())
				switch string(raw) {
				case `"panic"`:
					panic(boom)
				case `"row"`:
					ctx.tableBad = true
					defer func() { _ = recover() }()
					c.Value()
				}
				return string(raw) == `"known"` || string(raw) == `known`
			}))
			in := source.in.(*input[string])
			var raw []byte
			if tc.value != "-" {
				raw = []byte(tc.value)
			}
			msg, err := in.edge(defaults("floor"), late).Codec().Decode(raw)
			require.NoError(t, err)
			_, undecided := msg.(undecoded)
			require.Equal(t, late && raw != nil, undecided)

			thrown := thrownBy(func() { in.receive(ctx, defaults("floor"), msg) })
			require.Equal(t, name == "panic of Goka's", thrown != nil, name)
			require.Equal(t, []int{tc.asked, tc.handled, tc.letters, tc.rerouted},
				[]int{asked, handled, ctx.emitted, ctx.looped}, name)
			if kept != nil && tc.rerouted == 0 && tc.handled == 0 && name != "poison" && name != "empty" {
				require.ErrorIs(t, kept.Delete(), ErrReturned, name)
			}
		}
	}
}

// Goka has one codec for each topic. An output of a screened topic writes as before, and by the short way; what is read
// as a table is decoded by Goka.
func TestScreenedTopicsHaveOneCodec(t *testing.T) {
	input := func(opts ...EdgeOption[string]) Source { return Input(texts, nil, opts...) }
	known := Known[string](func(*Context, []byte) bool { return false })
	for name, tc := range map[string]struct {
		in   Source
		more goka.Edge
		late bool
	}{
		"screened":          {input(known), goka.Output("asks", texts.Codec()), true},
		"ordinary":          {input(), goka.Output("asks", texts.Codec()), false},
		"looked up as well": {input(known), goka.Lookup("asks", texts.Codec()), false},
	} {
		graph := goka.DefineGroup("floor", append(Edges("floor", tc.in), tc.more)...)
		_, err := New([]string{"localhost:9092"}, graph)
		require.NoError(t, err, name)
		codecs := 0
		for _, e := range bindGraph(graph, defaults("floor")).AllEdges() {
			if e.Topic() != "asks" {
				continue
			}
			codecs++
			_, late := e.Codec().(lateCodec)
			require.Equal(t, tc.late, late, name)
			raw, err := e.Codec().Encode("x")
			require.NoError(t, err)
			require.Equal(t, `"x"`, string(raw))
		}
		require.Equal(t, 2, codecs, name)
	}
}

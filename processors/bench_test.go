package processors

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/topics"
)

// handed is what Goka hands to a callback, under the runtime. It does with headers what Goka does, and no more.
type handed struct {
	gokaContext
	key     string
	headers goka.Headers
	effects int
}

var _ runtimeapi.Runtime = (*handed)(nil)

func (c *handed) Group() goka.Group           { return "floor" }
func (c *handed) Topic() goka.Stream          { return "asks" }
func (c *handed) Partition() int32            { return 2 }
func (c *handed) Offset() int64               { return 7 }
func (c *handed) Key() string                 { return c.key }
func (c *handed) Timestamp() time.Time        { return time.UnixMilli(1_700_000_000_123) }
func (c *handed) Headers() goka.Headers       { return c.headers }
func (c *handed) Value() any                  { return nil }
func (c *handed) Now() time.Time              { return time.UnixMilli(1_700_000_000_456) }
func (c *handed) Owns(key string) bool        { return codec.PartitionOf(key, 4) >= 0 }
func (c *handed) Part(uint32) ([]byte, error) { return nil, nil }
func (c *handed) Parts() ([]uint32, error)    { return nil, nil }
func (c *handed) SetPart(uint32, []byte)      { c.effects++ }

func (c *handed) Emit(_ goka.Stream, _ string, _ any, options ...goka.ContextOption) {
	applied(options)
	c.effects++
}

func (c *handed) EmitWithHeaders(goka.Stream, string, any, goka.Headers) { c.effects++ }
func (c *handed) EmitWithID(goka.Stream, string, any, string)            { c.effects++ }

func (c *handed) SetValue(_ any, options ...goka.ContextOption) {
	applied(options)
	c.effects++
}

// applied calls options as Goka does. Their parameter has no name outside of Goka.
func applied[F ~func(*O), O any](options []F) *O {
	o := new(O)
	for _, option := range options {
		option(o)
	}
	return o
}

// BenchmarkReceive is what an input edge costs beside Goka, its codec and its handler, which emits a record with an id
// and writes its row.
func BenchmarkReceive(b *testing.B) {
	for name, headers := range map[string]goka.Headers{
		"own":     {topics.HeaderID: []byte("0123456789abcdef0123456789abcdef"), "trace": []byte("00-4bf92f35-01")},
		"foreign": {"trace": []byte("00-4bf92f35-01")},
	} {
		b.Run(name, func(b *testing.B) {
			raw, row := make([]byte, 800), make([]byte, 3000)
			out := any(codec.Encoded(raw))
			h := func(c *Context, in codec.Decoded[[]byte]) error {
				_, _ = c.Value(), c.Now()
				cause := c.CauseID()
				if err := c.EmitWithID("answers", c.Key(), out, cause); err != nil {
					return err
				}
				return c.SetValue(row)
			}
			in := Input(topics.New(topics.Spec{Name: "asks"}, codec.Bytes()), h).in.(*input[[]byte])
			s := &settings{recordBytes: defaultRecordBytes}
			ctx := &handed{key: "s-1", headers: headers}
			msg := any(codec.Decoded[[]byte]{Value: raw, Raw: raw})
			b.ReportAllocs()
			for b.Loop() {
				in.receive(ctx, s, msg)
			}
			if ctx.effects == 0 {
				b.Fatal("no effects")
			}
		})
	}
}

// BenchmarkKnown is what a record costs whose handler would do nothing, with its codec: one that is known by its bytes, and
// one that is decoded first.
func BenchmarkKnown(b *testing.B) {
	catalog, err := topics.For("bench")
	if err != nil {
		b.Fatal(err)
	}
	user := "mira"
	session, text := "s-1", topics.Raw(`"`+strings.Repeat("Berth N4 is free from 17:30. ", 40)+`"`)
	raw, err := catalog.MessageInput.Codec().Marshal(topics.Message{SessionID: &session, UserID: &user, Content: text})
	if err != nil {
		b.Fatal(err)
	}
	h := func(*Context, codec.Decoded[topics.Message]) error { return nil }
	keyed := KeyedBy(func(m topics.Message) *string { return m.SessionID })
	known := Known[topics.Message](func(_ *Context, r []byte) bool { return bytes.Equal(r, raw) })
	for name, in := range map[string]Source{
		"known":   Input(catalog.MessageInput, h, keyed, known),
		"decoded": Input(catalog.MessageInput, h, keyed),
	} {
		b.Run(name, func(b *testing.B) {
			in := in.in.(*input[topics.Message])
			s := defaults("floor")
			c := in.edge(s, in.screened()).Codec()
			ctx := &handed{key: session, headers: goka.Headers{topics.HeaderID: []byte("0123456789abcdef")}}
			b.ReportAllocs()
			for b.Loop() {
				msg, err := c.Decode(raw)
				if err != nil {
					b.Fatal(err)
				}
				in.receive(ctx, s, msg)
			}
			if ctx.effects > 0 {
				b.Fatal("effects")
			}
		})
	}
}

package processors

import (
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// sequencing is a runtime that can acknowledge outputs one topic after the other.
type sequencing struct {
	handed
	sequenced []int // how many effects there were at each call
}

func (c *sequencing) Sequence() { c.sequenced = append(c.sequenced, c.effects) }

var _ runtimeapi.Sequencer = (*sequencing)(nil)

func TestOutputsAreASequenceOnRequestIfTheyHaveSeveralTopics(t *testing.T) {
	for name, c := range map[string]struct {
		order  bool
		topics []goka.Stream
		want   []int
	}{
		"several topics":     {true, []goka.Stream{"a", "a", "b"}, []int{0}},
		"one topic":          {true, []goka.Stream{"a", "a"}, nil},
		"no output":          {true, nil, nil},
		"without the method": {false, []goka.Stream{"a", "b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			runtime := &sequencing{handed: handed{key: "s"}}
			s := &settings{}
			for _, ctx := range []goka.Context{runtime, s.bind(runtime)} { // of a record, and of a deadline
				runtime.sequenced, runtime.effects = nil, 0
				callback := newContext(ctx, s, nil)
				perform(callback, StageHandle, func(h *Context) error {
					for _, topic := range c.topics {
						require.NoError(t, h.EmitWithID(topic, "s", []byte("x"), "id"))
					}
					if c.order {
						require.NoError(t, h.OrderOutputs())
					}
					return nil
				})
				require.Equal(t, c.want, runtime.sequenced)
				require.Len(t, c.topics, runtime.effects)
				require.ErrorIs(t, callback.OrderOutputs(), ErrReturned)
			}
		})
	}
}

package memoir_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/processors/processortest"
)

func TestForgottenUserHasNoParts(t *testing.T) {
	r := newRig(t, memoir.Config{})
	r.end("s1", "mira")
	pass := r.passes.Next()
	state, _ := r.table.Get("mira")
	part := state.Pending[0].Part
	require.NotNil(t, r.table.Part("mira", part))
	r.memories.PipeRaw("mira", nil)
	require.Nil(t, r.table.Part("mira", part))
	r.answer(pass, "likes tea")
	r.lookups.PipeRaw("mira", []byte(step+"}"), headers("x"))
	require.Nil(t, r.steps.Next().Value.MemoirContext)
	r.Advance(8 * 24 * time.Hour)
	require.Empty(t, r.table.Keys())
}

func TestForgettingAUserDeletesPartsThatNoRowNames(t *testing.T) {
	for name, damaged := range map[string]bool{"row": false, "damaged row": true} {
		t.Run(name, func(t *testing.T) {
			const left, other = 1_790_000_099, 1_790_000_098
			r := newRig(t, memoir.Config{})
			r.end("s1", "mira")
			r.passes.Next()
			state, _ := r.table.Get("mira")
			part := state.Pending[0].Part
			raw := processortest.Table(r.Driver, r.topics.MemoriesGroup(), codec.Bytes())
			raw.Put(runtimeapi.PartKey("mira", left), []byte("a snapshot that a crash left"))
			raw.Put(runtimeapi.PartKey("mirabelle", other), []byte("of another user"))
			if damaged {
				raw.Put("mira", []byte{0xff})
			}
			r.memories.PipeRaw("mira", nil)
			require.Nil(t, r.table.Part("mira", left))
			require.Nil(t, r.table.Part("mira", part))
			require.NotNil(t, r.table.Part("mirabelle", other))
			require.Empty(t, r.letters.Drain())
		})
	}
}

// A row without a memory is deleted in the end, with the parts that a crash left.
func TestDeletedRowLeavesNoParts(t *testing.T) {
	const left = 1_790_000_099
	r := newRig(t, memoir.Config{})
	r.end("s1", "mira")
	r.answer(r.passes.Next(), "")
	raw := processortest.Table(r.Driver, r.topics.MemoriesGroup(), codec.Bytes())
	raw.Put(runtimeapi.PartKey("mira", left), []byte("a snapshot that a crash left"))
	r.Advance(8 * 24 * time.Hour)
	require.Nil(t, raw.Raw("mira"))
	require.Nil(t, r.table.Part("mira", left))
}

package instance_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
)

// A failed record rolls its whole transaction back. A read-committed reader sees every record counted once, with a kept
// and with a lost local store.
func TestExactlyOnceSurvivesFailedRecords(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"lost store": "", "kept store": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, brokers := cluster(t, "in", "out")
			produce(t, brokers, "in", 300, 7)
			var seen, restarts atomic.Int64
			g := goka.DefineGroup("g",
				goka.Input("in", codec.String(), func(ctx goka.Context, _ any) {
					v := strconv.Itoa(count(ctx.Value()) + 1)
					ctx.Emit("out", ctx.Key(), v)
					ctx.SetValue(v)
					if n := seen.Add(1); n%57 == 0 && n < 300 {
						ctx.Fail(errBoom)
					}
				}),
				goka.Output("out", codec.String()), goka.Persist(codec.String()))
			run(t, instance.Config{
				Brokers: brokers, Graph: g, StorageDir: dir, InstanceID: "i1", Guarantee: instance.ExactlyOnce,
				Restart: instance.Restart{Initial: 10 * time.Millisecond, Max: 50 * time.Millisecond},
				Hooks:   instance.Hooks{Restart: func(error, time.Duration) { restarts.Add(1) }},
			})
			got := read(t, brokers, "out", 300)
			perKey := map[string]int{}
			for _, m := range got {
				perKey[string(m.Key)]++
				require.Equal(t, strconv.Itoa(perKey[string(m.Key)]), string(m.Value), "key %s", m.Key)
			}
			require.NotZero(t, restarts.Load())
		})
	}
}

func TestExactlyOnceNeedsAnInstance(t *testing.T) {
	t.Parallel()
	_, err := instance.New(instance.Config{Brokers: []string{"x"}, Graph: counting("g"), Guarantee: instance.ExactlyOnce})
	require.ErrorIs(t, err, instance.ErrConfig)
	require.ErrorContains(t, err, "instance id")
}

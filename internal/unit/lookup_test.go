package unit_test

import (
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/unit"
)

// Goka closes lookup tables as soon as its context ends, under callbacks that still look something up: their records
// fail, or the process does.
func TestStopLeavesCallbacksTheirLookupTables(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*running){
		"stop": func(r *running) { r.stop() },
		"kill": func(r *running) { r.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, brokers := oneEach(t, "in", "out", "other-table")
			send(t, brokers, "other-table", "k", "there")
			entered, leave, found := make(chan struct{}), make(chan struct{}), make(chan bool, 1)
			u := run(t, unit.Config{
				Brokers: brokers, Graph: goka.DefineGroup("g",
					goka.Input("in", codec.String(), func(ctx goka.Context, _ any) {
						close(entered)
						<-leave
						all := true
						for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
							v, _ := ctx.Lookup("other-table", "k").(codec.Decoded[string])
							all = all && v.Value == "there"
						}
						found <- all
					}),
					goka.Lookup("other-table", codec.String())),
			})
			send(t, brokers, "in", "k", "x")
			<-entered
			end(u)
			close(leave)
			require.True(t, <-found)
			err := u.wait(t)
			if name == "stop" {
				require.NoError(t, err)
				require.EqualValues(t, 1, committed(t, brokers, "g", "in", 0))
			}
		})
	}
}

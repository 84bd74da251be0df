package turns

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
)

// The player acts as user, model and tools over the plain wire format. It sends duplicate, late, foreign, missing,
// malformed and oversized records on every input, and several messages at once. All guarantees must hold.
func TestPromisesAreKeptUnderAttack(t *testing.T) {
	for _, guarantee := range testbroker.Guarantees(t, guarantees...) {
		for _, partitions := range []int32{1, 4} {
			t.Run(fmt.Sprintf("%s, %d partitions", guarantee, partitions), func(t *testing.T) {
				t.Parallel()
				c := config{
					agent: testbroker.Agent(), instance: "i1", brokers: testbroker.Start(t), guarantee: guarantee, partitions: partitions,
					turn: turn.Config{
						// The model always answers here; some tools never do.
						ThinkTimeout: time.Minute, ToolTimeout: 3 * time.Second,
					},
				}
				start(t, c)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				wiretest.Attack(ctx, t, c.brokers, c.agent, wiretest.Options{
					Seed: uint64(partitions), WaitLimit: time.Minute,
					Sessions: kill.Size(t, "TURNTABLE_SESSIONS", len(wiretest.Themes())),
				})
			})
		}
	}
}

// Models and tools that never answer: the deadlines end their turns.
func TestSilenceIsEndedByDeadlines(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		c := config{
			agent: testbroker.Agent(), instance: "i1", brokers: testbroker.Start(t), guarantee: guarantee, partitions: 2,
			turn: turn.Config{ThinkTimeout: 2 * time.Second, ToolTimeout: time.Second},
		}
		start(t, c)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		wiretest.Attack(ctx, t, c.brokers, c.agent, wiretest.Options{
			Seed: 7, WaitLimit: time.Minute, Sessions: 4, Themes: []wiretest.Theme{wiretest.ThemeSilence},
		})
	})
}

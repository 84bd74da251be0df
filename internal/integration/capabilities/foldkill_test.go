package capabilities

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/topics"
)

// 60 turns (TURNTABLE_TURNS) of 200 records, two at a time in each of 20 sessions. The processor is killed at random
// times, always before the last turn has ended.
func TestEveryTurnYieldsOneBatchWhileTheProcessorIsKilled(t *testing.T) {
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		turns, records, kills := kill.Size(t, "TURNTABLE_TURNS", 60), 200, kill.Size(t, "TURNTABLE_KILLS", 3)
		const sessions = 20
		r := newFoldRig(t, guarantee, 4, fold.Config{})
		r.watch()
		want := map[string]string{}
		streams := make([][]topics.AgentEvent, turns)
		for i := range streams {
			turn := "turn-" + strconv.Itoa(i)
			streams[i] = turnOf("session-"+strconv.Itoa(i%sessions), turn, records)
			want[turn] = folded(t, streams[i])
		}
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		dead := make(chan struct{}, kills+1)
		began := time.Now()
		loop := &kill.Loop{
			Seed: seed, Kills: kills, Victims: 1, Work: turns, Progress: r.closed, Brokers: r.brokers, Agents: []string{r.agent},
			Launch: func(int) kill.Victim { return foldVictim{r.run(), dead} },
			Clients: func(ctx context.Context) error {
				r.interleave(ctx, streams, rand.New(rand.NewPCG(seed, 0)), dead, kills)
				return kill.Until(ctx, func() bool { return r.closed() >= turns })
			},
			When: func(_ *rand.Rand, kill, _ int) (int, time.Duration) { return turns * kill / (kills + 1), 0 },
			// Kill at a random time within the next turns, whose duration depends on the machine.
			Before: func(_ context.Context, random *rand.Rand) error {
				pause := time.NewTimer(time.Duration(random.Float64() * float64(min(time.Since(began), 300*time.Millisecond))))
				<-pause.C
				began = time.Now()
				closed := r.closed()
				t.Logf("killed with %d turns closed", closed)
				if closed >= turns {
					return fmt.Errorf("all %d turns were closed before the last kill", closed)
				}
				return nil
			},
			Judge: func() { r.judge(want, kills) },
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*waitLimit)
		defer cancel()
		loop.Run(ctx, t)
	}, processors.ExactlyOnce, processors.AtLeastOnce)
}

// foldVictim is an instance in this process, and who is told that it has crashed.
type foldVictim struct {
	*instance
	dead chan<- struct{}
}

func (v foldVictim) Kill() error {
	v.crash()
	v.dead <- struct{}{}
	return nil
}

// judge checks that each turn has one batch, which is the given one.
func (r *foldRig) judge(want map[string]string, kills int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	turns := len(want)
	require.Len(r.tb, r.batches, turns)
	require.Zero(r.tb, r.letters)
	repeats := 0
	for _, list := range r.batches {
		repeats += len(list) - 1
		for _, b := range list {
			require.Equal(r.tb, topics.BatchComplete, b.State)
			require.Equal(r.tb, want[b.TurnID], threeFields(b))
		}
		delete(want, list[0].TurnID)
	}
	require.Empty(r.tb, want)
	if r.guarantee == processors.ExactlyOnce {
		require.Zero(r.tb, repeats)
	}
	r.tb.Logf("%d turns, %d kills, %d repeats", turns, kills, repeats)
}

// interleave sends the streams, each some records after the previous one, so that they end one after another. Before the end
// of a turn it waits for the kills that come before it.
func (r *foldRig) interleave(
	ctx context.Context, streams [][]topics.AgentEvent, random *rand.Rand, dead <-chan struct{}, kills int,
) {
	const behind = 5
	killed, ended := 0, 0
	for step := 0; ended < len(streams); step++ {
		for i := ended; i < len(streams) && i*behind <= step; i++ {
			stream, seq := streams[i], step-i*behind
			if seq == len(stream)-1 {
				for ; killed < i*(kills+1)/len(streams); killed++ {
					select {
					case <-dead:
					case <-ctx.Done():
						return
					}
				}
				ended = i + 1
			}
			r.send(stream[seq])
			if seq%67 == 66 { // redelivered
				r.send(stream[seq-random.IntN(30) : seq+1]...)
			}
		}
	}
}

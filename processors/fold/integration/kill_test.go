package integration

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// size returns a parameter of the kill test, which an environment variable can set.
func size(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// 60 turns (TURNTABLE_TURNS) of 200 records under each guarantee, two at a time in each of 20 sessions. The processor is killed at random
// times, always before the last turn has ended.
func TestEveryTurnYieldsOneBatchWhileTheProcessorIsKilled(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		turns, records, kills := size(t, "TURNTABLE_TURNS", 60), 200, size(t, "TURNTABLE_KILLS", 3)
		const sessions = 20
		r := newRig(t, guarantee, 4)
		g := r.run()
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
		sent, dead := make(chan struct{}), make(chan struct{}, kills)
		go func() {
			defer close(sent)
			r.interleave(t.Context(), streams, rand.New(rand.NewPCG(seed, 0)), dead, kills)
		}()
		random := rand.New(rand.NewPCG(seed, 1))
		began := time.Now()
		for i := range kills {
			require.Eventually(t, func() bool { return r.closed() >= turns*i/(kills+1) }, waitLimit, time.Millisecond)
			// Kill at a random time within the next turns, whose duration depends on the machine.
			pause := time.NewTimer(time.Duration(random.Float64() * float64(min(time.Since(began), 300*time.Millisecond))))
			<-pause.C
			began = time.Now()
			closed := r.closed()
			require.Less(t, closed, turns)
			g.Kill()
			g.stop()
			dead <- struct{}{}
			g = r.run()
			t.Logf("killed with %d turns closed, works again after %v", closed, time.Since(began))
			began = time.Now()
		}
		<-sent
		r.await(turns)
		g.stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		require.Len(t, r.batches, turns)
		require.Zero(t, r.letters)
		repeats := 0
		for _, list := range r.batches {
			repeats += len(list) - 1
			for _, b := range list {
				require.Equal(t, topics.BatchComplete, b.State)
				require.Equal(t, want[b.TurnID], threeFields(b))
			}
			delete(want, list[0].TurnID)
		}
		require.Empty(t, want)
		if guarantee == processors.ExactlyOnce {
			require.Zero(t, repeats)
		}
		t.Logf("%d turns of %d records, %d kills, %d repeats", turns, records, kills, repeats)
	})
}

// interleave sends the streams, each some records after the previous one, so that they end one after another. Before the end
// of a turn it waits for the kills that come before it.
func (r *rig) interleave(
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

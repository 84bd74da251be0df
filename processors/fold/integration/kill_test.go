package integration

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// size is a number of the kill test that the environment may set.
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

// 200 turns of 200 records, of 20 sessions, alternate; the processor is killed at random times meanwhile.
func TestEveryTurnYieldsOneBatchWhileTheProcessorIsKilled(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		turns, records, kills := size(t, "TURNTABLE_TURNS", 200), 200, size(t, "TURNTABLE_KILLS", 6)
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
		random := rand.New(rand.NewPCG(seed, 0))
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			const side = 2 * sessions // so many turns at a time, two of each session
			for first := 0; first < turns; first += side {
				for seq := range records {
					for _, stream := range streams[first:min(first+side, turns)] {
						r.send(stream[seq])
						if seq%31 == 30 { // redelivered
							r.send(stream[seq-random.IntN(30) : seq+1]...)
						}
					}
				}
			}
		}()
		killed := rand.New(rand.NewPCG(seed, 1))
		for i := range kills {
			// At a random time, which is one at which some of the turns are closed.
			require.Eventually(t, func() bool { return r.closed() >= turns*i/(kills+1) }, patience, time.Millisecond)
			pause := time.NewTimer(time.Duration(killed.IntN(300)) * time.Millisecond)
			<-pause.C
			began := time.Now()
			g.Kill()
			g.stop()
			g = r.run()
			t.Logf("killed with %d turns closed, works again after %v", r.closed(), time.Since(began))
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

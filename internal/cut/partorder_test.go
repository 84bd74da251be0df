package cut

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

func keyOf(m *sarama.ProducerMessage) string {
	b, _ := m.Key.Encode()
	return string(b)
}

// Two sessions end and begin again in one cut; the second one's part waits for the first one's row and is deleted again.
func TestDeletionIsNotAheadOfItsPart(t *testing.T) {
	for name, ordered := range map[string]bool{"transaction": false, "at least once": true} {
		t.Run(name, func(t *testing.T) {
			s := onLine(t, ProducerOptions{Ordered: ordered})
			set := func(key string, v string) chan error {
				s.Begin(0, "k")
				done := make(chan error, 1)
				go func() { done <- s.EmitPart(0, runtimeapi.PartKey(key, 9), []byte(v)) }()
				return done
			}
			write := func(key, v string) { // the callback's row, after its parts
				var raw []byte
				if v != "" {
					raw = []byte(v)
				}
				require.NoError(t, s.EmitRow(0, key, raw, nil))
			}
			s.Begin(0, "k")
			write("a", "")
			s.Begin(0, "k")
			write("b", "")
			d := set("a", "pa") // waits for the tombstone of a, and has both tombstones sent
			ta, tb := s.next(t), s.next(t)
			require.Equal(t, "ab", keyOf(ta)+keyOf(tb))
			s.ack(ta)
			require.NoError(t, <-d)
			pa := s.next(t)
			require.Equal(t, "pa", text(pa))
			write("a", "a2")
			d = set("b", "pb")                  // waits for the tombstone of b; the row of a waits for pa
			require.Eventually(t, func() bool { // it has released a's row
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.Producer.queues[0].rows) == 1
			}, testTimeout, time.Millisecond)
			s.ack(tb)
			require.NoError(t, <-d)
			write("b", "b2")
			s.Begin(0, "k") // b drops its part again
			write("b", "b3")
			require.NoError(t, s.EmitPart(0, runtimeapi.PartKey("b", 9), nil))
			s.Seal()
			var order []string
			s.ack(pa)
			for range 4 {
				m := s.next(t)
				order = append(order, keyOf(m)+"="+text(m))
				s.ack(m)
			}
			at := map[string]int{}
			for i, o := range order {
				at[o] = i
			}
			require.Greater(t, at["b\x009="], at["b\x009=pb"])
		})
	}
}

package cut

import (
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// released waits until the linger has passed.
func (s *lined) released(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.Producer.queues[0].held) == 0
	}, testTimeout, time.Millisecond)
}

// Where a row waited for its part and the part for the rows in front of it, a partition got one part done a request: a
// millisecond on the embedded broker, and more time than a group needs for what is in a row on others.
func TestPartsOfAPartitionDoNotWaitForOneAnother(t *testing.T) {
	const sessions = 20
	for name, before := range map[string]bool{"beside a row of their cut": false, "behind one of the cut before": true} {
		t.Run(name, func(t *testing.T) {
			s := onLine(t, ProducerOptions{Ordered: true, Linger: time.Millisecond})
			s.callback("a", "a1", "slow")
			slow := s.next(t)
			s.released(t)
			if before {
				s.Seal()
			}
			for i := range sessions {
				key := fmt.Sprintf("b%d", i)
				s.Begin(0, "k")
				require.NoError(t, s.EmitPart(0, runtimeapi.PartKey(key, 1), []byte("part")))
				require.NoError(t, s.EmitRow(0, key, []byte("row"), nil))
				s.released(t)
			}
			if before {
				s.nothing(t)
				s.ack(slow)
				require.Equal(t, "a1", text(s.next(t)))
			}
			var parts []*sarama.ProducerMessage
			for range sessions {
				parts = append(parts, s.next(t))
				require.Equal(t, "part", text(parts[len(parts)-1]))
			}
			s.nothing(t)
			if !before {
				s.ack(slow)
				require.Equal(t, "a1", text(s.next(t)))
			}
			for i, part := range parts {
				s.ack(part)
				row := s.next(t)
				require.Equal(t, fmt.Sprintf("b%d=row", i), keyOf(row)+"="+text(row))
			}
		})
	}
}

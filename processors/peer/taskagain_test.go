package peer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The records of both tasks must be in the audit, which drops those with an ID that it has seen.
func TestRequestThatIsRepeatedWhenItsTaskIsForgottenIsAnotherTask(t *testing.T) {
	p := newHarness(t)
	seen := map[string]bool{}
	for range 2 {
		es := p.Handle(p.proxied("t1", "w1"))
		es = append(es, p.settle(p.replied(attemptOf(t, es)))...)
		require.Len(t, events(es), 2)
		for _, e := range es {
			require.False(t, seen[e.ID], "%v", e)
			seen[e.ID] = true
		}
		p.advance(25 * time.Hour)
		require.Nil(t, p.Read())
	}
}

package turn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A deadline that fires before its time, because the clock was set back in between, must come again: the index hands it
// out once, and has it again when the row is written.
func TestDeadlineThatFiresTooEarlyIsWrittenAgain(t *testing.T) {
	p := newPlay(t)
	p.send("message-input", message("one"))
	p.now = p.now.Add(-time.Hour)
	out := p.decide(p.bind, DeadlineCame{p.key})
	require.True(t, out.Changed)
	require.Empty(t, out.Effects)
	require.NotZero(t, out.State.DeadlineMs)

	p = newPlay(t)
	out = p.decide(p.bind, DeadlineCame{p.key})
	require.False(t, out.Changed, "nobody has a row")
}

package invoke

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Paused turns count in all limits, and the buffer is empty after their time.
func TestPausedTurnsAreBounded(t *testing.T) {
	runs := make([]string, 40)
	for i := range runs {
		runs[i] = strings.ReplaceAll(paying, `"r1"`, `"r`+strconv.Itoa(i)+`"`)
	}
	d := newDesk(t, newTeller(t, runs...), func(c *BufferConfig) { c.CallerTurns, c.SessionTurns = 40, 4 })
	for range 6 {
		require.Equal(t, http.StatusOK, d.invoke(body("s-1", hi)).status)
	}
	token := func(i int) string {
		return body("s-1", answerOf("", `{"approved":true,"interactionToken":"r`+strconv.Itoa(i)+`"}`))
	}
	require.Equal(t, http.StatusConflict, d.invoke(token(0)).status, "the oldest of the session was dropped")
	require.Equal(t, http.StatusConflict, d.invoke(token(1)).status)
	require.Equal(t, http.StatusOK, d.invoke(token(2)).status)
	require.Equal(t, http.StatusOK, d.invoke(body("s-1", hi)).status)
	require.Equal(t, http.StatusOK, d.invoke(token(3)).status, "a turn that has ended is dropped before paused ones")
}

func TestPausedTurnsFreeTheirMemory(t *testing.T) {
	agent := newTeller(t, paying, paidEnd, paying, payingTwice)
	d := newDesk(t, agent, func(c *BufferConfig) { c.PauseTimeout, c.KeepFor = time.Minute, time.Minute })
	b := d.buffer
	bytes := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.forget()
		return b.bytes
	}
	d.invoke(body("s-1", hi))
	paused := bytes()
	require.Greater(t, paused, len(body("s-1", hi)))
	d.invoke(yes)
	d.invoke(body("s-2", hi))
	d.invoke(body("s-3", hi))
	all := bytes()
	require.Greater(t, all, 2*paused)
	d.now.Advance(time.Minute) // the first is forgotten; the others expire and drop their requests
	require.LessOrEqual(t, bytes(), all-paused-2*len(body("s-1", hi)))
	d.now.Advance(time.Minute)
	require.Zero(t, bytes())
	require.Empty(t, b.order)
	require.Empty(t, b.shares.callers)
	require.Empty(t, b.shares.sessions)
}

func TestTurnWithTooManyQuestionsFails(t *testing.T) {
	d := newDesk(t, newTeller(t, strings.Repeat(lines(paying)[2]+"\n", maxAsked+1)+`{"type":"done","data":{"stopReason":"paused"}}`))
	require.Contains(t, d.invoke(body("s-1", hi), "Accept", jsonl).body, `"too_many"`)
	require.Equal(t, http.StatusConflict, d.invoke(yes).status)
}

func TestPausedTurnThatIsTooLargeFails(t *testing.T) {
	d := newDesk(t, newTeller(t, paying, paidEnd), func(c *BufferConfig) { c.Turns, c.TurnBytes, c.Bytes = 10, 2000, 100_000 })
	big := `{"role":"user","content":"` + strings.Repeat("x", 3000) + `"}`
	require.Contains(t, d.invoke(body("s-1", big), "Accept", jsonl).body, `"too_large"`)
	require.Equal(t, http.StatusConflict, d.invoke(yes).status)
}

func TestClosedBufferRefusesAnswers(t *testing.T) {
	d := newDesk(t, newTeller(t, paying, paidEnd))
	d.invoke(body("s-1", hi))
	require.NoError(t, d.buffer.Close())
	require.Equal(t, http.StatusServiceUnavailable, d.invoke(yes).status)
	require.Empty(t, d.agent.asked)
}

// A panic of Continue is an error: the turn stays paused.
func TestTurnStaysPausedIfContinuePanics(t *testing.T) {
	agent := &panicking{teller: newTeller(t, paying, paidEnd)}
	b := newBuffered(t, agent)
	s := newSite(t, b)
	require.Equal(t, http.StatusOK, s.invoke(body("s-1", hi)).status)
	require.Equal(t, http.StatusInternalServerError, s.invoke(yes).status)
	require.Equal(t, http.StatusOK, s.invoke(no).status)
	require.Empty(t, agent.payments())
}

type panicking struct {
	*teller
	calls int
}

func (p *panicking) Continue(ctx context.Context, r Request, c Continuation) (Stream, error) {
	if p.calls++; p.calls == 1 {
		panic("broken")
	}
	return p.teller.Continue(ctx, r, c)
}

package channel

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// meter applies a limit to the events of several people.
type meter struct {
	settings *Settings
	windows  map[string]window
	events   int
}

func newMeter(limit int) *meter {
	return &meter{
		settings: with(func(a *Account) { a.RateLimit = limit }), windows: map[string]window{},
	}
}

// event is another event of a person.
func (m *meter) event(user string, at time.Time) outcome {
	m.events++
	return m.repeat(user, fmt.Sprint(m.events), at)
}

func (m *meter) repeat(user, event string, at time.Time) outcome {
	in := direct(user, "hello")
	in.Event = event
	who := personOf(in)
	var out outcome
	out, m.windows[who] = decide(m.settings, plain, in, m.windows[who], at)
	return out
}

func TestWindowsAreOfOnePersonAndAccount(t *testing.T) {
	m := newMeter(2)
	for range 2 {
		require.Equal(t, Ask, m.event("U1", noon).Action)
	}
	require.Equal(t, Slow, m.event("U1", noon).Action)
	require.Equal(t, TooMany, m.event("U1", noon).Reason, "told once")
	for range 2 {
		require.Equal(t, Ask, m.event("U2", noon).Action, "another person")
	}
	inRoom := inRoom("U2", "hello")
	require.Equal(t, personOf(direct("U2", "hello")), personOf(inRoom), "one person has one limit in all rooms")
	other := direct("U2", "hello")
	other.Origin.Account = "other"
	require.NotEqual(t, personOf(inRoom), personOf(other), "each account has its own limit")
	require.NotEqual(t, personOf(direct("", "a")), personOf(direct("D-", "a")), "without a person, the recipient")
}

func TestRejectedMessagesAreNotCounted(t *testing.T) {
	m := newMeter(1)
	require.Equal(t, Ask, m.event("U1", noon).Action)
	for s := range 59 {
		require.NotEqual(t, Ask, m.event("U1", noon.Add(time.Duration(s)*time.Second)).Action)
	}
	require.Equal(t, Ask, m.event("U1", noon.Add(span)).Action)
}

func TestRepeatOfAnEventIsNotCounted(t *testing.T) {
	m := newMeter(2)
	require.Equal(t, Ask, m.repeat("U1", "a", noon).Action)
	require.Equal(t, Ask, m.repeat("U1", "a", noon).Action)
	require.Equal(t, Ask, m.repeat("U1", "b", noon).Action)
	require.Equal(t, Slow, m.repeat("U1", "c", noon).Action)
	require.Equal(t, Slow, m.repeat("U1", "c", noon).Action, "the answer was not written the first time")
	require.Equal(t, Refuse, m.repeat("U1", "d", noon).Action)
	require.Equal(t, Ask, m.repeat("U1", "b", noon).Action, "what passed once passes again")
}

func TestIdleWindowsNeedNotBeKept(t *testing.T) {
	m := newMeter(1)
	m.event("U1", noon)
	m.event("U1", noon.Add(30*time.Second)) // told
	w := m.windows[personOf(direct("U1", ""))]
	require.False(t, w.Idle(noon.Add(59*time.Second)))
	require.False(t, w.Idle(noon.Add(89*time.Second)))
	require.True(t, w.Idle(noon.Add(90*time.Second)))
	require.True(t, w.Idle(noon.Add(-time.Hour)), "the clock was set back")
	require.True(t, window{}.Idle(noon))
	require.Equal(t, Ask, m.event("U1", noon.Add(-time.Hour)).Action)
	m.settings = with(nil)
	m.event("U1", noon)
	require.True(t, m.windows[personOf(direct("U1", ""))].Idle(noon), "without a limit nothing is remembered")
}

// An oracle that remembers everything: what passes is within the limit in each 60 seconds, and nothing else is rejected.
func TestWindowAgreesWithAnOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		m := newMeter(limit)
		passed := map[string][]time.Time{}
		at := noon
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			at = at.Add(time.Duration(rapid.IntRange(0, 25_000).Draw(t, "ms")) * time.Millisecond)
			user := rapid.SampledFrom([]string{"U1", "U2"}).Draw(t, "user")
			recent := slices.DeleteFunc(slices.Clone(passed[user]), func(p time.Time) bool { return at.Sub(p) >= span })
			out := m.event(user, at)
			require.Equal(t, len(recent) < limit, out.Action == Ask)
			if out.Action == Ask {
				passed[user] = append(passed[user], at)
			}
		}
	})
}

// decide has no state: the same arguments give the same outcome, and an earlier window can be used again.
func TestWindowsAreImmutable(t *testing.T) {
	s := with(func(a *Account) { a.RateLimit = 3 })
	base := window{}
	for _, event := range []string{"a", "b"} {
		in := direct("U1", "hello")
		in.Event = event
		_, base = decide(s, plain, in, base, noon)
	}
	for _, event := range []string{"c", "d", "e"} {
		in := direct("U1", "hello")
		in.Event = event
		out, _ := decide(s, plain, in, base, noon)
		require.Equal(t, Ask, out.Action)
	}
}

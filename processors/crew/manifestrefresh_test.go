package crew_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

const second = time.Second

func TestC05_ThreeSpawnsInTwoSecondsAreOneRefreshTwoSecondsAfterTheLast(t *testing.T) {
	c := newClock(t)
	for _, at := range []time.Duration{0, second, 1900 * time.Millisecond} {
		require.Empty(t, c.trigger(at, "").to)
		require.Equal(t, at+2*second, c.due())
	}
	require.Empty(t, c.step(3899*time.Millisecond, nil).to)
	require.Len(t, c.step(3900*time.Millisecond, nil).to, 4)
	require.Negative(t, c.due())
	require.Empty(t, c.step(10*second, nil).to)

	// FlightDeck waits as long as changes follow each other. Here it is ten seconds at most.
	for i := range 10 {
		require.Empty(t, c.trigger(20*second+time.Duration(i)*second, "").to)
	}
	require.Equal(t, 30*second, c.due())
	require.Len(t, c.trigger(30*second, "").to, 4, "the change is in it: nothing more is due")
	require.Negative(t, c.due())
}

func TestAnAgentThatLostItsContextIsToldAtOnce(t *testing.T) {
	c := newClock(t)
	require.Equal(t, []string{dev}, c.trigger(0, dev).to)
	require.Negative(t, c.due())
	require.Empty(t, c.trigger(0, tester).to, "it is not running")
	c.trigger(second, "")
	require.Equal(t, []string{dev}, c.trigger(2*second, dev).to)
	require.Equal(t, 3*second, c.due(), "the others still wait")
}

func TestAChangeAfterTheDeadlineDoesNotPostponeIt(t *testing.T) {
	c := newClock(t)
	c.trigger(0, "")
	require.Len(t, c.trigger(2500*time.Millisecond, "").to, 4)
	require.Negative(t, c.due())
}

func TestC07_OnlyRunningAgentsGetItWithoutThemselves(t *testing.T) {
	c := newClock(t)
	c.roster.Members = append(c.roster.Members, &roster.Member{Id: "c0", Status: view.Creating}, &roster.Member{Id: "e0", Status: view.Failed})
	c.roster.Find(below).Resuming = true
	c.trigger(0, "")
	got := c.step(2*second, nil)
	// FlightDeck writes to leads and secretaries only. Here all running agents get it.
	require.Equal(t, []string{lead, dev, sub}, got.to)
	for i, id := range got.to {
		lines := section(t, got.bodies[i].Text, "CURRENT CREW STATUS")
		for _, line := range lines {
			require.NotContains(t, line, "Agent "+view.ShortID(id)+" ")
		}
		require.Len(t, lines, 5, "all but itself and one that ended long ago")
	}
	require.Empty(t, c.trigger(3*second, below).to, "not even at once")
}

func TestC12_NothingIsRefreshedWhenAllAgentsHaveEnded(t *testing.T) {
	c := newClock(t)
	c.trigger(0, "")
	c.trigger(0, "")
	require.Len(t, c.step(2*second, nil).to, 4, "a refresh that is asked for twice is one")
	require.Empty(t, c.step(4*second, nil).to)
	c.trigger(5*second, "")
	require.Equal(t, 7*second, c.due())
	for _, m := range c.roster.Members {
		m.Status = view.Terminated
	}
	c.step(6*second, nil)
	require.Negative(t, c.due(), "cancelled")
	c.roster.Members[0].Status = view.Running
	require.Empty(t, c.step(7*second, nil).to)
	c.trigger(8*second, "")
	require.Equal(t, 10*second, c.due(), "and it can begin again")
}

// Every change is told to each running agent between two and ten seconds after it, and without a change nothing is sent.
func TestChangesAreToldInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock(t)
		var at, first, last time.Duration
		waiting := false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			at += time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond
			if due := c.due(); due >= 0 && due < at { // the group writes crewbody.Due at the deadline
				require.Len(t, c.step(due, nil).to, 4)
				require.True(t, waiting)
				require.True(t, due-last == 2*second || due-first == 10*second)
				require.LessOrEqual(t, due-first, 10*second)
				waiting = false
			}
			if rapid.Bool().Draw(t, "change") {
				if !waiting {
					first = at
				}
				waiting, last = true, at
				if len(c.trigger(at, "").to) > 0 {
					waiting = false
				}
				continue
			}
			if got := c.step(at, nil).to; len(got) > 0 {
				require.True(t, waiting)
				waiting = false
			}
		}
		require.Equal(t, waiting, c.due() >= 0)
	})
}

func TestADeadlineOfAnAgentThatLostItsContextIsAtOnce(t *testing.T) {
	f := &manifest.Refresh{}
	s, ok := mailbox.Begin(&mailbox.Mailbox{}, mailbox.Crew("c"), topics.CrewInput{InputID: "1", Kind: "x"}, noon, noon)
	require.True(t, ok)
	f.Trigger(s, dev)
	f.Trigger(s, dev)
	require.Equal(t, []string{dev}, f.Now)
	require.Less(t, f.DeadlineMS(), noon.UnixMilli())
	require.Positive(t, f.DeadlineMS())
}

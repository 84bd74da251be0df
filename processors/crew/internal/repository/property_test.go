package repository

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
)

func TestLocksNeverOverlapAndCommitsContainOnlyWhatIsHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSimulation(t)
		for range rapid.IntRange(0, 60).Draw(t, "moves") {
			w.move()
		}

		// A group that reads the same records again, after a crash without a table, does the same.
		again := newHarness(t)
		for _, a := range w.log {
			again.now = a.at
			require.Equal(t, a.effects, again.apply(a.in))
		}
		require.Equal(t, w.row, again.row)

		// If the host answers everything, each command has its answer. If the agents end then, nothing is left.
		w.settle()
		w.say("host/dock", crewbody.HostStarted{Host: "dock", Epoch: 2})
		w.settle()
		require.Empty(t, w.waiting)
		for _, m := range []crewbody.Member{mira, noor, otto} {
			w.say(mailbox.Agent(m.AgentID), crewbody.AgentEnded{AgentID: m.AgentID})
		}
		w.settle()
		s := w.state()
		require.Empty(t, s.Locks)
		require.Empty(t, s.Commits)
		require.Empty(t, s.Queue)
		require.Empty(t, s.Releases)
		require.Zero(t, s.DeadlineMs)
		require.False(t, HasOpenActions(s, "dock"))
	})
}

// The host has an action already when a person releases a path of it, and does it later or not at all.
func TestNoCommitContainsAFileItsAgentDidNotHoldDespiteForcedUnlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSimulation(t)
		w.moves = []string{"lock", "force", "answer", "commit", "start", "wait", "end"}
		for range 60 {
			w.move()
		}
	})
}

func TestOverlapIsWhetherAFileCanBeInBoth(t *testing.T) {
	segment := rapid.SampledFrom([]string{"a", "b", "ab"})
	path := rapid.Custom(func(t *rapid.T) string {
		p := segment.Draw(t, "first")
		for range rapid.IntRange(0, 2).Draw(t, "depth") {
			p += "/" + segment.Draw(t, "next")
		}
		if rapid.Bool().Draw(t, "directory") {
			p += everything
		}
		return p
	})
	var files []string
	for _, a := range []string{"a", "b", "ab"} {
		files = append(files, a)
		for _, b := range []string{"a", "b", "ab"} {
			files = append(files, a+"/"+b)
			for _, c := range []string{"a", "b", "ab"} {
				files = append(files, a+"/"+b+"/"+c, a+"/"+b+"/"+c+"/x")
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p, q := path.Draw(t, "p"), path.Draw(t, "q")
		in := func(p, file string) bool { return p == file || covers(p, file) }
		shared := slices.ContainsFunc(files, func(f string) bool { return in(p, f) && in(q, f) })
		require.Equal(t, shared, overlap(p, q), "%s %s", p, q)
		require.Equal(t, overlap(p, q), overlap(q, p))
	})
}

func TestPathsAreNormalisedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.StringOfN(rapid.SampledFrom([]rune("ab./\\* é\u0301e\x00:-~")), 0, 20, -1).Draw(t, "raw")
		p, err := Path(raw)
		if err != nil {
			require.ErrorIs(t, err, ErrPath)
			return
		}
		again, err := Path(p)
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}

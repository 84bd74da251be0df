package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/topics"
)

// simulation is an agent whose crew, host and people do anything at any time.
type simulation struct {
	*world
	// messages are the texts of all messages that were written.
	messages []string
}

func (m *simulation) message(body func(text string) crewbody.Body) {
	text := fmt.Sprintf("<%d>", len(m.messages))
	m.messages = append(m.messages, text)
	m.crew(body(text))
}

// random does one thing.
func (m *simulation) random(t *rapid.T) {
	s := m.state()
	run := s.GetProcess().GetRun()
	if run != "" && rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
		run = "agent/" + agentID + "/1"
	}
	bools := rapid.Bool()
	switch rapid.IntRange(0, 19).Draw(t, "what") {
	case 0:
		m.spawn()
	case 1, 2, 3:
		priority := bools.Draw(t, "priority")
		m.message(func(text string) crewbody.Body {
			return crewbody.Prompt{Text: text, FromID: text, Priority: priority}
		})
	case 4:
		m.message(func(text string) crewbody.Body { return crewbody.Interrupt{Text: text, FromID: text} })
	case 5:
		m.crew(crewbody.Terminate{})
	case 6:
		m.crew(crewbody.Pause{Paused: bools.Draw(t, "paused")})
	case 7:
		m.crew(crewbody.Restart{Refused: bools.Draw(t, "refused"), Manual: bools.Draw(t, "manual")})
	case 8:
		m.crew(crewbody.ClearQueue{})
	case 9:
		m.epoch += int64(rapid.IntRange(0, 1).Draw(t, "newer"))
		m.host(crewbody.HostStarted{Host: hostID, Epoch: m.epoch})
	case 10, 11:
		m.host(crewbody.Started{Run: run, Capabilities: topics.Raw(fmt.Sprintf(`{"loadSession":%v}`, bools.Draw(t, "load")))})
	case 12, 13:
		m.host(crewbody.SessionReady{
			Run: run, SessionID: "s" + rapid.StringOfN(rapid.RuneFrom([]rune("12")), 1, 1, 1).Draw(t, "s"),
			Resumed: bools.Draw(t, "resumed"),
		})
	case 14:
		m.host(crewbody.TurnEnded{Run: run, PromptID: s.GetTurn().GetPromptId(), StopReason: "end_turn"})
	case 15:
		m.host(crewbody.Updates{Run: run, SessionID: s.GetSessionId(), Replay: bools.Draw(t, "replay"), Updates: []topics.Raw{
			topics.Raw(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"⟦⟦ LOCK_FILE {\"filePath\":\"a\"} ⟧⟧"}}`),
		}})
	case 16:
		if bools.Draw(t, "ask") {
			m.host(permissionOf(run, rapid.SampledFrom([]string{"1", "2"}).Draw(t, "id")))
		} else if open := s.GetPermissions().GetWaiting(); len(open) > 0 {
			m.door(crewbody.GateEnded{GateID: open[0].GateId, Status: topics.GateApproved})
		}
	case 17:
		m.host(crewbody.Exited{Run: run, Code: rapid.IntRange(0, 1).Draw(t, "code"), Stopped: bools.Draw(t, "stopped")})
	case 18:
		m.host(crewbody.StartFailed{
			Run: run, Stage: rapid.SampledFrom([]string{"process", "resume"}).Draw(t, "stage"), Process: bools.Draw(t, "process"),
		})
	case 19:
		m.pass(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
	}
}

func simulate(t *rapid.T) *simulation {
	m := &simulation{world: newWorld(t)}
	m.spawn()
	for range rapid.IntRange(1, 60).Draw(t, "n") {
		m.random(t)
	}
	return m
}

// A message is sent again only to another process, after the host of the one before was lost.
func TestEveryMessageIsSentOnceOrReported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := simulate(t)
		lost := slices.ContainsFunc(bodies[crewbody.AgentExited](m.all), func(c crewbody.AgentExited) bool {
			return c.Cause == crewbody.ExitHostStopped
		})
		var sent []string
		for _, text := range prompts(m.all) {
			for _, line := range strings.Split(text, "\n") {
				if strings.HasPrefix(line, "<") && (!lost || !slices.Contains(sent, line)) {
					sent = append(sent, line)
				}
			}
		}
		for _, d := range bodies[crewbody.Dropped](m.all) {
			if !lost || !slices.Contains(sent, d.FromID) {
				sent = append(sent, d.FromID)
			}
		}
		for _, class := range [][]*Waiting{m.state().Queue.GetPriority(), m.state().Queue.GetNormal()} {
			for _, w := range class {
				if !lost || !slices.Contains(sent, w.Text) {
					sent = append(sent, w.Text)
				}
			}
		}
		require.ElementsMatch(t, m.messages, sent)
		if !Live(m.state()) {
			require.Zero(t, m.state().waiting())
		}
	})
}

// Between two starts of a process there is one end of it, and the crew and the clients are told of the same ends.
func TestEveryProcessHasOneEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := simulate(t)
		runs := map[string]bool{}
		open, ends := 0, 0
		for _, e := range m.all {
			switch e := e.(type) {
			case topics.CrewAction:
				if e.Kind == (crewbody.Start{}).Kind() && !runs[e.ActionID] {
					runs[e.ActionID] = true
					open++
				}
			case topics.CrewEvent:
				if e.Type == "agent:exit" {
					open--
					ends++
				}
			}
			require.Contains(t, []int{0, 1}, open)
		}
		require.Equal(t, open == 1, m.run() != "")
		withoutProcess := len(fields(m.all, "agent:terminated"))
		reports := len(bodies[crewbody.AgentExited](m.all))
		require.GreaterOrEqual(t, reports, ends)
		require.LessOrEqual(t, reports, ends+withoutProcess)
	})
}

func TestPromptsFollowEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := simulate(t)
		open := 0
		for _, e := range m.all {
			h, ok := e.(topics.CrewEvent)
			switch {
			case !ok:
			case h.Type == "agent:response_start":
				open++
			case h.Type == "agent:response_end":
				open--
			}
			require.Contains(t, []int{0, 1}, open, "one turn at a time")
		}
	})
}

// Replaying the log from the beginning gives the same row and the same effects, also if records are repeated.
func TestReplayRepeatsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := simulate(t)
		again := newWorld(t)
		for i, l := range m.logged {
			again.all = append(again.all, again.apply(l)...)
			if l.in.Kind == "due" {
				continue
			}
			row := again.state()
			for _, earlier := range []logged{l, m.logged[rapid.IntRange(0, i).Draw(t, "repeat")]} {
				if earlier.in.Kind != "due" {
					require.Empty(t, again.apply(earlier), "a repeat has no effect")
				}
			}
			require.True(t, proto.Equal(row, again.state()), "a repeat changes nothing")
		}
		require.Equal(t, m.all, again.all)
		require.True(t, proto.Equal(m.state(), again.state()))
	})
}

// A crewbody.Due that is repeated, or is late, has no effects.
func TestRepeatedDeadlinesHaveNoEffect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := simulate(t)
		for _, l := range m.logged {
			if l.in.Kind == "due" {
				require.Empty(t, m.apply(logged{l.in, m.now}))
			}
		}
	})
}

func TestSequenceNumbersRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var seq []int64
		for _, e := range simulate(t).all {
			if h, ok := e.(topics.CrewEvent); ok {
				seq = append(seq, h.Seq)
			}
		}
		require.True(t, slices.IsSorted(seq))
	})
}

// Nothing delays the report of idleness indefinitely: a lost answer, a lost host or a full queue.
func TestEndOfATurnIsReportedUnlessSomethingIsLeftToDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := simulate(t)
		m.pass(commitTimeout + idleAfter)
		s := m.state()
		if s.GetUnreported() {
			require.True(t, s.waiting() > 0 || !s.Process.GetReady(), "%v", s)
		}
		require.Zero(t, s.GetIdleMs())
	})
}

package team

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// absurd writes inputs that no door and no group writes.
type absurd struct {
	t *rapid.T
	s *State
}

func (a absurd) text() string {
	ids := []string{
		"", " ", "\x00", "*", "@", "\xff", "船\n", "crew", "lead", "developer", "human", "user", leadID, otherID, leadID[:8], strings.Repeat("x", 300<<10),
		strings.Repeat("\x01", 50_000), "00000000", view.Running, view.Completed, view.Idle, view.Creating, "confirm", crewbody.LockAcquired,
		crewbody.LockReleased, "t1",
	}
	for _, m := range a.s.Roster.Members {
		ids = append(ids, m.Id)
	}
	for _, d := range a.s.Decisions {
		ids = append(ids, d.Id)
	}
	return rapid.SampledFrom(ids).Draw(a.t, "text")
}

func (a absurd) member() string {
	if n := len(a.s.Roster.Members); n > 0 && rapid.Bool().Draw(a.t, "member") {
		return a.s.Roster.Members[rapid.IntRange(0, n-1).Draw(a.t, "which")].Id
	}
	return a.text()
}

func (a absurd) flag() bool { return rapid.Bool().Draw(a.t, "flag") }

func (a absurd) number() int64 {
	return rapid.SampledFrom([]int64{0, -1, 1, 1000, math.MinInt64, math.MaxInt64, 1_790_000_000_000, 1_790_000_100_000}).Draw(a.t, "number")
}

func (a absurd) raw() topics.Raw {
	return topics.Raw(rapid.SampledFrom([]string{
		"null", "[]", `{"x":1,"x":2}`, `"\ud800"`, "[{\"type\":\"text\",\"text\":\"\xff\"}]", `{"title":"a","title":"b"}`, `1e999`, `{"limit":1e99}`,
	}).Draw(a.t, "raw"))
}

func (a absurd) body() crewbody.Body {
	switch rapid.IntRange(0, 19).Draw(a.t, "kind") {
	case 0:
		return crewbody.Configure{ProjectID: a.text(), ProjectName: a.text(), Host: a.text(), Cwd: a.text(), Repository: a.text()}
	case 1:
		return crewbody.SpawnAsked{
			AgentID: a.text(), RoleID: a.text(), ParentID: a.member(), Task: a.text(), Context: a.text(), Model: a.text(), Provider: a.text(), Cwd: a.text(),
			SessionID: a.text(), Autopilot: a.flag(),
		}
	case 2:
		return crewbody.TerminateAsked{AgentID: a.member(), Reason: a.text()}
	case 3:
		return crewbody.RestartAsked{AgentID: a.member(), By: a.text()}
	case 4:
		return crewbody.Say{To: a.member(), Text: a.text(), Interrupt: a.flag(), Blocks: a.raw()}
	case 5:
		return crewbody.GroupSay{Group: a.text(), Text: a.text(), MessageID: a.text(), Emoji: a.text(), Remove: a.flag()}
	case 6:
		return crewbody.Decide{DecisionIDs: []string{a.text(), a.text()}, Action: rapid.SampledFrom([]string{"", "confirm", "reject"}).Draw(a.t, "action")}
	case 7:
		return crewbody.QueueHeld{Client: a.text(), Held: a.flag(), UntilMS: a.number()}
	case 8:
		return crewbody.SystemPaused{Paused: a.flag()}
	case 9:
		return crewbody.AgentChanged{
			AgentID: a.member(), Status: a.text(), SessionID: a.text(), Model: a.text(), ContextUsed: a.number(), ContextSize: a.number(),
			Pending: int(a.number()), Resuming: a.flag(),
		}
	case 10:
		return crewbody.AgentExited{
			AgentID: a.member(), Code: int(a.number()), Cause: a.text(), Error: a.text(), Crashes: int(a.number()), Restarting: a.flag(), Output: a.text(),
			Heard: a.number(),
		}
	case 11:
		return crewbody.AgentIdle{AgentID: a.member(), StopReason: a.text(), SessionID: a.text(), Output: a.text(), Heard: a.number()}
	case 12:
		return crewbody.Compacted{AgentID: a.member(), Previous: a.number(), Current: a.number()}
	case 13:
		return crewbody.RestartDue{AgentID: a.member(), Crashes: int(a.number())}
	case 14:
		return crewbody.Dropped{AgentID: a.member(), FromID: a.member(), Reason: a.text()}
	case 15:
		return crewbody.LockChanged{
			Action: a.text(), Repository: a.text(), FilePath: a.text(), AgentID: a.member(), AgentRole: a.text(), HolderID: a.text(), Reason: a.text(),
			ExpiresMS: a.number(),
		}
	case 16:
		return crewbody.Committed{AgentID: a.member(), Commit: a.text(), Files: []string{a.text()}, Message: a.text()}
	case 17:
		return crewbody.Due{AtMS: a.number()}
	}
	return crewbody.Command{
		Member: crewbody.Member{AgentID: a.member(), CrewID: a.text()}, SessionID: a.text(), Offset: a.number(), Heard: a.number(),
		Name: rapid.SampledFrom([]string{"ACTIVITY", "DECISION", "CREATE_AGENT", "SET_TIMER", "", "QUERY_CREW"}).Draw(a.t, "name"), Payload: a.raw(),
	}
}

func TestHostileInputsNeitherPanicNorGrowTheRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(t, "seed"), 200)
		for i := range rapid.IntRange(1, 30).Draw(t, "inputs") {
			in := w.move(w.state())
			if rapid.IntRange(0, 3).Draw(t, "absurd") > 0 {
				body := absurd{t, w.state()}.body()
				in = topics.CrewInput{InputID: fmt.Sprint("h", i), Kind: body.Kind(), Body: crewbody.Encode(body)}
			}
			size := 0
			for _, e := range w.step(in) {
				switch e := e.(type) {
				case mailbox.Mail:
					size += len(e.Input.Body)
					require.Less(t, len(e.Input.Body), 900<<10, e.Input.Kind)
				case topics.CrewEvent:
					size += len(e.Fields)
				}
			}
			require.Less(t, size, 16<<20, in.Kind)
			if s := w.state(); s.DeadlineMs != 0 {
				require.Greater(t, s.DeadlineMs, s.Mailbox.ClockMs, "no deadline stays due after %s", in.Kind)
			}
			w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int64{-3600, 0, 1, 60, 600, 86400}).Draw(t, "tick")) * time.Second)
		}
	})
}

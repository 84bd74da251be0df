package crew_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

func input(id, from string, number int64) topics.CrewInput {
	return topics.CrewInput{InputID: id, Kind: "note", From: from, Number: number}
}

func TestInputsAreAppliedOnce(t *testing.T) {
	box := &mailbox.Mailbox{}
	begin := func(in topics.CrewInput) bool {
		_, ok := mailbox.Begin(box, "agent/a", in, noon, noon)
		return ok
	}
	require.True(t, begin(input("1", "crew/c", 5)))
	require.False(t, begin(input("1", "crew/c", 5)), "a repeat")
	require.False(t, begin(input("0", "crew/c", 4)), "older than the last")
	require.True(t, begin(input("2", "crew/d", 4)), "of another sender")
	require.True(t, begin(input("x", "", 0)))
	require.False(t, begin(input("x", "", 0)), "a repeat without a sender")
	for i := range 1000 {
		begin(input(string(rune('a'+i)), "", 0))
	}
	require.LessOrEqual(t, len(box.Recent), 128*16)
}

func TestTimeNeverGoesBack(t *testing.T) {
	box := &mailbox.Mailbox{}
	at := func(id string, at, wall time.Time) time.Time {
		s, ok := mailbox.Begin(box, "agent/a", input(id, "", 0), at, wall)
		require.True(t, ok)
		return s.Now
	}
	require.Equal(t, noon, at("1", noon, noon))
	require.Equal(t, noon, at("2", noon.Add(-time.Hour), noon))
	require.Equal(t, noon.Add(time.Second), at("3", noon.Add(time.Hour), noon.Add(time.Second)), "no record of the future")
}

func TestRepeatedStepsWriteTheSame(t *testing.T) {
	effects := func() []mailbox.Effect {
		s, ok := mailbox.Begin(&mailbox.Mailbox{}, "crew/c", input("1", "", 0), noon, noon)
		require.True(t, ok)
		s.Send("agent/a", crewbody.Note{Text: "hi"})
		s.Do("h", 0, crewbody.Stop{AgentID: "a"})
		s.Event("agent:status", map[string]any{"agentId": "a", "status": s.NewID("x")})
		s.Gate(topics.GateRequest{GateID: "g", SessionID: "a"})
		return s.Effects
	}
	require.Equal(t, effects(), effects())
}

func TestEventsHaveWhatAgentsWrite(t *testing.T) {
	box := &mailbox.Mailbox{}
	s, ok := mailbox.Begin(box, "agent/a", input("1", "", 0), noon, noon)
	require.True(t, ok)
	for _, raw := range []string{`{"a":1,"a":2}`, `"\ud800"`, "\"\xff\""} {
		require.NotPanics(t, func() { s.Event("agent:tool_call", map[string]any{"rawInput": topics.Raw(raw)}) }, raw)
	}
	require.Len(t, s.Effects, 3)
}

// A step also does what is due, and the notes about that answer nothing.
func TestOnlyAnswersToCommandsHaveTheirIDs(t *testing.T) {
	in := topics.CrewInput{InputID: "agent/a/s1/7", Kind: crewbody.Command{}.Kind(), From: "agent/a", Number: 1}
	s, ok := mailbox.Begin(&mailbox.Mailbox{}, "crew/c", in, noon, noon)
	require.True(t, ok)
	s.Send("agent/a", crewbody.Note{Text: "due before the command"})
	s.Answering = true
	s.Send("agent/a", crewbody.Note{Text: "done"})
	s.Send("agent/a", crewbody.Note{Text: "of another command", CommandID: "agent/a/s1/3"})
	s.Send("agent/b", crewbody.Note{Text: "news"})
	s.Answering = false
	s.Send("agent/a", crewbody.Note{Text: "due after the command"})
	for i, want := range []string{"", in.InputID, "agent/a/s1/3", "", ""} {
		note, err := crewbody.Decode[crewbody.Note](s.Effects[i].(mailbox.Mail).Input.Body)
		require.NoError(t, err)
		require.Equal(t, want, note.CommandID)
	}
	s, ok = mailbox.Begin(&mailbox.Mailbox{}, "crew/c", input("1", "agent/a", 1), noon, noon)
	require.True(t, ok)
	s.Answering = true
	s.Send("agent/a", crewbody.Note{Text: "no command"})
	note, err := crewbody.Decode[crewbody.Note](s.Effects[0].(mailbox.Mail).Input.Body)
	require.NoError(t, err)
	require.Empty(t, note.CommandID)
}

package crew_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/talk"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

func TestM04_AMentionedAgentGetsTheMessageTooAndOneFailureDoesNotStopTheOther(t *testing.T) {
	c := newCrew(t)
	d := c.say(crewbody.Say{To: dev, Text: "look at this with @7e570000.", Blocks: topics.Raw(`[{"type":"image"}]`)})
	require.Equal(t, []string{dev, tester}, d.receivers())
	first, second := sent[crewbody.Prompt](d, dev)[0], sent[crewbody.Prompt](d, tester)[0]
	require.Contains(t, first.Text, "look at this with @7e570000.")
	require.Equal(t, first.Text, second.Text, "all of the text goes to each")
	require.JSONEq(t, `[{"type":"image"}]`, string(first.Blocks))
	require.Nil(t, second.Blocks, "images are for the primary only")
	require.True(t, first.Priority)
	require.Equal(t, "user", first.FromID)
	require.Contains(t, first.Text, "@user")

	d = c.say(crewbody.Say{To: gone, Text: "and @7e57"})
	require.Equal(t, []string{tester}, d.receivers(), "the mention is delivered though the primary has ended")
	require.Equal(t, gone, d.events("crew:not_delivered")[0]["to"])
	d = c.say(crewbody.Say{To: dev, Text: "and @ffff0000"})
	require.Equal(t, []string{dev}, d.receivers(), "the primary gets it though the mention names no agent")
}

func TestM05_EachReceiverGetsAMessageOnce(t *testing.T) {
	// FlightDeck sends once for each mention. Here each receiver gets one.
	c := newCrew(t)
	d := c.say(crewbody.Say{To: dev, Text: "@de000001 and @7e570000, @7e57 and again @7e570000"})
	require.Equal(t, []string{dev, tester}, d.receivers())
	require.Empty(t, d.events("crew:mention_unresolved"))
	d = c.say(crewbody.Say{To: "*", Text: "@de000001 and @7e570000"})
	require.Equal(t, []string{lead, dev, tester}, d.receivers(), "the running ones, and the idle one that is mentioned")
	require.Len(t, d.events("bus:message"), 2, "one record for all, and one for the agent that is mentioned")
}

func TestM08_MentionsThatNameNoOrSeveralAgentsAreReportedAndNotDelivered(t *testing.T) {
	// FlightDeck delivers to the first agent that fits, even one that has ended, and ignores unknown ones.
	c := newCrew(t)
	d := c.say(crewbody.Say{To: lead, Text: "@de00000 or @beef, twice @beef, and @90e00000"})
	require.Equal(t, []string{lead}, d.receivers())
	require.Equal(t, []map[string]any{
		{"token": "de00000", "reason": "ambiguous"}, {"token": "beef", "reason": "unknown"}, {"token": "90e00000", "reason": "unknown"},
	}, d.events("crew:mention_unresolved"))
}

func TestRoleNamesAreNoMentions(t *testing.T) {
	c := newCrew(t)
	c.roster.Members = append(c.roster.Members, &roster.Member{Id: "0f", RoleId: "cafe", RoleName: "Cafe", Status: view.Idle})
	d := c.say(crewbody.Say{To: lead, Text: "@cafe @tester"})
	require.Equal(t, []string{lead}, d.receivers())
	require.Len(t, d.events("crew:mention_unresolved"), 1)
}

func TestInterruptsOfPeopleCarryTheText(t *testing.T) {
	c := newCrew(t)
	d := c.say(crewbody.Say{To: dev, Text: "stop", Interrupt: true})
	require.Contains(t, sent[crewbody.Interrupt](d, dev)[0].Text, "[Message from the user]: stop")
	require.Empty(t, d.prompts(dev))
	d = c.say(crewbody.Say{To: dev, Text: "look", Interrupt: true, Blocks: topics.Raw(`[]`)})
	require.Equal(t, []crewbody.Interrupt{{FromID: "user"}}, sent[crewbody.Interrupt](d, dev))
	require.Len(t, d.prompts(dev), 1, "the blocks follow as a prompt")
}

func TestPeopleHearOfMessagesThatWereDropped(t *testing.T) {
	c := newCrew(t)
	d := c.step(func(s *mailbox.Step, state *talk.Talk) []talk.Entry {
		state.Dropped(s, c.roster, crewbody.Dropped{AgentID: dev, FromID: "user", Reason: "the agent has ended"})
		state.Dropped(s, c.roster, crewbody.Dropped{AgentID: dev, FromID: gone, Reason: "the agent has ended"})
		state.Dropped(s, c.roster, crewbody.Dropped{AgentID: dev, Reason: "the agent has ended"})
		return nil
	})
	require.Equal(t, []map[string]any{{"to": dev, "reason": "the agent has ended"}}, d.events("crew:not_delivered"))
	require.Len(t, d.effects, 1, "an agent that has ended is told nothing")
}

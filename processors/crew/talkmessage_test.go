package crew_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/talk"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

func TestB01_PostingAssignsAnIDAndATimeAndWritesTheRecordOnce(t *testing.T) {
	c := newCrew(t)
	var returned view.BusMessage
	d := c.step(func(s *mailbox.Step, state *talk.Talk) []talk.Entry {
		returned = state.Post(s, talk.PartyOf(c.roster.Find(lead)), talk.PartyOf(c.roster.Find(dev)), talk.Response, "hello")
		return nil
	})
	require.Equal(t, returned, d.message(), "the event has the record that Post returns, once")
	require.Regexp(t, `^msg-[0-9a-f]{16}$`, returned.ID)
	require.Equal(t, view.BusMessage{
		ID: returned.ID, From: lead, To: dev, Type: "response", Content: "hello", Timestamp: view.Time(noon.UnixMilli()),
	}, returned)
	next := c.command(lead, "AGENT_MESSAGE", command.Message{To: dev, Content: "hello"}).message()
	require.NotEqual(t, returned.ID, next.ID)
}

func TestB06_MessagesReachLiveAgentsAndSendersHearOfThoseThatCannot(t *testing.T) {
	c := newCrew(t)
	d := c.command(dev, "AGENT_MESSAGE", command.Message{To: "QA Tester", Content: "it builds"})
	require.Equal(t, []string{tester}, d.receivers())
	got := sent[crewbody.Prompt](d, tester)
	require.Equal(t, []crewbody.Prompt{{Text: "[Message from Developer (de000001)]: it builds", FromID: dev}}, got)
	require.Equal(t, []map[string]any{{
		"from": dev, "fromRole": "Developer", "to": tester, "toRole": "QA Tester", "content": "it builds",
	}}, d.events("agent:message_sent"))
	require.Equal(t, "request", d.message().Type)
	require.Equal(t, "message_sent", d.entries[0].ActionType)

	// FlightDeck records a message to an agent that has ended and tells no one. Here the sender is told, and there is no record.
	d = c.command(dev, "AGENT_MESSAGE", command.Message{To: gone, Content: "are you there?"})
	require.Empty(t, d.receivers())
	require.Empty(t, d.events("bus:message"))
	require.Empty(t, d.entries)
	require.Contains(t, d.note(dev), "the agent has ended")

	// An agent that ends while the message is on its way refuses it: the crew hears that from the agent's row.
	d = c.step(func(s *mailbox.Step, state *talk.Talk) []talk.Entry {
		state.Dropped(s, c.roster, crewbody.Dropped{AgentID: tester, FromID: dev, Reason: "the agent has ended"})
		return nil
	})
	require.Equal(t, "[System] Your message to QA Tester (7e570000) was not delivered: the agent has ended.", d.note(dev))
}

func TestB07_AgentsOfOtherCrewsAreUnknown(t *testing.T) {
	c := newCrew(t)
	other := &roster.Member{
		Id: "0e4e0000-0000-4000-8000-000000000000", RoleId: "architect", RoleName: "Chief Architect", Status: view.Running,
	}
	// The other agent is in another crew, and so in no roster of this one. A crew has one project: there is no sender without.
	for _, name := range []string{other.Id, view.ShortID(other.Id), other.RoleId, other.RoleName} {
		for _, kind := range []string{"AGENT_MESSAGE", "DIRECT_MESSAGE", "INTERRUPT"} {
			d := c.command(lead, kind, command.Message{To: name, Content: "hi"})
			require.Empty(t, d.receivers(), "%s to %s", kind, name)
			require.Empty(t, d.events("bus:message"))
			require.Contains(t, d.note(lead), "no agent of the crew is called so")
		}
		d := c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: "g " + name, Members: []string{name}})
		require.Equal(t, []string{lead}, c.members("g "+name))
		require.Contains(t, d.note(lead), "was skipped")
	}
	c.roster.Members = append(c.roster.Members, other)
	for _, name := range []string{other.Id, view.ShortID(other.Id), other.RoleId, other.RoleName} {
		require.Equal(t, []string{other.Id}, c.command(lead, "AGENT_MESSAGE", command.Message{To: name, Content: "hi"}).receivers())
	}
}

func TestAnAgentCannotWriteToItselfOrAsAnAgentToThePerson(t *testing.T) {
	c := newCrew(t)
	require.Contains(t, c.command(dev, "AGENT_MESSAGE", command.Message{To: dev, Content: "x"}).note(dev), "that is you")
	require.Contains(t, c.command(dev, "AGENT_MESSAGE", command.Message{To: "@user", Content: "x"}).note(dev), "@user")
	d := c.command(dev, "AGENT_MESSAGE", command.Message{To: "developer", Content: "x"})
	require.Equal(t, []string{dev2}, d.receivers(), "a role is never the sender")
}

func TestAgentsThatStartAreWrittenToByTheirShortID(t *testing.T) {
	c := newCrew(t)
	c.spawn("abcd0000-0000-4000-8000-000000000000", "writer")
	d := c.command(lead, "AGENT_MESSAGE", command.Message{To: "abcd0000", Content: "first read the plan"})
	require.Equal(t, []string{"abcd0000-0000-4000-8000-000000000000"}, d.receivers())
}

func TestDirectMessagesAreAcknowledged(t *testing.T) {
	c := newCrew(t)
	d := c.command(dev, "DIRECT_MESSAGE", command.Message{To: "7e57", Content: "psst"})
	require.Equal(t, []string{"[Direct Message from Developer (de000001)]: psst"}, d.prompts(tester))
	require.Contains(t, d.note(dev), "QA Tester (7e570000)")
	require.Equal(t, "direct_message", d.entries[0].Details.Type)
}

func TestBroadcastsAreOneRecordAndAPromptForEachOtherLiveAgentOfTheLead(t *testing.T) {
	const sub, below, other = "5b000000-0000-4000-8000-000000000000", "be100000-0000-4000-8000-000000000000", "07e20000-0000-4000-8000-000000000000"
	c := newCrew(t)
	c.roster.Members = append(c.roster.Members,
		&roster.Member{Id: sub, RoleId: "lead", RoleName: "Lead", Lead: true, ParentId: lead, Status: view.Running},
		&roster.Member{Id: below, RoleId: "developer", RoleName: "Developer", ParentId: sub, Status: view.Running},
		&roster.Member{Id: other, RoleId: "developer", RoleName: "Developer", Status: view.Running})
	require.Equal(t, []string{dev, dev2, tester, sub}, c.command(lead, "BROADCAST", command.Broadcast{Content: "begin"}).receivers(), "a lead's own agents")
	require.Equal(t, []string{below}, c.command(sub, "BROADCAST", command.Broadcast{Content: "begin"}).receivers())
	d := c.command(other, "BROADCAST", command.Broadcast{Content: "hello"})
	require.Empty(t, d.receivers())
	require.Empty(t, d.events("bus:message"))
	require.Contains(t, d.note(other), "only agents with a lead")

	c = newCrew(t)
	d = c.command(dev, "BROADCAST", command.Broadcast{Content: "green"})
	require.Equal(t, []string{dev2, tester}, d.receivers(), "the lead does not get it")
	require.Equal(t, []string{"[Broadcast from Developer (de000001)]: green"}, d.prompts(tester))
	require.Equal(t, "*", d.message().To)
	require.Equal(t, "broadcast", d.message().Type)
	require.Equal(t, "all", d.events("agent:message_sent")[0]["to"])
	require.Equal(t, 2, d.entries[0].Details.RecipientCount)

	c.roster.Members = c.roster.Members[1:2]
	require.Contains(t, c.command(dev, "BROADCAST", command.Broadcast{Content: "anyone?"}).note(dev), "reached no agent")
}

func TestOnlyTheParentInterrupts(t *testing.T) {
	c := newCrew(t)
	d := c.command(lead, "INTERRUPT", command.Message{To: "tester", Content: "stop"})
	require.Equal(t, []crewbody.Interrupt{{Text: "[Interrupt from Project Lead (1ead0000)]: stop", FromID: lead}},
		sent[crewbody.Interrupt](d, tester))
	require.Equal(t, "agent_interrupted", d.entries[0].ActionType)
	for _, target := range []string{tester, lead, dev} {
		d = c.command(dev, "INTERRUPT", command.Message{To: target, Content: "stop"})
		require.Empty(t, d.receivers())
		require.Contains(t, d.note(dev), "had no effect")
	}
	// A sub-lead means its own child by a role that another agent has too.
	c.roster.Members = append(c.roster.Members, &roster.Member{
		Id: "5b000000-0000-4000-8000-000000000000", RoleId: "lead", RoleName: "Lead", Lead: true, ParentId: lead, Status: view.Running,
	}, &roster.Member{
		Id: "c1000000-0000-4000-8000-000000000000", RoleId: "developer", RoleName: "Developer", Status: view.Running,
		ParentId: "5b000000-0000-4000-8000-000000000000",
	})
	d = c.command("5b000000-0000-4000-8000-000000000000", "INTERRUPT", command.Message{To: "developer", Content: "stop"})
	require.Equal(t, []string{"c1000000-0000-4000-8000-000000000000"}, d.receivers())
}

func TestPeersAreTheParentAndTheSiblings(t *testing.T) {
	c := newCrew(t)
	text := c.command(dev, "QUERY_PEERS", command.Nothing{}).note(dev)
	require.Contains(t, text, "Project Lead (1ead0000): running, your parent")
	require.Contains(t, text, "Developer (de000002): idle")
	require.NotContains(t, text, "de000001")
	require.NotContains(t, text, "Writer")
	require.Contains(t, c.command(lead, "QUERY_PEERS", command.Nothing{}).note(lead), "no peers")
}

func TestSummariesAreShort(t *testing.T) {
	c := newCrew(t)
	long := strings.Repeat("ü", 50_000)
	d := c.command(dev, "AGENT_MESSAGE", command.Message{To: tester, Content: long})
	require.Less(t, len(d.entries[0].Summary), 500)
	require.Equal(t, long, d.message().Content, "the record has all of it")
}

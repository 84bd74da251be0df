package crew_test

import (
	"fmt"
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

func TestG01_TheLeadIsAMemberOnceAndStaysAndAGroupIsCreatedOnce(t *testing.T) {
	c := newCrew(t)
	d := c.command(dev, "CREATE_GROUP", command.CreateGroup{Name: "parser", Members: []string{"7e570000", lead, "7e570000"}})
	require.Equal(t, []string{lead, dev, tester}, c.members("parser"))
	require.Equal(t, []map[string]any{{
		"name": "parser", "leadId": lead, "memberIds": []any{lead, dev, tester}, "createdAt": view.Time(noon.UnixMilli()),
	}}, d.events("group:created"))
	require.Contains(t, d.note(tester), `member of the group "parser"`)
	require.Contains(t, d.note(lead), `member of the group "parser"`)

	// FlightDeck reports a group as created each time, with the members that were asked for. Here it is created once.
	d = c.command(tester, "CREATE_GROUP", command.CreateGroup{Name: "parser", Members: []string{dev2}})
	require.Empty(t, d.events("group:created"))
	require.Len(t, d.events("group:member_added"), 1)
	require.Len(t, c.talk.Groups(), 1)
	require.Contains(t, d.note(tester), "existed already")

	d = c.command(dev, "REMOVE_FROM_GROUP", command.Members{Group: "parser", Members: []string{lead}})
	require.Empty(t, d.events("group:member_removed"))
	require.Contains(t, d.note(dev), "The lead stays")
	require.Equal(t, []string{lead, dev, tester, dev2}, c.members("parser"))
}

func TestG02_OnlyMembersThatAreNewOrWereThereAreReported(t *testing.T) {
	c := newCrew(t)
	c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{dev}})
	d := c.command(lead, "ADD_TO_GROUP", command.Members{Group: "g", Members: []string{dev, tester, dev2, tester}})
	require.Equal(t, []map[string]any{
		{"group": "g", "leadId": lead, "agentId": tester}, {"group": "g", "leadId": lead, "agentId": dev2},
	}, d.events("group:member_added"))
	require.Empty(t, sent[crewbody.Note](d, dev), "a member since before is told nothing")
	d = c.command(lead, "REMOVE_FROM_GROUP", command.Members{Group: "g", Members: []string{"de000001", gone, tester}})
	require.Equal(t, []map[string]any{
		{"group": "g", "leadId": lead, "agentId": dev}, {"group": "g", "leadId": lead, "agentId": tester},
	}, d.events("group:member_removed"))
	require.Contains(t, d.note(dev), "removed you")
	require.Contains(t, d.note(lead), "it is not a member")
	require.Equal(t, []string{lead, dev2}, c.members("g"))
}

func TestG03_OnlyMembersWriteToAGroupAndTheOthersGetIt(t *testing.T) {
	c := newCrew(t)
	c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{dev, tester}})
	d := c.command(dev2, "GROUP_MESSAGE", command.GroupMessage{Group: "g", Content: "let me in"})
	require.Empty(t, d.receivers())
	require.Empty(t, d.events("group:message"))
	require.Contains(t, d.note(dev2), "not a member")
	require.Empty(t, c.talk.Messages("g"))

	d = c.command(dev, "GROUP_MESSAGE", command.GroupMessage{Group: "g", Content: "done"})
	require.Equal(t, []string{lead, tester}, d.receivers())
	require.Equal(t, []string{`[Group "g" — Developer (de000001)]: done`}, d.prompts(lead))
	event := d.events("group:message")[0]
	require.Equal(t, []any{lead, tester}, event["recipientIds"])
	kept := c.talk.Messages("g")
	require.Len(t, kept, 1)
	require.Equal(t, view.GroupMessage{
		ID: kept[0].ID, GroupName: "g", LeadID: lead, FromAgentID: dev, FromRole: "Developer", Content: "done",
		Reactions: map[string][]string{}, Timestamp: view.Time(noon.UnixMilli()),
	}, kept[0])
	require.Equal(t, kept[0].ID, event["message"].(map[string]any)["id"])
	require.Contains(t, d.note(dev), "sent to 2 agents")
	require.Equal(t, talk.Details{GroupName: "g", RecipientCount: 2}, d.entries[0].Details)
}

func TestG04_GroupsBelongToALeadAndAreArchivedWhenAllMembersHaveEnded(t *testing.T) {
	c := newCrew(t)
	const sub, child = "5b000000-0000-4000-8000-000000000000", "c1000000-0000-4000-8000-000000000000"
	c.roster.Members = append(c.roster.Members,
		&roster.Member{Id: sub, RoleId: "lead", RoleName: "Lead", Lead: true, ParentId: lead, Status: view.Running},
		&roster.Member{Id: child, RoleId: "developer", RoleName: "Developer", Status: view.Running, ParentId: sub})
	c.command(dev, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{tester}})
	c.command(child, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{child}})
	require.Len(t, c.talk.Groups(), 2, "each lead has its own group of the name")
	require.Equal(t, []string{sub}, c.command(child, "GROUP_MESSAGE", command.GroupMessage{Group: "g", Content: "below"}).receivers())
	require.Equal(t, []string{lead, tester}, c.command(dev, "GROUP_MESSAGE", command.GroupMessage{Group: "g", Content: "above"}).receivers())

	require.Empty(t, c.end(child).events("group:archived"))
	require.Equal(t, []map[string]any{{"name": "g", "leadId": sub}}, c.end(sub).events("group:archived"))
	require.Empty(t, c.end(sub).events("group:archived"), "once")
	require.Len(t, c.talk.Groups(), 1, "an archived group is not listed")
	require.Len(t, c.talk.Messages("g"), 2, "its messages are kept")
	for _, id := range []string{dev, tester} {
		require.Empty(t, c.end(id).events("group:archived"))
	}
	require.NotEmpty(t, c.end(lead).events("group:archived"))
	c.roster.Find(dev).Status = view.Running
	require.Contains(t, c.command(dev, "GROUP_MESSAGE", command.GroupMessage{Group: "g", Content: "?"}).note(dev), "archived")
	require.Contains(t, c.command(dev, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{dev}}).note(dev), "archived")
	require.Contains(t, c.command(dev, "LIST_GROUPS", command.Nothing{}).note(dev), "You are in no group")
	require.Len(t, c.groupSay(crewbody.GroupSay{Group: "g", Text: "?"}).events("crew:not_delivered"), 1)
}

func TestG05_AGroupOfARoleHasItsAgentsAndThoseThatComeLater(t *testing.T) {
	c := newCrew(t)
	c.roster.Find(tester).RoleId = "Developer"
	c.roster.Members = append(c.roster.Members, &roster.Member{
		Id: "c1000000-0000-4000-8000-000000000000", RoleId: "developer", RoleName: "Developer", Status: view.Running, ParentId: dev,
	})
	c.roster.Find(dev2).Status = view.Failed
	c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: "devs", Roles: []string{"DEVELOPER"}})
	require.Equal(t, []string{lead, dev, tester}, c.members("devs"), "neither one that has ended nor one of another lead")

	const late = "a1000000-0000-4000-8000-000000000000"
	c.command(lead, "GROUP_MESSAGE", command.GroupMessage{Group: "devs", Content: "welcome"})
	d := c.spawn(late, "developer")
	require.Equal(t, []map[string]any{{"group": "devs", "leadId": lead, "agentId": late}}, d.events("group:member_added"))
	require.Contains(t, d.note(late), "welcome")
	require.Equal(t, []string{lead, dev, tester, late}, c.members("devs"))
	require.Empty(t, c.spawn("a2000000-0000-4000-8000-000000000000", "writer").effects)
}

func TestG06_MembersAreNamedByShortIDsAndOnlyMembersAddOthers(t *testing.T) {
	c := newCrew(t)
	d := c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{"@7e570000", "de00", "feed0000", gone}})
	require.Equal(t, []string{lead, tester}, c.members("g"), "the group is created without those that cannot be members")
	reply := d.note(lead)
	require.Contains(t, reply, `"de00" was skipped: more than one agent`)
	require.Contains(t, reply, `"feed0000" was skipped: no agent`)
	require.Contains(t, reply, `"`+gone+`" was skipped: the agent has ended`)

	d = c.command(dev, "ADD_TO_GROUP", command.Members{Group: "g", Members: []string{dev}})
	require.Empty(t, d.events("group:member_added"))
	require.Contains(t, d.note(dev), "not a member")
	// FlightDeck lets any agent remove anyone. Here only members do.
	d = c.command(dev, "REMOVE_FROM_GROUP", command.Members{Group: "g", Members: []string{tester}})
	require.Empty(t, d.events("group:member_removed"))
	require.Contains(t, d.note(dev), "not a member")
	require.Contains(t, c.command(dev, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{dev}}).note(dev), "not a member")
	require.Contains(t, c.command(dev, "ADD_TO_GROUP", command.Members{Group: "none", Members: []string{dev}}).note(dev), "there is no group")
}

func TestG07_ANewMemberGetsTheLast20Messages(t *testing.T) {
	c := newCrew(t)
	c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{dev}})
	for i := range 25 {
		c.command(dev, "GROUP_MESSAGE", command.GroupMessage{Group: "g", Content: fmt.Sprintf("message-%02d", i)})
	}
	text := c.command(dev, "ADD_TO_GROUP", command.Members{Group: "g", Members: []string{tester}}).note(tester)
	require.NotContains(t, text, "message-04")
	require.Equal(t, 20, strings.Count(text, "Developer (de000001): message-"))
	require.Less(t, strings.Index(text, "message-05"), strings.Index(text, "message-24"), "oldest first")
}

func TestG08_ReactionsAreAddedOnceAndRemoved(t *testing.T) {
	c := newCrew(t)
	c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{dev}})
	require.Contains(t, c.command(dev, "REACT", command.React{Group: "g", Emoji: "👍"}).note(dev), "does not keep such a message")
	c.command(dev, "GROUP_MESSAGE", command.GroupMessage{Group: "g", Content: "first"})
	c.command(dev, "GROUP_MESSAGE", command.GroupMessage{Group: "g", Content: "second"})
	first := c.talk.Messages("g")[0].ID

	d := c.command(lead, "REACT", command.React{Group: "g", Emoji: "👍", MessageID: first})
	require.Equal(t, []map[string]any{{
		"messageId": first, "groupName": "g", "leadId": lead, "agentId": lead, "emoji": "👍", "action": "add",
	}}, d.events("group:reaction"))
	d = c.command(lead, "REACT", command.React{Group: "g", Emoji: "👍", MessageID: first})
	require.Empty(t, d.events("group:reaction"))
	require.Contains(t, d.note(lead), "there already")
	require.Contains(t, c.command(lead, "REACT", command.React{Group: "g", Emoji: "👍", MessageID: "gmsg-x"}).note(lead), "does not keep")
	require.Contains(t, c.command(tester, "REACT", command.React{Group: "g", Emoji: "👍"}).note(tester), "not a member")
	c.command(dev, "REACT", command.React{Group: "g", Emoji: "👍", MessageID: first})
	c.command(dev, "REACT", command.React{Group: "g", Emoji: "🎉"})
	require.Equal(t, map[string][]string{"👍": {lead, dev}}, c.talk.Messages("g")[0].Reactions)
	require.Equal(t, map[string][]string{"🎉": {dev}}, c.talk.Messages("g")[1].Reactions, "the newest by default")

	say := crewbody.GroupSay{Group: "g", MessageID: first, Emoji: "👀"}
	require.Equal(t, "human", c.groupSay(say).events("group:reaction")[0]["agentId"])
	require.Empty(t, c.groupSay(say).events("group:reaction"))
	say.Remove = true
	require.Equal(t, "remove", c.groupSay(say).events("group:reaction")[0]["action"])
	d = c.groupSay(say)
	require.Empty(t, d.events("group:reaction"))
	require.Len(t, d.events("crew:not_delivered"), 1)
	require.Equal(t, map[string][]string{"👍": {lead, dev}}, c.talk.Messages("g")[0].Reactions, "an emoji without agents is gone")
}

func TestAPersonWhoWritesToAGroupBecomesAMember(t *testing.T) {
	c := newCrew(t)
	c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{dev}})
	d := c.groupSay(crewbody.GroupSay{Group: "g", Text: "how is it going?"})
	require.Equal(t, []string{lead, dev}, d.receivers())
	require.Equal(t, []string{`[Group "g" — Human]: how is it going?`}, d.prompts(dev))
	require.Len(t, d.events("group:member_added"), 1)
	require.Empty(t, c.groupSay(crewbody.GroupSay{Group: "g", Text: "?"}).events("group:member_added"))
	require.Equal(t, []any{lead, "human"}, c.command(dev, "GROUP_MESSAGE", command.GroupMessage{Group: "g", Content: "well"}).
		events("group:message")[0]["recipientIds"])
	require.Len(t, c.groupSay(crewbody.GroupSay{Group: "none", Text: "?"}).events("crew:not_delivered"), 1)
	for _, id := range []string{dev, lead} {
		d = c.end(id)
	}
	require.Len(t, d.events("group:archived"), 1, "a person does not keep a group open")
}

func TestAgentsListTheirGroups(t *testing.T) {
	c := newCrew(t)
	require.Contains(t, c.command(dev, "LIST_GROUPS", command.Nothing{}).note(dev), "You are in no group")
	c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{dev}})
	c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: "other", Members: []string{tester}})
	c.command(lead, "GROUP_MESSAGE", command.GroupMessage{Group: "g", Content: strings.Repeat("x", 150)})
	text := c.command(dev, "LIST_GROUPS", command.Nothing{}).note(dev)
	require.Contains(t, text, `"g": 2 members, last message of Project Lead: `+strings.Repeat("x", 100)+"…")
	require.NotContains(t, text, "other")
}

func TestAgentsWithoutALeadHaveNoGroups(t *testing.T) {
	c := newCrew(t)
	c.roster.Find(dev).ParentId = ""
	require.Contains(t, c.command(dev, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{tester}}).note(dev), "only agents with a lead")
}

func TestAgentsWithTasksOfOneSubjectGetAGroup(t *testing.T) {
	c := newCrew(t)
	auto := func(active ...talk.Assignment) did {
		return c.step(func(s *mailbox.Step, state *talk.Talk) []talk.Entry {
			state.AutoGroup(s, c.roster, c.roster.Find(lead), active)
			return nil
		})
	}
	a, b := talk.Assignment{AgentID: dev, Task: "Write the parser"}, talk.Assignment{AgentID: dev2, Task: "Test the Parser, please"}
	require.Empty(t, auto(a, b, talk.Assignment{AgentID: dev2, Task: "review parser"}).effects, "two agents")
	require.Empty(t, auto(a, b, talk.Assignment{AgentID: tester, Task: "Draw a logo"}).effects)
	d := auto(a, b, talk.Assignment{AgentID: tester, Task: "parser: fuzz it"})
	require.Equal(t, []string{lead, dev, dev2, tester}, c.members("parser-team"))
	require.Equal(t, []string{lead, dev, dev2, tester}, d.receivers(), "FlightDeck drops the opening message; here all get it")
	require.Equal(t, "system", c.talk.Messages("parser-team")[0].FromAgentID)
	require.Empty(t, auto(a, b, talk.Assignment{AgentID: tester, Task: "parser"}).effects, "only once")

	const late = "a1000000-0000-4000-8000-000000000000"
	c.spawn(late, "writer")
	d = auto(a, b, talk.Assignment{AgentID: tester, Task: "parser"}, talk.Assignment{AgentID: late, Task: "the parser's README"})
	require.Len(t, d.events("group:member_added"), 1)
	require.Len(t, sent[crewbody.Note](d, late), 1)
	require.Empty(t, d.receivers(), "the others are told nothing")
}

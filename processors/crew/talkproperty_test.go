package crew_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// maxRow is the size that a crew's row can spare for what is said in it.
const maxRow = 300 << 10

func TestWhatIsSaidFitsIntoTheRow(t *testing.T) {
	c := newCrew(t)
	long := strings.Repeat("é", 2_500)
	for i := range 34 {
		name := fmt.Sprintf("%03d", i) + strings.Repeat("n", 197)
		var roles []string
		for j := range 16 {
			roles = append(roles, fmt.Sprintf("%02d", j)+strings.Repeat("r", 62))
		}
		c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: name, Members: []string{dev, tester}, Roles: roles})
		for range 2 {
			c.command(lead, "GROUP_MESSAGE", command.GroupMessage{Group: name, Content: long})
			c.command(dev, "REACT", command.React{Group: name, Emoji: "👍"})
		}
	}
	require.Len(t, c.talk.Groups(), 32)
	last := c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: "one more", Members: []string{dev}})
	require.Contains(t, last.note(lead), "too many groups")
	for i := range 70 {
		id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", i)
		c.spawn(id, strings.Repeat("r", 10))
		last = c.command(lead, "ADD_TO_GROUP", command.Members{Group: c.talk.Groups()[i%32].Name, Members: []string{id}})
	}
	require.Less(t, proto.Size(c.talk), maxRow)
	require.Less(t, len(sent[crewbody.Note](last, "00000045-0000-4000-8000-000000000000")[0].Text), 16<<10, "a note of an agent's row")
}

func TestAFullGroupTakesNoMoreMembers(t *testing.T) {
	c := newCrew(t)
	c.command(lead, "CREATE_GROUP", command.CreateGroup{Name: "g", Members: []string{dev}})
	var d did
	for i := range 80 {
		id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", i)
		c.spawn(id, "writer")
		d = c.command(lead, "ADD_TO_GROUP", command.Members{Group: "g", Members: []string{id}})
	}
	require.Len(t, c.members("g"), 64)
	require.Contains(t, d.note(lead), "the group is full")
}

// What is said is either delivered to each agent that it is for and recorded, or the sender is told why not. The harness also
// repeats each step.
func TestNothingThatIsSaidIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrew(t)
		ids := []string{lead, dev, dev2, tester, gone}
		statuses := []string{view.Creating, view.Running, view.Idle, view.Completed, view.Failed, view.Terminated}
		some := func(label string) string { return rapid.SampledFrom(ids).Draw(t, label) }
		group := rapid.SampledFrom([]string{"a", "b"})
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for _, g := range c.talk.Groups() {
					require.Equal(t, g.LeadID, g.MemberIDs[0])
					sorted := slices.Sorted(slices.Values(g.MemberIDs))
					require.Equal(t, sorted, slices.Compact(slices.Clone(sorted)), "each member once")
				}
				for _, g := range c.talk.Rooms {
					require.LessOrEqual(t, len(g.Messages), 20)
				}
			},
			"status": func(t *rapid.T) {
				m := c.roster.Find(some("agent"))
				was := m.Status
				m.Status = rapid.SampledFrom(statuses).Draw(t, "status")
				if view.Ended(m.Status) && !view.Ended(was) {
					c.end(m.Id)
				}
			},
			"message": func(t *rapid.T) {
				from, to := some("from"), some("to")
				d := c.command(from, "AGENT_MESSAGE", command.Message{To: to, Content: "x"})
				if from == to || view.Ended(c.roster.Find(to).Status) {
					require.Empty(t, d.receivers())
					require.Len(t, sent[crewbody.Note](d, from), 1)
					return
				}
				require.Equal(t, []string{to}, d.receivers())
				require.Equal(t, to, d.message().To)
			},
			"create": func(t *rapid.T) {
				c.command(some("from"), "CREATE_GROUP", command.CreateGroup{Name: group.Draw(t, "group"), Members: []string{some("member")}})
			},
			"add": func(t *rapid.T) {
				c.command(some("from"), "ADD_TO_GROUP", command.Members{Group: group.Draw(t, "group"), Members: []string{some("member")}})
			},
			"remove": func(t *rapid.T) {
				c.command(some("from"), "REMOVE_FROM_GROUP", command.Members{Group: group.Draw(t, "group"), Members: []string{some("member")}})
			},
			"group message": func(t *rapid.T) {
				from := some("from")
				d := c.command(from, "GROUP_MESSAGE", command.GroupMessage{Group: group.Draw(t, "group"), Content: "x"})
				require.Len(t, sent[crewbody.Note](d, from), 1)
				events := d.events("group:message")
				if len(events) == 0 {
					require.Empty(t, d.receivers())
					return
				}
				var live []string
				for _, id := range events[0]["recipientIds"].([]any) {
					require.NotEqual(t, from, id)
					if m := c.roster.Find(id.(string)); m != nil && !view.Ended(m.Status) {
						live = append(live, m.Id)
					}
				}
				require.Equal(t, live, d.receivers())
			},
			"say": func(t *rapid.T) {
				to := rapid.SampledFrom([]string{"*", lead, dev, gone}).Draw(t, "to")
				token := some("mentioned")[:rapid.IntRange(4, 8).Draw(t, "digits")]
				d := c.say(crewbody.Say{To: to, Text: "hi @" + token})
				sorted := slices.Sorted(slices.Values(d.receivers()))
				require.Equal(t, sorted, slices.Compact(slices.Clone(sorted)), "each receiver once")
				if to != "*" && !slices.Contains(d.receivers(), to) {
					require.Len(t, d.events("crew:not_delivered"), 1)
				}
			},
		})
		require.Less(t, proto.Size(c.talk), maxRow)
	})
}

func TestOtherCommandsAreNotHandled(t *testing.T) {
	c := newCrew(t)
	s, ok := mailbox.Begin(c.box, mailbox.Crew("c"), topics.CrewInput{InputID: "1", Kind: "x"}, noon, noon)
	require.True(t, ok)
	_, handled := c.talk.Command(s, c.roster, c.roster.Find(lead), "QUERY_CREW", command.Nothing{})
	require.False(t, handled)
	require.Empty(t, s.Effects)
}

package talk

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
)

// groupEvent is the event of a group that was created. One of a group that was archived has no members and no time.
type groupEvent struct {
	Name      string   `json:"name"`
	LeadID    string   `json:"leadId"`
	MemberIDs []string `json:"memberIds,omitzero"`
	CreatedAt string   `json:"createdAt,omitzero"`
}

type membership struct {
	Group   string `json:"group"`
	LeadID  string `json:"leadId"`
	AgentID string `json:"agentId"`
}

func (t *Talk) find(leadID, name string) *Group {
	for _, g := range t.GetRooms() {
		if g.LeadId == leadID && g.Name == name {
			return g
		}
	}
	return nil
}

// of returns the group that an agent means by a name: that of its own lead, unless only another lead's has it as a member.
func (t *Talk) of(r *roster.Roster, m *roster.Member, name string) *Group {
	own := t.find(r.LeadOf(m), name)
	if own != nil && own.has(m.Id) {
		return own
	}
	for _, g := range t.GetRooms() {
		if g.Name == name && g.has(m.Id) {
			return g
		}
	}
	return own
}

func (g *Group) has(id string) bool {
	return slices.ContainsFunc(g.Members, func(m *GroupMember) bool { return m.Id == id })
}

// create creates a group with its lead as the first member. It returns nil if there is no room for one more.
func (t *Talk) create(s *mailbox.Step, r *roster.Roster, leadID, name string, roles, members []string) *Group {
	if len(t.Rooms) >= groupLimit {
		old := slices.IndexFunc(t.Rooms, func(g *Group) bool { return g.Archived })
		if old < 0 {
			return nil
		}
		t.Rooms = slices.Delete(t.Rooms, old, old+1)
	}
	g := &Group{Name: name, LeadId: leadID, ProjectId: r.GetProjectId(), Roles: roles, CreatedMs: s.NowMS()}
	g.join(s, leadID)
	for _, id := range members {
		g.join(s, id)
	}
	t.Rooms = append(t.Rooms, g)
	v := g.view()
	s.Event("group:created", groupEvent{v.Name, v.LeadID, v.MemberIDs, v.CreatedAt})
	return g
}

// join adds a member without an event, and reports whether it is new. A full group takes no one.
func (g *Group) join(s *mailbox.Step, id string) bool {
	if g.has(id) || len(g.Members) >= memberLimit {
		return false
	}
	g.Members = append(g.Members, &GroupMember{Id: id, AddedMs: s.NowMS()})
	return true
}

// add adds members with an event for each new one, and returns the new ones.
func (g *Group) add(s *mailbox.Step, ids []string) (added []string) {
	for _, id := range ids {
		if g.join(s, id) {
			s.Event("group:member_added", membership{g.Name, g.LeadId, id})
			added = append(added, id)
		}
	}
	return added
}

// remove removes members with an event for each, and returns them. The lead stays.
func (g *Group) remove(s *mailbox.Step, ids []string) (removed []string) {
	for _, id := range ids {
		i := slices.IndexFunc(g.Members, func(m *GroupMember) bool { return m.Id == id })
		if i < 0 || id == g.LeadId {
			continue
		}
		g.Members = slices.Delete(g.Members, i, i+1)
		s.Event("group:member_removed", membership{g.Name, g.LeadId, id})
		removed = append(removed, id)
	}
	return removed
}

// Spawned makes a new agent a member of the groups of its lead that its role belongs to. Call it after the agent is on the
// roster.
func (t *Talk) Spawned(s *mailbox.Step, r *roster.Roster, m *roster.Member) {
	for _, g := range t.GetRooms() {
		if g.Archived || g.LeadId != m.ParentId || m.ParentId == "" || !slices.Contains(g.Roles, strings.ToLower(m.RoleId)) {
			continue
		}
		if len(g.add(s, []string{m.Id})) > 0 {
			note(s, m.Id, g.welcome(r))
		}
	}
}

// Ended archives the groups of an agent that has ended, if all their members have. Call it after the agent's status on the
// roster is terminal.
func (t *Talk) Ended(s *mailbox.Step, r *roster.Roster, m *roster.Member) {
	for _, g := range t.GetRooms() {
		if g.Archived || !g.has(m.Id) {
			continue
		}
		alive := slices.ContainsFunc(g.Members, func(member *GroupMember) bool {
			return member.Id != m.Id && reachable(r.Find(member.Id))
		})
		if !alive {
			g.Archived = true
			s.Event("group:archived", groupEvent{Name: g.Name, LeadID: g.LeadId})
		}
	}
}

// welcomeAll tells new members of a group what they are in. The one who added them knows.
func (g *Group) welcomeAll(s *mailbox.Step, r *roster.Roster, added []string, by string) {
	for _, id := range added {
		if id != by && reachable(r.Find(id)) {
			note(s, id, g.welcome(r))
		}
	}
}

// welcome is what a new member of a group is told: who is in it and what was said last.
func (g *Group) welcome(r *roster.Roster) string {
	var b strings.Builder
	fmt.Fprintf(&b, "You are now a member of the group %q. %s\n", g.Name, g.memberLine(r))
	if len(g.Messages) > 0 {
		b.WriteString("The last messages:\n")
		for _, m := range g.Messages {
			fmt.Fprintf(&b, "%s: %s\n", nameAs(m.FromRole, m.FromId), truncate.Marked(m.Content, welcomeBytes))
		}
	}
	fmt.Fprintf(&b, "Write to the group with ⟦⟦ GROUP_MESSAGE {\"group\": %q, \"content\": \"...\"} ⟧⟧.", g.Name)
	return b.String()
}

func (g *Group) memberLine(r *roster.Roster) string {
	var list []string
	for _, m := range g.Members {
		list = append(list, nameOf(r, m.Id))
	}
	return "Members: " + strings.Join(list, ", ") + "."
}

// Assignment is an active delegation of a lead.
type Assignment struct{ AgentID, Task string }

// sharing is how many agents work on the same before they get a group.
const sharing = 3

// AutoGroup creates a group "<word>-team" for the agents of a lead whose tasks have the same first significant word, if there
// are at least three of them, and adds those that came later. Call it after a delegation with all active ones of the lead. One
// call changes one group.
func (t *Talk) AutoGroup(s *mailbox.Step, r *roster.Roster, lead *roster.Member, active []Assignment) {
	var words []string
	agents := map[string][]string{} // read in the order of words
	for _, a := range active {
		word := significant(a.Task)
		if word == "" || !reachable(r.Find(a.AgentID)) {
			continue
		}
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
		if !slices.Contains(agents[word], a.AgentID) {
			agents[word] = append(agents[word], a.AgentID)
		}
	}
	for _, word := range words {
		if len(agents[word]) >= sharing && t.team(s, r, lead, word, agents[word]) {
			return
		}
	}
}

// team creates the group of a word or adds to it, and reports whether it changed.
func (t *Talk) team(s *mailbox.Step, r *roster.Roster, lead *roster.Member, word string, ids []string) bool {
	name := word + "-team"
	if g := t.find(lead.Id, name); g != nil {
		if g.Archived {
			return false
		}
		added := g.add(s, ids)
		g.welcomeAll(s, r, added, "")
		return len(added) > 0
	}
	g := t.create(s, r, lead.Id, name, nil, ids)
	if g == nil {
		return false
	}
	t.post(s, r, g, System, fmt.Sprintf("This group is for the agents that work on %q. %s", word, g.memberLine(r)))
	return true
}

// stopWords say nothing about a task.
var stopWords = map[string]bool{
	"about": true, "after": true, "also": true, "before": true, "from": true, "have": true, "into": true, "make": true,
	"more": true, "please": true, "should": true, "some": true, "that": true, "their": true, "them": true, "then": true,
	"there": true, "these": true, "this": true, "those": true, "what": true, "when": true, "where": true, "which": true,
	"while": true, "will": true, "with": true, "would": true, "your": true, "task": true, "need": true, "needs": true,
	"must": true, "each": true, "every": true, "using": true,
	// What is done says less than what it is done to.
	"implement": true, "create": true, "write": true, "build": true, "review": true, "test": true, "update": true,
	"check": true, "design": true, "develop": true,
}

// maxWord is the length of a significant word in characters; longer ones are no words.
const maxWord = 40

// significant returns the first word of a task with more than three letters that is no stop word, in lower case.
func significant(task string) string {
	for word := range strings.FieldsFuncSeq(strings.ToLower(task), func(c rune) bool { return !unicode.IsLetter(c) }) {
		if n := len([]rune(word)); n > 3 && n <= maxWord && !stopWords[word] {
			return word
		}
	}
	return ""
}

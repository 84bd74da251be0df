package talk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// createGroup creates a group of the caller's lead. If the lead has the group already, its members may add others this way.
func (t *Talk) createGroup(s *mailbox.Step, r *roster.Roster, from *roster.Member, c command.CreateGroup) (answer string) {
	lead := r.LeadOf(from)
	if lead == "" {
		return "CREATE_GROUP had no effect: only agents with a lead, and leads, have groups."
	}
	roles, problem := roleIDs(c.Roles)
	if problem != "" {
		return "CREATE_GROUP had no effect: " + problem + "."
	}
	ids, problems := t.named(r, from, c.Members)
	for _, m := range r.GetMembers() {
		if r.LeadOf(m) == lead && reachable(m) && slices.Contains(roles, strings.ToLower(m.RoleId)) {
			ids = append(ids, m.Id)
		}
	}
	ids = append([]string{from.Id}, ids...)
	g := t.find(lead, c.Name)
	var added []string
	switch {
	case g == nil:
		if g = t.create(s, r, lead, c.Name, roles, ids); g == nil {
			return "CREATE_GROUP had no effect: the crew has too many groups."
		}
		for _, m := range g.Members {
			added = append(added, m.Id)
		}
		problems = append([]string{fmt.Sprintf("The group %q was created.", c.Name)}, problems...)
	case g.Archived:
		return fmt.Sprintf("CREATE_GROUP had no effect: the group %q is archived.", c.Name)
	case !g.has(from.Id):
		return fmt.Sprintf("CREATE_GROUP had no effect: there is a group %q, and you are not a member.", c.Name)
	default:
		added = g.add(s, ids)
		problems = append([]string{fmt.Sprintf("The group %q existed already.", c.Name)}, problems...)
	}
	g.welcomeAll(s, r, added, from.Id)
	return strings.Join(append(problems, g.missing(ids)...), "\n") + "\n" + g.memberLine(r)
}

// addToGroup adds members to a group of the caller.
func (t *Talk) addToGroup(s *mailbox.Step, r *roster.Roster, from *roster.Member, c command.Members) (answer string) {
	g, problem := t.open(r, from, c.Group)
	if g == nil {
		return "ADD_TO_GROUP had no effect: " + problem
	}
	ids, problems := t.named(r, from, c.Members)
	added := g.add(s, ids)
	g.welcomeAll(s, r, added, from.Id)
	first := fmt.Sprintf("Added to the group %q: %s.", c.Group, names(r, added))
	return strings.Join(append(append([]string{first}, problems...), g.missing(ids)...), "\n")
}

// removeFromGroup removes members from a group of the caller.
func (t *Talk) removeFromGroup(s *mailbox.Step, r *roster.Roster, from *roster.Member, c command.Members) (answer string) {
	g, problem := t.open(r, from, c.Group)
	if g == nil {
		return "REMOVE_FROM_GROUP had no effect: " + problem
	}
	ids, problems := g.present(r, from, c.Members)
	removed := g.remove(s, ids)
	for _, id := range removed {
		if id != from.Id && reachable(r.Find(id)) {
			note(s, id, fmt.Sprintf("%s removed you from the group %q.", from.Label(), g.Name))
		}
	}
	first := fmt.Sprintf("Removed from the group %q: %s.", c.Group, names(r, removed))
	if slices.Contains(ids, g.LeadId) {
		problems = append(problems, "The lead stays in its groups.")
	}
	return strings.Join(append([]string{first}, problems...), "\n")
}

// groupsOf are the groups of an agent.
func (t *Talk) groupsOf(from *roster.Member) (text string) {
	for _, g := range t.GetRooms() {
		if g.Archived || !g.has(from.Id) {
			continue
		}
		text += fmt.Sprintf("\n- %q: %d members", g.Name, len(g.Members))
		if n := len(g.Messages); n > 0 {
			last := g.Messages[n-1]
			text += fmt.Sprintf(", last message of %s: %s", last.FromRole, truncate.Characters(last.Content, previewRunes))
		}
	}
	if text == "" {
		text = "\nYou are in no group."
	}
	return "Your groups:" + text
}

// open returns a group that an agent may change and write to, or why there is none.
func (t *Talk) open(r *roster.Roster, m *roster.Member, name string) (g *Group, problem string) {
	g = t.of(r, m, name)
	switch {
	case g == nil:
		return nil, fmt.Sprintf("there is no group %q.", truncate.Characters(name, previewRunes))
	case g.Archived:
		return nil, fmt.Sprintf("the group %q is archived.", g.Name)
	case !g.has(m.Id):
		return nil, fmt.Sprintf("you are not a member of the group %q.", g.Name)
	}
	return g, ""
}

// named returns the agents that a command names for a group, and a sentence for each that cannot be a member.
func (t *Talk) named(r *roster.Roster, from *roster.Member, given []string) (ids, problems []string) {
	for _, name := range given {
		m, err := target(r, from, name)
		switch {
		case err == nil:
			ids = append(ids, m.Id)
		case itself(from, name):
			ids = append(ids, from.Id)
		default:
			problems = append(problems, fmt.Sprintf("%q was skipped: %v.", truncate.Characters(name, previewRunes), err))
		}
	}
	return ids, problems
}

// itself reports whether an agent names itself by its ID or its beginning.
func itself(from *roster.Member, name string) bool {
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@"))
	return len(name) >= shortest && strings.HasPrefix(from.Id, name)
}

// present returns the members of a group that a command names. Members that have ended, and people, can be removed too.
func (g *Group) present(r *roster.Roster, from *roster.Member, given []string) (ids, problems []string) {
	for _, name := range given {
		lower := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@"))
		var fit []string
		for _, m := range g.Members {
			if m.Id == lower {
				fit = []string{m.Id}
				break
			}
			if len(lower) >= shortest && strings.HasPrefix(m.Id, lower) {
				fit = append(fit, m.Id)
			}
		}
		if len(fit) == 0 {
			if m, err := r.Resolve(name, from.Id); err == nil && g.has(m.Id) {
				fit = []string{m.Id}
			}
		}
		switch len(fit) {
		case 1:
			ids = append(ids, fit[0])
		case 0:
			problems = append(problems, fmt.Sprintf("%q was skipped: it is not a member.", truncate.Characters(name, previewRunes)))
		default:
			problems = append(problems, fmt.Sprintf("%q was skipped: it fits several members.", truncate.Characters(name, previewRunes)))
		}
	}
	return ids, problems
}

// missing is the sentence about members for whom there was no room.
func (g *Group) missing(ids []string) []string {
	n := 0
	for _, id := range ids {
		if !g.has(id) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d agents were skipped: the group is full with %d members.", n, memberLimit)}
}

// roleIDs returns the roles of a group in lower case, each once.
func roleIDs(given []string) (roles []string, problem string) {
	for _, role := range given {
		role = strings.ToLower(strings.TrimSpace(role))
		switch {
		case role == "" || slices.Contains(roles, role):
		case len(role) > roleBytes || len(roles) >= roleLimit:
			return nil, fmt.Sprintf("a group has at most %d roles with at most %d characters", roleLimit, roleBytes)
		default:
			roles = append(roles, role)
		}
	}
	return roles, ""
}

// names lists agents.
func names(r *roster.Roster, ids []string) string {
	if len(ids) == 0 {
		return "no one"
	}
	var list []string
	for _, id := range ids {
		list = append(list, nameOf(r, id))
	}
	return strings.Join(list, ", ")
}

func nameOf(r *roster.Roster, id string) string {
	if m := r.Find(id); m != nil {
		return m.Label()
	}
	return view.ShortID(id)
}

package talk

import (
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
)

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

package manifest

import (
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/view"
)

// The limits of the texts, so that a crew of many agents with long tasks fits into a prompt.
const (
	childTaskRunes = 80
	taskRunes      = 300
	ownTaskRunes   = 4000 // the crew's sentence about the assignment has all of it
	textRunes      = 200  // of a path or a summary
	filesShown     = 10   // of one agent
	peersShown     = 100
	locksShown     = 100
	// endedShown is how long an agent that has ended is still shown, in milliseconds.
	endedShown = 30_000
)

// lines is a text of sections with a blank line between them.
type lines struct{ strings.Builder }

func (l *lines) section(title string) {
	if l.Len() > 0 {
		l.WriteByte('\n')
	}
	l.line("== %s ==", title)
}

func (l *lines) line(format string, args ...any) {
	fmt.Fprintf(l, format, args...)
	l.WriteByte('\n')
}

// oneLine returns the beginning of a text without line breaks, so that a task cannot look like a section.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	return cut(text, limit)
}

// cut returns the beginning of a text.
func cut(text string, limit int) string {
	n := 0
	for i := range text {
		if n == limit {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

func short(m *roster.Member) string { return view.ShortID(m.Id) }

// who is how a line begins that is about an agent.
func who(m *roster.Member) string { return fmt.Sprintf("Agent %s (%s)", short(m), m.RoleName) }

func working(m *roster.Member, limit int) string {
	if m.Task == "" {
		return "idle"
	}
	return oneLine(m.Task, limit)
}

// peerLine shows an agent with what it has locked.
func peerLine(r *roster.Roster, m *roster.Member) string {
	files := r.LocksOf(m.Id)
	locked := "none"
	if len(files) > 0 {
		more := ""
		if surplus := len(files) - filesShown; surplus > 0 {
			files, more = files[:filesShown], fmt.Sprintf(" and %d more", surplus)
		}
		for i, f := range files {
			files[i] = oneLine(f, textRunes)
		}
		locked = strings.Join(files, ", ") + more
	}
	return fmt.Sprintf("%s — Status: %s, Working on: %s, Files locked: %s", who(m), m.Status, working(m, taskRunes), locked)
}

// childLine shows an agent to its parent.
func childLine(m *roster.Member) string {
	line := fmt.Sprintf("- %s %s", short(m), m.RoleName)
	if m.Model != "" {
		line += " [" + m.Model + "]"
	}
	line += ": " + m.Status
	if m.Task != "" {
		line += ", task: " + oneLine(m.Task, childTaskRunes)
	}
	return line
}

// peers returns the other members that have not ended, the first hundred. Those that have ended since a time in Unix
// milliseconds are included.
func peers(r *roster.Roster, viewer *roster.Member, since int64) (others []*roster.Member) {
	for _, m := range r.GetMembers() {
		if m.Id == viewer.Id || view.Ended(m.Status) && m.EndedMs < since {
			continue
		}
		if others = append(others, m); len(others) == peersShown {
			break
		}
	}
	return others
}

// never is later than any time of an agent's end.
const never = int64(1) << 62

// Package manifest is what an agent is told about its crew: the manifest in its first prompt, a CREW_UPDATE when something has
// changed, and the answer to QUERY_CREW. The texts are pure functions of the roster and of who reads them.
//
// Refresh decides when a CREW_UPDATE is due: two seconds after the last change, at most ten seconds after the first. An agent
// that has lost its context gets one at once. All running agents get it. The agent's row drops one whose Digest is that of the
// last one it delivered: the digest leaves out times and activities, so that an agent is not woken for what it need not know.
package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

const (
	quiet   = 2 * time.Second  // after the last change
	longest = 10 * time.Second // after the first change
)

// Trigger asks for a CREW_UPDATE: for one agent with the next Due, or for all running agents, with an empty agentID, when no
// other change follows for two seconds, at most ten seconds after the first.
func (f *Refresh) Trigger(s *mailbox.Step, agentID string) {
	if agentID != "" {
		if !slices.Contains(f.Now, agentID) {
			f.Now = append(f.Now, agentID)
		}
		return
	}
	if f.DueMs != 0 && f.DueMs <= s.NowMS() {
		return // the step's Due sends it: it does not matter how late the deadline is read
	}
	f.FirstMs = cmp.Or(f.FirstMs, s.NowMS())
	f.DueMs = min(s.NowMS()+quiet.Milliseconds(), f.FirstMs+longest.Milliseconds())
}

// DeadlineMS is when Due must be called, in Unix milliseconds, 0 for never. It is in the past if Due must be called at once.
func (f *Refresh) DeadlineMS() int64 {
	if len(f.GetNow()) > 0 {
		return 1
	}
	return f.GetDueMs()
}

// Due sends the CREW_UPDATEs that are due: to agents that are running and not continuing a session. Call it at the end of each
// step, when the roster has the step's changes. What waits is cancelled when all agents of the crew have ended.
func (f *Refresh) Due(s *mailbox.Step, r *roster.Roster, news News) {
	all := f.DueMs != 0 && f.DueMs <= s.NowMS()
	now := f.Now
	f.Now = nil
	if all || !slices.ContainsFunc(r.GetMembers(), func(m *roster.Member) bool { return !view.Ended(m.Status) }) {
		f.FirstMs, f.DueMs = 0, 0
	}
	for _, m := range r.GetMembers() {
		if m.Status != view.Running || m.Resuming || !all && !slices.Contains(now, m.Id) {
			continue
		}
		s.Send(mailbox.Agent(m.Id), crewbody.Refresh{
			Text: Update(r, m, news, s.NowMS()), Digest: Digest(r, m, news, s.NowMS()),
		})
	}
}

// The limits of the texts, so that a crew of many agents with long tasks fits into a prompt.
const (
	childTaskRunes = 80
	taskRunes      = 300
	ownTaskRunes   = 4000 // the crew's sentence about the assignment has all of it
	textRunes      = 200  // of a path or a summary
	filesShown     = 10   // of one agent
	linesShown     = 100  // of a list of agents or of locks
	listBytes      = 14 << 10
	// What an agent's row takes of a CREW_UPDATE and of a note is more than this, in bytes.
	updateBytes = 40 << 10
	rosterBytes = 14 << 10
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

// list writes the first lines of a list, how many more there are, and a line for an empty list.
func (l *lines) list(items []string, none string) {
	if len(items) == 0 {
		l.line("%s", none)
	}
	size := 0
	for i, item := range items {
		if size += len(item); i == linesShown || size > listBytes {
			l.line("and %d more", len(items)-i)
			return
		}
		l.line("%s", item)
	}
}

// block returns the text between the markers of a block. Lines that are too many are left out, so that the end marker is not.
func (l *lines) block(name string, limit int) string {
	body := l.String()
	if len(body) > limit {
		body = body[:limit]
		body = body[:strings.LastIndexByte(body, '\n')+1] + "and more that is left out\n"
	}
	return "⟦⟦ " + name + "\n" + body + name + " ⟧⟧"
}

// oneLine returns the beginning of a text without line breaks, so that a task cannot look like a section.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	return truncate.Characters(text, limit)
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

func peerLines(r *roster.Roster, members []*roster.Member) (items []string) {
	for _, m := range members {
		items = append(items, peerLine(r, m))
	}
	return items
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

// peers returns the other members that have not ended. Those that have ended since a time in Unix milliseconds are included.
func peers(r *roster.Roster, viewer *roster.Member, since int64) []*roster.Member {
	return slices.DeleteFunc(slices.Clone(r.GetMembers()), func(m *roster.Member) bool {
		return m.Id == viewer.Id || view.Ended(m.Status) && m.EndedMs < since
	})
}

// never is later than any time of an agent's end.
const never = int64(1) << 62

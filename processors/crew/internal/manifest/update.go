package manifest

import (
	"encoding/hex"
	"fmt"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// News is what a CREW_UPDATE says that the roster does not know.
type News struct {
	// Activities are the crew's ledger in the order of time.
	Activities []Activity
	// Health is that of the work of an agent's crew. It may be nil.
	Health func(viewer *roster.Member) Health
}

// Health counts what a CREW_UPDATE's first lines say about the work.
type Health struct {
	// Tasks of the graph of tasks, 0 if there is none; Done includes skipped ones, and Stuck are blocked and failed ones.
	Tasks, Done, Stuck int
	// Decisions are those that wait for a person.
	Decisions int
}

// Update returns the CREW_UPDATE of an agent at a time in Unix milliseconds.
func Update(r *roster.Roster, viewer *roster.Member, news News, nowMS int64) string {
	l := &lines{}
	l.WriteString(state(r, viewer, news, nowMS))
	critical(l, r, viewer, news.Activities, nowMS)
	denials(l, viewer, news.Activities)
	recent(l, news.Activities)
	return l.block("CREW_UPDATE", updateBytes)
}

// Digest identifies what an agent's CREW_UPDATE says, without times and activities.
func Digest(r *roster.Roster, viewer *roster.Member, news News, nowMS int64) string {
	d := digests.Of("crew-update", state(r, viewer, news, nowMS))
	return hex.EncodeToString(d[:])
}

// state is the part of a CREW_UPDATE that the digest is of.
func state(r *roster.Roster, viewer *roster.Member, news News, nowMS int64) string {
	l := &lines{}
	others := peers(r, viewer, nowMS-endedShown)
	var h Health
	if news.Health != nil {
		h = news.Health(viewer)
	}
	health(l, viewer, others, h)
	l.section("CURRENT CREW STATUS")
	l.list(peerLines(r, others), "No other agents.")
	fileLocks(l, r)
	return l.String()
}

// health sums the work up. A lead's agents are its children, those of others are all.
func health(l *lines, viewer *roster.Member, others []*roster.Member, h Health) {
	agents, active, idle, ended := 0, 0, 0, 0
	for _, m := range others {
		if viewer.Lead && m.ParentId != viewer.Id {
			continue
		}
		agents++
		switch {
		case m.Status == view.Idle:
			idle++
		case view.Ended(m.Status):
			ended++
		default:
			active++
		}
	}
	icon := "🟢"
	switch {
	case agents == 0:
		icon = "⚪"
	case h.Stuck > 0:
		icon = "🔴"
	case h.Decisions > 0 || idle > max(1, agents/2):
		icon = "⚠️"
	}
	l.section("PROJECT HEALTH")
	text := fmt.Sprintf("%s Agents: %d active, %d idle, %d done", icon, active, idle, ended)
	if h.Tasks > 0 {
		text += fmt.Sprintf(". Tasks: %d%% done", (100*h.Done+h.Tasks/2)/h.Tasks)
	}
	l.line("%s", text)
	if h.Decisions > 0 {
		l.line("Decisions that wait for the user: %d", h.Decisions)
	}
	if h.Stuck > 0 {
		l.line("Blocked or failed tasks: %d", h.Stuck)
	}
}

func fileLocks(l *lines, r *roster.Roster) {
	l.section("FILE LOCKS")
	var items []string
	for _, lock := range r.GetLocks() {
		holder := view.ShortID(lock.AgentId)
		if m := r.Find(lock.AgentId); m != nil {
			holder += " (" + m.RoleName + ")"
		}
		items = append(items, fmt.Sprintf("%s → %s", oneLine(lock.Path, textRunes), holder))
	}
	l.list(items, "None")
}

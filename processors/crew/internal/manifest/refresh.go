package manifest

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/crewbody"
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
	if f.FirstMs == 0 {
		f.FirstMs = s.NowMS()
	}
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

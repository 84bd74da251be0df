package repository

import (
	"slices"

	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// Locks returns the locks of a repository that count at a time, oldest first. key is the repository's name, and s is its row
// or nil.
func Locks(key string, s *State, nowMS int64) (locks []view.FileLock) {
	for _, l := range s.GetLocks() {
		if l.Commit == "" && l.ExpiresMs <= nowMS {
			continue
		}
		expires := l.ExpiresMs
		if l.ReleasedMs != 0 {
			expires = l.ReleasedMs
		}
		a := s.agent(l.AgentId)
		locks = append(locks, view.FileLock{
			FilePath: l.Path, AgentID: l.AgentId, AgentRole: a.GetRoleId(), ProjectID: a.GetProjectId(), Repository: key,
			Reason: l.Reason, Token: l.Token, AcquiredAt: view.Time(l.AcquiredMs), ExpiresAt: view.Time(expires),
		})
	}
	return locks
}

// HasOpenActions reports whether a row waits for receipts of a host, which then writes crewbody.HostStarted when it starts. s is a
// row or nil.
func HasOpenActions(s *State, host string) bool {
	return slices.ContainsFunc(s.GetCommits(), func(c *Commit) bool { return c.Host == host }) ||
		slices.ContainsFunc(s.GetReleases(), func(r *Release) bool { return r.ActionId != "" && r.Host == host })
}

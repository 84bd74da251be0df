package team

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
)

// lockChanged takes over what happened to a lock, for what agents are told about the crew.
func (w *work) lockChanged(in crewbody.LockChanged) {
	m := w.Roster.Find(in.AgentID)
	if m == nil {
		m = &roster.Member{Id: kept(in.AgentID, maxID), RoleId: kept(in.AgentRole, maxName), RoleName: kept(in.AgentRole, maxName)}
	}
	path := kept(in.FilePath, maxPath)
	switch in.Action {
	case crewbody.LockAcquired:
		w.unlocked(in)
		w.Roster.Locks = append(w.Roster.Locks, &roster.Lock{
			Path: path, AgentId: m.Id, Reason: kept(in.Reason, maxSummary), ExpiresMs: in.ExpiresMS,
			Repository: kept(in.Repository, maxName),
		})
		for size(w.Roster.Locks) > maxLockBytes {
			w.Roster.Locks = w.Roster.Locks[1:]
		}
		w.log(m, "lock_acquired", "Locked "+path, details{"filePath": path})
	case crewbody.LockReleased, crewbody.LockExpired:
		w.unlocked(in)
		w.log(m, "lock_released", "Lock "+in.Action+": "+path, details{"filePath": path})
	case crewbody.LockDenied:
		w.log(m, "lock_denied", "Lock denied: "+path, details{"filePath": path, "holder": kept(in.HolderID, maxID)})
		return
	default:
		return
	}
	w.Refresh.Trigger(w.step, "")
}

// unlocked removes the lock of a path, which the row may have cut.
func (w *work) unlocked(in crewbody.LockChanged) {
	path, repository := kept(in.FilePath, maxPath), kept(in.Repository, maxName)
	w.Roster.Locks = slices.DeleteFunc(w.Roster.Locks, func(l *roster.Lock) bool {
		return l.Path == path && l.Repository == repository
	})
}

// committed notes a commit.
func (w *work) committed(in crewbody.Committed) {
	m := w.Roster.Find(in.AgentID)
	if m == nil {
		return
	}
	message, _, _ := strings.Cut(in.Message, "\n")
	w.log(m, "file_edit", fmt.Sprintf("Commit: %s (%d files)", truncate.Characters(message, 120), len(in.Files)), details{
		"type": "commit", "commit": in.Commit, "files": in.Files, "message": shown(in.Message),
	})
}

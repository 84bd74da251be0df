package repository

import (
	"slices"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// namesLimit is how many paths a text names.
const namesLimit = 15

func acquiredText(l *Lock) string {
	text := "Locked " + quoted(l.Path) + " until " + view.Time(l.ExpiresMs) + ". While you work the lock is extended. " +
		"Release it with UNLOCK_FILE when you are done with it."
	if name := strings.TrimSuffix(l.Path, everything); strings.ContainsAny(name, "*?[") {
		text += " The path is taken literally: only /* at its end is a pattern."
	}
	return text
}

func deniedText(path string, holder *Lock, by *Agent) string {
	text := "LOCK_FILE denied for " + quoted(path) + ": " + called(by)
	if by == nil {
		text = "LOCK_FILE denied for " + quoted(path) + ": agent (" + view.ShortID(holder.AgentId) + ")"
	}
	if holder.ReleasedMs != 0 {
		return text + " commits " + quoted(holder.Path) + ". A person has released it, and it is free after the commit, at " +
			view.Time(holder.ReleasedMs) + " at the latest. Try again later."
	}
	text += " has locked " + quoted(holder.Path) + " until " + view.Time(holder.ExpiresMs)
	if holder.Reason != "" {
		text += ", for the reason: " + truncate.Text(holder.Reason, 200)
	}
	return text + ". Work on something else, or ask that agent."
}

// committedText answers a COMMIT that was made. kept says that the agent has locks of the commit left.
func committedText(c *Commit, r crewbody.Receipt, kept bool) string {
	count := strconv.Itoa(len(r.Files)) + " files"
	if len(r.Files) == 1 {
		count = "1 file"
	}
	locks := "Your locks are kept."
	if !kept {
		locks = "Your locks are released."
	}
	lines := []string{"COMMIT: " + truncate.Text(r.Summary, 300) + " (" + count + "). " + locks}
	if len(r.Missing) > 0 {
		lines = append(lines, "Warning: not in the commit, because they have no changes or do not exist: "+names(r.Missing))
	}
	lines = append(lines, leftOutText(c.LeftOut)...)
	if len(r.Others) > 0 {
		lines = append(lines, "Changed, but not part of the commit: "+names(r.Others))
	}
	if r.Error != "" {
		lines = append(lines, "Warning: "+firstLine(r.Error))
	}
	return strings.Join(lines, "\n")
}

// failedText answers a COMMIT that was not made.
func failedText(c *Commit, r crewbody.Receipt) string {
	lines := append([]string{"COMMIT failed: " + firstLine(r.Error)}, leftOutText(c.LeftOut)...)
	return strings.Join(lines, "\n")
}

// leftOutText warns of files that an agent named without holding them.
func leftOutText(files []string) []string {
	if len(files) == 0 {
		return nil
	}
	return []string{"Warning: left out, because you have not locked them: " + names(files)}
}

// names are the first paths of a list.
func names(paths []string) string {
	var b strings.Builder
	for i, p := range paths {
		if i == namesLimit {
			return b.String() + " and " + strconv.Itoa(len(paths)-i) + " more"
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoted(p))
	}
	return b.String()
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		line = "no reason was given"
	}
	return truncate.Text(line, 500)
}

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

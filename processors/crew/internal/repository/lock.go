package repository

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

const (
	minTTL = time.Second
	maxTTL = 24 * time.Hour
	// locksLimit is how many locks an agent may have.
	locksLimit = 500
	// reasonLimit is how many bytes of a reason are kept.
	reasonLimit = 500
	// rowLimit is the size of the row in bytes from which on it takes nothing more. What is not counted is far below the rest of
	// the largest record.
	rowLimit = 400 << 10
)

// lock returns an agent's lock on a path. A lock that a person has released during its commit is none.
func (s *State) lock(agentID, path string) *Lock {
	return find(s.Locks, func(l *Lock) bool { return l.AgentId == agentID && l.Path == path && l.ReleasedMs == 0 })
}

// roomFor reports whether the row can take something of a size in bytes.
func (t *step) roomFor(size int) bool { return proto.Size(t.row)+size <= rowLimit }

func (t *step) lockAsked(in crewbody.LockAsked) {
	a := t.met(in.Member)
	if a == nil {
		return
	}
	ttl := time.Duration(min(max(in.TTLMS, 0), maxTTL.Milliseconds())) * time.Millisecond
	if ttl == 0 {
		ttl = t.config.LockTTL
	}
	t.acquire(a, in.FilePath, in.Reason, max(ttl, minTTL), "")
}

// acquire locks a path for an agent, extends its lock, or denies it. commandID is empty for a person's request.
func (t *step) acquire(a *Agent, raw, reason string, ttl time.Duration, commandID string) {
	reason = truncate.Text(reason, reasonLimit)
	name := Path // of a person, relative to the root
	if commandID != "" {
		name = a.path
	}
	path, err := name(raw)
	if err != nil {
		problem := strings.TrimPrefix(err.Error(), ErrPath.Error()+": ")
		t.denied(a, truncate.Text(raw, reasonLimit), reason, nil)
		t.answer(a.Id, commandID, "LOCK_FILE refused for "+quoted(truncate.Text(raw, reasonLimit))+": "+problem+".")
		return
	}
	expires := t.NowMS() + ttl.Milliseconds()
	if l := t.row.lock(a.Id, path); l != nil {
		l.ExpiresMs, l.Reason, l.Releases = max(l.ExpiresMs, expires), reason, false
		t.answer(a.Id, commandID, "Your lock on "+quoted(path)+" is extended until "+view.Time(l.ExpiresMs)+".")
		return
	}
	if holder := find(t.row.Locks, func(l *Lock) bool {
		return overlap(l.Path, path) && (l.AgentId != a.Id || l.ReleasedMs != 0)
	}); holder != nil {
		t.denied(a, path, reason, holder)
		t.answer(a.Id, commandID, deniedText(path, holder, t.row.agent(holder.AgentId)))
		return
	}
	if err := t.mayLock(a, path, reason); err != nil {
		t.denied(a, path, reason, nil)
		t.answer(a.Id, commandID, "LOCK_FILE refused for "+quoted(path)+": "+err.Error()+".")
		return
	}
	t.row.Token++
	l := &Lock{
		Path: path, AgentId: a.Id, Reason: reason, Token: t.row.Token, AcquiredMs: t.NowMS(), ExpiresMs: expires,
	}
	t.row.Locks = append(t.row.Locks, l)
	t.happened(a, "lock:acquired", map[string]any{
		"filePath": path, "agentId": a.Id, "agentRole": a.RoleId, "reason": reason, "token": l.Token, "expiresAt": view.Time(expires),
	})
	t.changed(a, crewbody.LockChanged{Action: crewbody.LockAcquired, FilePath: path, Reason: reason, ExpiresMS: expires})
	t.answer(a.Id, commandID, acquiredText(l))
}

// mayLock returns an error if there is no room for a lock.
func (t *step) mayLock(a *Agent, path, reason string) error {
	count := 0
	for _, l := range t.row.Locks {
		if l.AgentId == a.Id {
			count++
		}
	}
	switch {
	case count >= locksLimit:
		return fmt.Errorf("you have %d locks; release some, or lock directories as dir/*", count)
	case !t.roomFor(len(path) + len(reason) + 200):
		return errors.New("the repository has too many locks")
	}
	return nil
}

// expire removes the locks whose time is over.
func (t *step) expire() {
	t.remove(func(l *Lock) bool { return l.ReleasedMs != 0 && l.ReleasedMs <= t.NowMS() }, func(l *Lock) {
		if c := t.row.commit(l.Commit); c != nil {
			c.Released = append(c.Released, l.Path)
		}
		t.released(l, l.ReleasedBy)
	})
	t.remove(func(l *Lock) bool { return l.Commit == "" && l.ExpiresMs <= t.NowMS() }, func(l *Lock) {
		a := t.row.agent(l.AgentId)
		t.happened(a, "lock:expired", map[string]any{
			"filePath": l.Path, "agentId": l.AgentId, "agentRole": a.GetRoleId(), "token": l.Token,
		})
		t.changed(a, crewbody.LockChanged{Action: crewbody.LockExpired, FilePath: l.Path})
		t.note(l.AgentId, "Your lock on "+quoted(l.Path)+" has expired. Lock it again with LOCK_FILE before you edit or commit it.")
	})
}

// remove removes locks, and calls gone for each afterwards.
func (t *step) remove(which func(*Lock) bool, gone func(*Lock)) {
	var removed []*Lock
	t.row.Locks = slices.DeleteFunc(t.row.Locks, func(l *Lock) bool {
		if !which(l) {
			return false
		}
		removed = append(removed, l)
		return true
	})
	for _, l := range removed {
		gone(l)
	}
}

// released tells that a lock is released. by is the person who did it, or empty.
func (t *step) released(l *Lock, by string) {
	a := t.row.agent(l.AgentId)
	fields := map[string]any{"filePath": l.Path, "agentId": l.AgentId, "agentRole": a.GetRoleId(), "token": l.Token}
	if by != "" {
		fields["by"] = by
	}
	t.happened(a, "lock:released", fields)
	t.changed(a, crewbody.LockChanged{Action: crewbody.LockReleased, FilePath: l.Path})
}

// denied tells that an agent does not get a lock. holder is the lock in its way, or nil.
func (t *step) denied(a *Agent, path, reason string, holder *Lock) {
	fields := map[string]any{"filePath": path, "agentId": a.Id, "agentRole": a.RoleId, "reason": reason}
	if holder != nil {
		fields["holderId"], fields["holderRole"] = holder.AgentId, t.row.agent(holder.AgentId).GetRoleId()
		fields["holderPath"], fields["expiresAt"] = holder.Path, view.Time(holder.ExpiresMs)
	}
	t.happened(a, "lock:denied", fields)
	t.changed(a, crewbody.LockChanged{
		Action: crewbody.LockDenied, FilePath: path, HolderID: holder.GetAgentId(), Reason: reason,
	})
}

// happened writes an event of the agent's crew.
func (t *step) happened(a *Agent, kind string, fields map[string]any) {
	t.CrewID, t.ProjectID = a.GetCrewId(), a.GetProjectId()
	t.Event(kind, fields)
}

// changed tells the crew of an agent what happened to a lock of it.
func (t *step) changed(a *Agent, c crewbody.LockChanged) {
	if a.GetCrewId() == "" {
		return
	}
	c.Repository, c.AgentID, c.AgentRole = t.key, a.Id, a.RoleId
	t.Send(mailbox.Crew(a.CrewId), c)
}

// quoted is a path in a text, so that spaces and line breaks in it can be seen.
func quoted(path string) string { return strconv.Quote(path) }

// pathLimit is the longest path in characters.
const pathLimit = 500

// everything ends a path that stands for everything below a directory.
const everything = "/*"

// ErrPath is wrapped by the errors of Path.
var ErrPath = errors.New("the path cannot be locked")

var errAbsolute = fmt.Errorf("%w: it is absolute; name it relative to the repository's root", ErrPath)

// Path returns a path of a repository as locks and commits have it: relative to the repository's root, with slashes, without
// "." and doubled slashes, in Unicode's NFC. Case is kept: on a file system that ignores it, "A" and "a" are two locks of one
// file. A path that leaves the repository, is absolute, belongs to git itself or has a NUL is refused, and so are the empty path,
// the whole repository and paths of more than 500 characters. Backslashes are slashes.
func Path(raw string) (string, error) {
	p := strings.ReplaceAll(raw, `\`, "/")
	switch {
	case raw == "":
		return "", fmt.Errorf("%w: it is empty", ErrPath)
	case utf8.RuneCountInString(raw) > pathLimit:
		return "", fmt.Errorf("%w: it has more than %d characters", ErrPath, pathLimit)
	case strings.ContainsRune(raw, 0) || !utf8.ValidString(raw):
		return "", fmt.Errorf("%w: it is no text", ErrPath)
	case strings.HasPrefix(p, "/"):
		return "", errAbsolute
	}
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "..":
			return "", fmt.Errorf(`%w: it contains ".."`, ErrPath)
		case strings.EqualFold(part, ".git"):
			return "", fmt.Errorf("%w: it belongs to git", ErrPath)
		}
	}
	p = norm.NFC.String(path.Clean(p))
	switch {
	case len(p) > 1 && p[1] == ':' && isLetter(p[0]): // a drive, also after "./"
		return "", errAbsolute
	case p == "." || p == "*":
		return "", fmt.Errorf("%w: it is the whole repository; name a file, or a directory as dir/*", ErrPath)
	case utf8.RuneCountInString(p) > pathLimit: // NFC makes a few characters two
		return "", fmt.Errorf("%w: it has more than %d characters", ErrPath, pathLimit)
	}
	return p, nil
}

// path returns a path that an agent names. It is relative to the agent's directory, or absolute and in the agent's work tree.
func (a *Agent) path(raw string) (string, error) {
	p := strings.ReplaceAll(raw, `\`, "/")
	switch {
	case raw == "":
	case !path.IsAbs(p):
		if a.GetBelow() != "" {
			return Path(a.GetBelow() + "/" + p)
		}
	case a.GetRoot() != "":
		if rest, ok := strings.CutPrefix(p, strings.TrimSuffix(a.GetRoot(), "/")+"/"); ok {
			return Path(rest)
		}
		if rest, ok := strings.CutPrefix(p, a.GetCwd()+"/"); ok && a.GetCwd() != "" { // behind a symbolic link
			return Path(strings.TrimPrefix(a.GetBelow()+"/"+rest, "/"))
		}
	}
	return Path(raw)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// overlap reports whether there can be a file that both paths cover, or the paths are equal.
func overlap(a, b string) bool { return a == b || covers(a, b) || covers(b, a) }

// covers reports whether a path stands for everything below a directory that another path is below.
func covers(a, b string) bool {
	return strings.HasSuffix(a, everything) && strings.HasPrefix(b, a[:len(a)-1])
}

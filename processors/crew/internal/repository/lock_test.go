package repository

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

func TestL01_FreePathIsAcquiredAndASecondAgentIsDenied(t *testing.T) {
	h := newHarness(t)
	expires := h.now.Add(300 * time.Second).UnixMilli()
	e := h.lock(mira, "src/a.go")
	require.Equal(t, []string{"lock:acquired"}, e.kinds())
	require.Equal(t, fields{
		"filePath": "src/a.go", "agentId": mira.AgentID, "agentRole": "developer", "reason": "because", "token": 1.0,
		"expiresAt": view.Time(expires),
	}, e.events("lock:acquired")[0])
	require.Equal(t, []crewbody.LockChanged{{
		Action: crewbody.LockAcquired, Repository: "harbor", FilePath: "src/a.go", AgentID: mira.AgentID, AgentRole: "developer",
		Reason: "because", ExpiresMS: expires,
	}}, mails[crewbody.LockChanged](e, "crew/crew-1"))
	require.Contains(t, e.notes(mira), "UNLOCK_FILE")

	h.now = h.now.Add(time.Second)
	e = h.lock(noor, "src/a.go")
	require.Equal(t, []string{"lock:denied"}, e.kinds())
	require.Contains(t, e.notes(noor), `denied for "src/a.go": Developer (a1a1a1a1) has locked "src/a.go"`)
	require.Equal(t, []string{"src/a.go"}, h.held(mira))
	require.Empty(t, h.held(noor))
	require.Equal(t, []view.FileLock{{
		FilePath: "src/a.go", AgentID: mira.AgentID, AgentRole: "developer", ProjectID: "project-1", Repository: "harbor", Reason: "because",
		Token: 1, AcquiredAt: view.Time(1_790_000_000_000), ExpiresAt: view.Time(expires),
	}}, Locks("harbor", h.state(), h.now.UnixMilli()))
	require.Empty(t, Locks("harbor", h.state(), expires), "an expired lock does not count")
	require.Empty(t, Locks("harbor", nil, 0))
}

func TestL02_OwnLockIsExtendedWithoutAnEvent(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	before := Locks(h.key, h.state(), h.now.UnixMilli())[0]
	h.advance(200 * time.Second)
	e := h.lock(mira, "./a.go")
	require.Empty(t, e.kinds())
	require.Empty(t, mails[crewbody.LockChanged](e, "crew/crew-1"))
	require.Contains(t, e.notes(mira), "extended")
	after := Locks(h.key, h.state(), h.now.UnixMilli())[0]
	require.Equal(t, view.Time(h.now.Add(300*time.Second).UnixMilli()), after.ExpiresAt)
	after.ExpiresAt = before.ExpiresAt
	require.Equal(t, before, after)
}

func TestL03_OnlyTheOwnerReleases(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	for _, e := range []effects{h.unlock(noor, "a.go"), h.unlock(mira, "b.go"), h.unlock(mira, "../a.go"), h.unlock(mira, "*")} {
		require.Empty(t, e.kinds())
		require.Empty(t, e.actions())
		require.Contains(t, e.notes(mira)+e.notes(noor), "you have no lock on")
	}
	require.Empty(t, h.do("", crewbody.UnlockAsked{AgentID: noor.AgentID, FilePath: "a.go"}), "a person without force")
	require.Empty(t, h.do("", crewbody.UnlockAsked{AgentID: mira.AgentID, FilePath: "b.go"}))
	require.Equal(t, []string{"a.go"}, h.held(mira))
	e := h.do("", crewbody.UnlockAsked{AgentID: mira.AgentID, FilePath: "a.go", By: "ines"})
	require.Equal(t, "ines", e.events("lock:released")[0]["by"])
	require.Contains(t, e.notes(mira), "A person has released")
	require.Empty(t, h.held(mira))
}

func TestL04_DirectoriesConflictWithWhatIsBelowThemInBothDirections(t *testing.T) {
	free := func(first, second string) bool {
		h := newHarness(t)
		h.locked(mira, first)
		return len(h.lock(noor, second).events("lock:acquired")) == 1
	}
	for _, below := range []string{"src/auth/login.ts", "src/auth/a/b/c.ts", "src/auth/*", "src/auth/a/*", "src/*"} {
		require.False(t, free("src/auth/*", below), below)
		require.False(t, free(below, "src/auth/*"), below)
	}
	for _, beside := range []string{"src/authx.ts", "src/auth", "src/a/*", "src/authx/*", "src/auth*", "src/Auth/login.ts"} {
		require.True(t, free("src/auth/*", beside), beside)
		require.True(t, free(beside, "src/auth/*"), beside)
	}
	h := newHarness(t)
	h.locked(mira, "src/*", "src/auth/*", "src/auth/x.ts") // own locks do not conflict
	require.Contains(t, h.lock(mira, "a/**").notes(mira), "only /* at its end is a pattern")
}

func TestL05_PathsThatLeaveTheRepositoryAreRefused(t *testing.T) {
	for _, path := range []string{
		"../x", "a/../b", "a/..", "..", `..\x`, `a\..\b`, `a\..`, "a/./../../b", "a\x00b", "/etc/passwd", `\etc`, `C:\x`, "c:x", "./c:x", `.\c:`, "~/../x",
		".git/config", "sub/.GIT/hooks/x", ".", "./", "./*", "*", "//", strings.Repeat("a", 501),
	} {
		h := newHarness(t)
		e := h.do("", crewbody.LockAsked{Member: mira, FilePath: path, By: "ines"})
		require.Equal(t, []string{"lock:denied"}, e.kinds(), path)
		require.Contains(t, e.notes(mira), "LOCK_FILE refused", path)
		require.Empty(t, h.held(mira))
		_, err := Path(path)
		require.ErrorIs(t, err, ErrPath, path)
	}
	_, err := Path("")
	require.ErrorIs(t, err, ErrPath)
	h := newHarness(t)
	require.Contains(t, h.lock(mira, strings.Repeat("a", 501)).notes(mira), "LOCK_FILE error")
}

func TestTwoWaysToWriteAPathAreOneLock(t *testing.T) {
	for raw, want := range map[string]string{
		"a.go": "a.go", "./a.go": "a.go", "a//b/./c": "a/b/c", `a\b`: "a/b", "src/*/": "src/*", "src/": "src", "...": "...", "a/..b": "a/..b",
		"e\u0301.txt": "é.txt", "é.txt": "é.txt", "A.go": "A.go", ".gitignore": ".gitignore", "x.git/y": "x.git/y", " a ": " a ",
		"new\nline": "new\nline", "-A": "-A", "src/./*": "src/*", "**": "**",
	} {
		got, err := Path(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, got)
		again, err := Path(got)
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
}

func TestExpiredLockIsRemovedOnceAndItsOwnerIsTold(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go", "b.go")
	require.Empty(t, h.advance(299*time.Second).kinds())
	e := h.advance(time.Second)
	require.Equal(t, []string{"lock:expired", "lock:expired"}, e.kinds())
	require.Equal(t, fields{"filePath": "a.go", "agentId": mira.AgentID, "agentRole": "developer", "token": 1.0}, e.events("lock:expired")[0])
	require.Len(t, mails[crewbody.LockChanged](e, "crew/crew-1"), 2)
	require.Contains(t, e.notes(mira), `"a.go" has expired. Lock it again with LOCK_FILE`)
	require.Empty(t, h.advance(time.Hour).kinds())
	h.locked(noor, "a.go")
}

// An agent that has ended is told nothing, whatever happens to what it had. Whether an agent that has not ended can be told
// something is known to the agent's own row.
func TestEndedAgentIsNotToldOfItsLocks(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go", "b.go")
	h.commit(mira, "Mine")
	h.end(mira)
	h.do("", crewbody.UnlockAsked{FilePath: "a.go", Force: true})
	require.Empty(t, h.effects.notes(mira))
	e := h.advance(time.Hour)
	require.Equal(t, []string{"lock:released"}, e.kinds())
	require.Empty(t, e.notes(mira))
}

// The record of a deadline may come late, or twice. An input that comes before it does what is due.
func TestExpiredLockDoesNotCountBeforeItsDeadlineIsRead(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	h.now = h.now.Add(300 * time.Second)
	e := h.lock(noor, "a.go")
	require.Equal(t, []string{"lock:expired", "lock:acquired"}, e.kinds())
	require.Equal(t, 2.0, e.events("lock:acquired")[0]["token"])
	require.Empty(t, h.do("", crewbody.Due{AtMS: h.now.UnixMilli()}).kinds())
}

func TestActivityExtendsTheLocksOfItsAgent(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	h.locked(noor, "b.go")
	h.do("", crewbody.LockAsked{Member: mira, FilePath: "long.go", TTLMS: time.Hour.Milliseconds()})
	for range 10 {
		require.NotContains(t, h.advance(time.Minute).kinds(), "no such")
		require.Empty(t, h.do(mailbox.Agent(mira.AgentID), crewbody.AgentActive{Member: mira}))
	}
	require.Equal(t, []string{"a.go", "long.go"}, h.held(mira))
	require.Empty(t, h.held(noor))
	require.Equal(t, []string{"lock:expired"}, h.advance(300*time.Second).kinds())
	require.Equal(t, []string{"long.go"}, h.held(mira), "a longer time is not made shorter")
}

func TestL07_LocksOfAnAgentThatEndsAreReleased(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go", "b/*")
	h.locked(noor, "c.go")
	e := h.end(mira)
	require.Equal(t, []string{"lock:released", "lock:released"}, e.kinds())
	require.Len(t, mails[crewbody.LockChanged](e, "crew/crew-1"), 2)
	require.Empty(t, e.notes(mira))
	require.Empty(t, h.held(mira))
	require.Equal(t, []string{"c.go"}, h.held(noor))
	require.Empty(t, h.end(mira))
}

func TestL08_LocksOfTwoProjectsOnOnePathConflict(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	e := h.lock(otto, "a.go")
	require.Equal(t, []string{"lock:denied"}, e.kinds())
	for _, x := range e {
		if event, ok := x.(topics.CrewEvent); ok {
			require.Equal(t, "project-2", event.ProjectID)
			require.Equal(t, "crew-2", event.CrewID)
		}
	}
	require.Empty(t, mails[crewbody.LockChanged](e, "crew/crew-1"), "only the crew of the one that asks is told")
}

func TestL10_DenialNamesTheHolder(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "src/*")
	e := h.lock(otto, "src/a.go")
	require.Equal(t, []crewbody.LockChanged{{
		Action: crewbody.LockDenied, Repository: "harbor", FilePath: "src/a.go", AgentID: otto.AgentID, AgentRole: "architect",
		HolderID: mira.AgentID, Reason: "because",
	}}, mails[crewbody.LockChanged](e, "crew/crew-2"))
	require.Equal(t, fields{
		"filePath": "src/a.go", "agentId": otto.AgentID, "agentRole": "architect", "reason": "because", "holderId": mira.AgentID,
		"holderRole": "developer", "holderPath": "src/*", "expiresAt": view.Time(h.now.Add(300 * time.Second).UnixMilli()),
	}, e.events("lock:denied")[0])
}

func TestLocksAreLimited(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "7")
	s := h.state()
	for i := range locksLimit - 1 {
		l := proto.CloneOf(s.Locks[0])
		l.Path = fmt.Sprint("x", i)
		s.Locks = append(s.Locks, l)
	}
	h.set(s)
	require.Contains(t, h.lock(mira, "more").notes(mira), "you have 500 locks")
	require.Contains(t, h.lock(mira, "7").notes(mira), "extended")
	h.locked(noor, "more")

	long := strings.Repeat("ü", 490)
	s = h.state()
	for i := 0; proto.Size(s) < rowLimit-1000; i++ {
		s.Locks = append(s.Locks, &Lock{Path: fmt.Sprint(i, long), AgentId: otto.AgentID, ExpiresMs: s.Locks[0].ExpiresMs})
	}
	h.set(s)
	require.Equal(t, []string{"lock:denied"}, h.lock(noor, "z"+long).kinds())
	require.Contains(t, h.effects.notes(noor), "the repository has too many locks")
	require.Contains(t, h.commit(noor, strings.Repeat("m", 2000)).notes(noor), "too much is going on")
	require.Contains(t, h.unlock(noor, "more").actions()[0].Kind, "dirty")
}

func TestAgentsThatEndedAreForgottenLater(t *testing.T) {
	h := newHarness(t)
	for i := range endedLimit + 50 {
		h.now = h.now.Add(time.Millisecond)
		h.end(member(fmt.Sprint("agent-", i), "", "", "", ""))
	}
	s := h.state()
	require.Len(t, s.Agents, endedLimit)
	require.Equal(t, "agent-50", s.Agents[0].Id)
	require.Len(t, s.Mailbox.Heard, endedLimit)
	h.advance(25 * time.Hour)
	h.locked(mira, "a.go")
	s = h.state()
	require.Len(t, s.Agents, 1)
	require.Empty(t, s.Mailbox.Heard)
}

func TestInputsWithoutSenseAreDeadLettered(t *testing.T) {
	h := newHarness(t)
	h.locked(mira, "a.go")
	before := h.state()
	for _, in := range []topics.CrewInput{
		{InputID: "1", Kind: "nonsense"},
		{InputID: "2", Kind: "command", Body: topics.Raw(`[]`)},
		{InputID: "3", Kind: "command"},
		{InputID: "4", Kind: "lock_asked", Body: topics.Raw(`{"file_path":"x"}`)},
		{InputID: "5", Kind: "agent_active"},
		{InputID: "6", Kind: "agent_ended"},
		h.input("", crewbody.Command{Member: mira, Name: "QUERY_CREW"}),
	} {
		require.Len(t, h.apply(in).letters(), 1, in.InputID)
	}
	require.Equal(t, before.Locks[0].ExpiresMs, h.state().Locks[0].ExpiresMs)
	require.Contains(t, h.command(mira, "LOCK_FILE", map[string]int{"filePath": 7}).notes(mira), "LOCK_FILE error")
}

func TestConfigIsChecked(t *testing.T) {
	for _, d := range []time.Duration{-1, time.Second - 1, 25 * time.Hour} {
		_, err := Group("quay", Config{LockTTL: d})
		require.ErrorIs(t, err, mailbox.ErrConfig)
	}
	_, err := Group("Not A Name", Config{})
	require.Error(t, err)
	h := newHarness(t, Config{LockTTL: time.Minute})
	h.locked(mira, "a.go")
	require.Equal(t, []string{"lock:expired"}, h.advance(time.Minute).kinds())
}

func TestRowsOfNewerBuildsAreRefused(t *testing.T) {
	raw, err := Table.Marshal(&State{Version: Table.Version + 1})
	require.NoError(t, err)
	_, err = Table.Unmarshal(raw)
	require.ErrorIs(t, err, rows.ErrVersion)
	row, err := Table.Of(Table.Codec().Unmarshal([]byte{8, byte(Table.Version)}))
	require.NoError(t, err)
	require.NotNil(t, row.Mailbox)
	_, err = Table.Of(7)
	require.Error(t, err)
}

// One file has one lock, whatever the directory of the agent that names it.
func TestPathsOfAgentsAreThoseOfTheirDirectories(t *testing.T) {
	h := newHarness(t)
	below := noor
	below.Cwd, below.Root, below.Below = "/link/sub", "/repo", "sub"
	root := mira
	root.Cwd, root.Root = "/repo", "/repo"
	h.locked(root, "sub/a.go")
	for _, path := range []string{"a.go", "./a.go", "/repo/sub/a.go", "/link/sub/a.go", "*"} {
		require.Equal(t, []string{"lock:denied"}, h.lock(below, path).kinds(), path)
	}
	h.locked(below, "b.go")
	require.Equal(t, []string{"sub/b.go"}, h.held(below))
	require.Equal(t, []string{"lock:denied"}, h.lock(root, "/repo/sub/b.go").kinds())
	for _, path := range []string{"/etc/passwd", "/repo/../x", "../x", "/repository/x", "/repo/.git/config"} {
		require.Contains(t, h.lock(below, path).notes(below), "refused", path)
	}
}

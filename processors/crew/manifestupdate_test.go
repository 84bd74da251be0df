package crew_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// ledger returns entries a second apart, oldest first.
func ledger(n int, kind string) (entries []manifest.Activity) {
	for i := range n {
		entries = append(entries, manifest.Activity{
			AtMS: noon.UnixMilli() + int64(i)*1000, AgentID: dev, RoleID: "developer", Type: kind, Summary: fmt.Sprintf("entry %d", i),
		})
	}
	return entries
}

func TestC08_TheUpdateHasThe20NewestActivitiesNewestFirst(t *testing.T) {
	r := newRoster()
	text := manifest.Update(r, r.Find(lead), manifest.News{Activities: ledger(30, "file_edit")}, noon.UnixMilli())
	require.True(t, strings.HasPrefix(text, "⟦⟦ CREW_UPDATE\n") && strings.HasSuffix(text, "\nCREW_UPDATE ⟧⟧"), text)
	lines := section(t, text, "RECENT ACTIVITY")
	require.Len(t, lines, 20)
	require.Equal(t, fmt.Sprintf("[%s] Agent de000001 (developer): file_edit — entry 29", view.Time(noon.UnixMilli()+29_000)), lines[0])
	require.Contains(t, lines[19], "entry 10")
	text = manifest.Update(r, r.Find(lead), manifest.News{}, noon.UnixMilli())
	require.Equal(t, []string{"No recent activity."}, section(t, text, "RECENT ACTIVITY"))
}

func TestC09_OnlyTheOwnCrewIsInTheTexts(t *testing.T) {
	// A crew has a roster, locks and a ledger of its own, and the texts are made of nothing else. So what changes in another
	// crew changes none of them.
	own, other := newRoster(), newRoster()
	other.Members = append(other.Members, &roster.Member{Id: "f0000000-0000-4000-8000-000000000000", RoleName: "Stranger", Status: view.Running})
	other.Locks = append(other.Locks, &roster.Lock{Path: "secret.go", AgentId: "f0000000-0000-4000-8000-000000000000"})
	news := manifest.News{Activities: ledger(1, "file_edit")}
	texts := func(r *roster.Roster) []string {
		return []string{
			manifest.Initial(r, r.Find(dev), "", 0), manifest.Update(r, r.Find(dev), news, 0), manifest.Roster(r, r.Find(dev)),
		}
	}
	for i, text := range texts(own) {
		require.NotContains(t, text, "Stranger")
		require.NotContains(t, text, "secret.go")
		require.Contains(t, texts(other)[i], "Stranger", "in the text of its own crew")
	}
}

func TestC10_TheDigestChangesWithWhatAnAgentMustKnow(t *testing.T) {
	now := noon.UnixMilli()
	digest := func(change func(*roster.Roster, *manifest.News)) string {
		r, news := newRoster(), manifest.News{Activities: ledger(3, "file_edit")}
		r.Locks = []*roster.Lock{{Path: "a.go", AgentId: tester, ExpiresMs: now}}
		if change != nil {
			change(r, &news)
		}
		return manifest.Digest(r, r.Find(dev), news, now)
	}
	same := digest(nil)
	require.Equal(t, same, digest(nil), "unchanged: not sent again")
	for name, change := range map[string]func(*roster.Roster, *manifest.News){
		"status": func(r *roster.Roster, _ *manifest.News) { r.Find(lead).Status = view.Idle },
		"task":   func(r *roster.Roster, _ *manifest.News) { r.Find(lead).Task = "Something else" },
		"peer": func(r *roster.Roster, _ *manifest.News) {
			r.Members = append(r.Members, &roster.Member{Id: "n", Status: view.Running})
		},
		"lock":    func(r *roster.Roster, _ *manifest.News) { r.Locks = nil },
		"holder":  func(r *roster.Roster, _ *manifest.News) { r.Locks[0].AgentId = lead },
		"header":  func(_ *roster.Roster, n *manifest.News) { n.Health = health(manifest.Health{Decisions: 1}) },
		"project": func(_ *roster.Roster, n *manifest.News) { n.Health = health(manifest.Health{Tasks: 4, Done: 1}) },
	} {
		require.NotEqual(t, same, digest(change), name)
	}
	for name, change := range map[string]func(*roster.Roster, *manifest.News){
		"activity": func(_ *roster.Roster, n *manifest.News) { n.Activities = append(n.Activities, ledger(1, "error")...) },
		"renewal":  func(r *roster.Roster, _ *manifest.News) { r.Locks[0].ExpiresMs += 60_000 },
		"context":  func(r *roster.Roster, _ *manifest.News) { r.Find(lead).ContextUsed, r.Find(lead).Pending = 1000, 3 },
	} {
		require.Equal(t, same, digest(change), "%s alone is not sent", name)
	}
	r := newRoster()
	require.Equal(t, manifest.Digest(r, r.Find(dev), manifest.News{}, now), manifest.Digest(r, r.Find(dev), manifest.News{}, now+60_000),
		"time alone is not sent")
	require.NotEqual(t, manifest.Update(r, r.Find(dev), manifest.News{}, now),
		manifest.Update(r, r.Find(dev), manifest.News{Activities: ledger(1, "error")}, now), "the text has the activities all the same")

	// The agent's row compares the digests, because only it knows what it delivered; so a refresh is written each time.
	c := newClock(t)
	c.trigger(0, "")
	before := c.step(2*second, nil)
	c.trigger(3*second, "")
	after := c.step(5*second, nil)
	require.Equal(t, before, after)
	require.Len(t, after.bodies, 4)
	require.NotEmpty(t, after.bodies[0].Digest)
}

func health(h manifest.Health) func(*roster.Member) manifest.Health {
	return func(*roster.Member) manifest.Health { return h }
}

func TestC11_LocksAreListedWithTheirHolders(t *testing.T) {
	r := newRoster()
	text := manifest.Update(r, r.Find(lead), manifest.News{}, 0)
	require.Equal(t, []string{"None"}, section(t, text, "FILE LOCKS"))
	require.Contains(t, text, "Files locked: none")
	r.Locks = []*roster.Lock{{Path: "src/a.go", AgentId: dev}, {Path: "src/b/*", AgentId: "ffffffff-0000"}}
	text = manifest.Update(r, r.Find(lead), manifest.News{}, 0)
	require.Equal(t, []string{"src/a.go → de000001 (Developer)", "src/b/* → ffffffff"}, section(t, text, "FILE LOCKS"))
	require.Contains(t, text, "Files locked: src/a.go")
	for range 200 {
		r.Locks = append(r.Locks, &roster.Lock{Path: "x", AgentId: dev})
	}
	lines := section(t, manifest.Update(r, r.Find(lead), manifest.News{}, 0), "FILE LOCKS")
	require.Len(t, lines, 101)
	require.Equal(t, "and 102 more", lines[100])
}

func TestTheHealthIsThatOfTheReadersAgents(t *testing.T) {
	now := noon.UnixMilli()
	line := func(r *roster.Roster, viewer string, h manifest.Health) []string {
		return section(t, manifest.Update(r, r.Find(viewer), manifest.News{Health: health(h)}, now), "PROJECT HEALTH")
	}
	r := newRoster()
	require.Equal(t, []string{"🟢 Agents: 2 active, 1 idle, 0 done"}, line(r, lead, manifest.Health{}), "its children")
	require.Equal(t, []string{"🟢 Agents: 3 active, 1 idle, 0 done"}, line(r, dev, manifest.Health{}), "all others")
	require.Equal(t, []string{"🟢 Agents: 2 active, 1 idle, 0 done. Tasks: 67% done"}, line(r, lead, manifest.Health{Tasks: 3, Done: 2}))
	require.Equal(t, []string{"⚠️ Agents: 2 active, 1 idle, 0 done", "Decisions that wait for the user: 2"},
		line(r, lead, manifest.Health{Decisions: 2}))
	require.Equal(t, []string{"🔴 Agents: 2 active, 1 idle, 0 done. Tasks: 0% done", "Blocked or failed tasks: 1"},
		line(r, lead, manifest.Health{Tasks: 3, Stuck: 1}))
	r.Find(dev).Status = view.Idle
	require.Contains(t, line(r, lead, manifest.Health{})[0], "⚠️", "more than half are idle")
	r.Find(dev).Status, r.Find(dev).EndedMs = view.Completed, now-10_000
	require.Equal(t, []string{"🟢 Agents: 1 active, 1 idle, 1 done"}, line(r, lead, manifest.Health{}))
	r.Find(dev).EndedMs = now - 31_000
	require.Equal(t, []string{"🟢 Agents: 1 active, 1 idle, 0 done"}, line(r, lead, manifest.Health{}), "it is shown for 30 seconds")
	require.Contains(t, line(&roster.Roster{Members: r.Members[:1]}, lead, manifest.Health{})[0], "⚪")
}

func TestLeadsSeeWhatWentWrongAndSecretariesWhoWaits(t *testing.T) {
	r, now := newRoster(), noon.UnixMilli()
	entries := []manifest.Activity{
		{AtMS: now - 16*60_000, AgentID: dev, Type: "error", Summary: "old"},
		{AtMS: now, AgentID: dev, RoleID: "developer", Type: "error", Summary: "broken"},
		{AtMS: now, AgentID: below, Type: "error", Summary: "of another lead"},
		{AtMS: now, AgentID: tester, RoleID: "tester", Type: "lock_denied", Summary: "a.go"},
	}
	news := manifest.News{Activities: entries}
	lines := section(t, manifest.Update(r, r.Find(lead), news, now), "CRITICAL EVENTS")
	require.Len(t, lines, 2)
	require.Contains(t, lines[1], "broken")
	require.NotContains(t, manifest.Update(r, r.Find(dev), news, now), "CRITICAL EVENTS")
	require.NotContains(t, manifest.Update(r, r.Find(dev), news, now), "RECENT LOCK DENIALS")
	r.Find(dev).RoleId = "secretary"
	require.Len(t, section(t, manifest.Update(r, r.Find(dev), news, now), "RECENT LOCK DENIALS"), 1)
}

func TestTheMostImportantActivitiesAreSelected(t *testing.T) {
	at := func(ms int64, kind, agent, detail string) manifest.Activity {
		return manifest.Activity{AtMS: ms, Type: kind, AgentID: agent, Detail: detail}
	}
	entries := []manifest.Activity{
		at(1, "error", dev, ""), at(2, "file_edit", dev, ""), at(3, "status_change", dev, ""), at(4, "status_change", dev, ""),
		at(5, "status_change", tester, ""), at(6, "group_message", dev, ""), at(7, "message_sent", dev, "direct_message"),
		at(8, "message_sent", dev, ""), at(9, "lock_acquired", dev, ""), at(10, "lock_acquired", dev, ""), at(11, "file_read", dev, ""),
		at(12, "file_read", dev, ""),
	}
	times := func(limit int) (ms []int64) {
		for _, a := range manifest.Select(entries, limit) {
			ms = append(ms, a.AtMS)
		}
		return ms
	}
	require.Equal(t, []int64{12, 11, 10, 8, 5, 4, 2, 1}, times(20), "no private messages, and one of each status and lock of an agent")
	require.Equal(t, []int64{12, 8, 2, 1}, times(4), "the important ones first, then the newest")
	require.Equal(t, []int64{1}, times(1))
	require.Empty(t, times(0))
	require.Equal(t, at(1, "error", dev, ""), entries[0], "the ledger is not changed")
}

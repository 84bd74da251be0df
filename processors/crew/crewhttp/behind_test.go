package crewhttp

import (
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// waits reports whether a request waits for rows.
func (r *rig) waits() bool {
	r.index.mu.Lock()
	defer r.index.mu.Unlock()
	return r.index.announced.Awaited()
}

// whileWaiting does a request, and does something once the request waits for rows.
func (r *rig) whileWaiting(method, path, body string, do func()) got {
	r.t.Helper()
	answered := make(chan got, 1)
	go func() { answered <- r.do(method, path, body) }()
	require.Eventually(r.t, r.waits, waitLimit, time.Millisecond, "%s %s does not wait", method, path)
	do()
	return <-answered
}

// At least once, events are on their topic before the rows of their step. A client that answers an event at once, or that uses what
// the answer to its last request names, must not be told that it does not exist.
func TestRequestsWaitForTheRowsThatClientsKnowOf(t *testing.T) {
	spawned := func(r *rig) { r.event("agent:spawned", "agent/a", "c", "p", `{"agentId":"a"}`) }
	row := func(r *rig) { r.agent("a", "c", "p") }
	for name, c := range map[string]struct {
		before             func(*rig)
		method, path, body string
		row                func(*rig)
		status             int
	}{
		"agent": {spawned, "POST", "/api/agents/a/message", `{"text":"go"}`, row, http.StatusAccepted},
		"get":   {spawned, "GET", "/api/agents/a", "", row, http.StatusOK},
		"lock":  {spawned, "POST", "/api/coordination/locks", `{"agentId":"a","filePath":"x"}`, row, http.StatusAccepted},
		"crew": {func(r *rig) {
			require.Equal(t, http.StatusAccepted, r.do("POST", "/api/crews", `{"crewId":"c","host":"h","cwd":"/w"}`).status)
		}, "POST", "/api/crews/c/message", `{"text":"go"}`, func(r *rig) {
			r.index.setCrew("c", crewFake{}.row())
		}, http.StatusAccepted},
		"decision": {
			func(r *rig) { r.event("lead:decision", "crew/c", "c", "p", `{}`) }, "POST", "/api/decisions/d/confirm", `{}`,
			func(r *rig) {
				r.index.setCrew("c", crewFake{decisions: []view.Decision{{ID: "d", Status: team.Recorded}}, seq: 1}.row())
			}, http.StatusAccepted,
		},
		"decisions": {
			func(r *rig) { r.event("lead:decision", "crew/c", "c", "p", `{}`) }, "POST", "/api/decisions/batch",
			`{"ids":["d"],"action":"confirm"}`,
			func(r *rig) {
				r.index.setCrew("c", crewFake{decisions: []view.Decision{{ID: "d", Status: team.Recorded}}, seq: 1}.row())
			}, http.StatusAccepted,
		},
		"group": {
			func(r *rig) { r.event("group:created", "crew/c", "c", "p", `{}`) }, "POST", "/api/groups/g/messages", `{"text":"go"}`,
			func(r *rig) {
				r.index.setCrew("c", crewFake{groups: []view.Group{{Name: "g"}}, seq: 1}.row())
			}, http.StatusAccepted,
		},
		"held": {
			func(r *rig) {
				row(r)
				r.event("lock:acquired", "repository/repo", "c", "p", `{"agentId":"a","filePath":"x"}`)
			}, "DELETE", "/api/coordination/locks/x", "",
			func(r *rig) {
				r.index.setRepository("repo", locked(1, "x", "a", ""))
			}, http.StatusAccepted,
		},
		"never": {
			func(r *rig) { r.event("group:created", "crew/c", "c", "p", `{}`) }, "POST", "/api/groups/g/messages", `{"text":"go"}`,
			func(r *rig) { r.index.setCrew("c", crewFake{seq: 1}.row()) }, http.StatusNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			c.before(r)
			a := r.whileWaiting(c.method, c.path, c.body, func() { c.row(r) })
			require.Equal(t, c.status, a.status, a.body)
		})
	}
}

func TestAgentOfAnAcceptedRequestIsKnownAtOnce(t *testing.T) {
	r := newRig(t)
	asked := r.do("POST", "/api/agents", `{"crewId":"c","roleId":"lead"}`)
	require.Equal(t, http.StatusAccepted, asked.status)
	id := asked.members(t)["id"].(string)
	a := r.whileWaiting("POST", "/api/agents/"+id+"/message", `{"text":"go"}`, func() { r.agent(id, "c", "") })
	require.Equal(t, http.StatusAccepted, a.status, a.body)
	require.Empty(t, r.announced())
}

// An unknown agent is one at once: also one whose row is removed some time after its last event, and one of a crew that the caller
// may not use.
func TestRequestsDoNotWaitForRowsThatDoNotCome(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Authenticate = callers })
	const all, mine = "Bearer mira.read-write-answer-control.all", "Bearer eve.read-write-answer-control.mine"
	unknown := func(id, token string) {
		t.Helper()
		require.Equal(t, http.StatusNotFound, r.do("POST", "/api/agents/"+id+"/message", `{"text":"go"}`, "Authorization", token).status)
		require.False(t, r.waits())
	}
	r.event("agent:spawned", "agent/secret", "theirs", "p", `{"agentId":"secret"}`)
	unknown("none", all)
	unknown("secret", mine)
	asked := r.do("POST", "/api/agents", `{"crewId":"theirs","roleId":"lead"}`, "Authorization", all)
	require.Equal(t, http.StatusAccepted, asked.status)
	unknown(asked.members(t)["id"].(string), mine)
	r.clock.Advance(rowWait)
	unknown("secret", all)
	unknown(asked.members(t)["id"].(string), all)
}

func TestRefusedAgentIsNotWaitedFor(t *testing.T) {
	r := newRig(t)
	asked := r.do("POST", "/api/agents", `{"crewId":"c","roleId":"lead"}`)
	require.Equal(t, http.StatusAccepted, asked.status)
	id := asked.members(t)["id"].(string)
	method, path, body := "POST", "/api/agents/"+id+"/message", `{"text":"go"}`
	a := r.whileWaiting(method, path, body, func() { r.event("agent:spawn_error", "crew/c", "c", "p", `{"agentId":"`+id+`","message":"no"}`) })
	require.Equal(t, http.StatusNotFound, a.status)
	require.Equal(t, http.StatusNotFound, r.do(method, path, body).status)
	require.Equal(t, http.StatusNotFound, r.do("POST", "/api/crews/c/message", `{"text":"go"}`).status, "the crew has no row")
	require.False(t, r.waits())
}

// The row may be set right after it was looked for.
func TestRowIsLookedForAfterItIsSet(t *testing.T) {
	r := newRig(t)
	r.event("agent:spawned", "agent/a", "c", "p", `{"agentId":"a"}`)
	looks := 0
	require.NoError(t, r.index.look(t.Context(), auth.Caller{}, only("agent/a"), func() bool {
		looks++
		if looks == 2 {
			r.agent("a", "c", "p", func(row *agentRow) { row.seq = 1 })
		}
		return looks == 3
	}))
	require.Equal(t, 3, looks)
}

func TestRequestsDoNotWaitForADoorThatEnds(t *testing.T) {
	r := newRig(t)
	r.event("agent:spawned", "agent/a", "c", "p", `{"agentId":"a"}`)
	a := r.whileWaiting("GET", "/api/agents/a", "", func() { close(r.index.follows.Ended) })
	require.Equal(t, http.StatusServiceUnavailable, a.status)
}

func TestRowsThatAreLeftOutAndReplayedEventsAreNotWaitedFor(t *testing.T) {
	r := newRig(t)
	ready := r.index.follows.Ready
	r.index.follows.Ready = make(chan struct{})
	r.event("agent:spawned", "agent/old", "c", "p", `{"agentId":"old"}`)
	r.index.follows.Ready = ready
	require.Equal(t, http.StatusNotFound, r.do("GET", "/api/agents/old", "").status)
	r.event("agent:spawned", "agent/a", "c", "p", `{"agentId":"a"}`)
	r.index.full = true
	require.Equal(t, http.StatusNotFound, r.do("GET", "/api/agents/a", "").status)
	require.False(t, r.waits())
}

// A repository may be that of several crews.
func TestLockIsWaitedForAlsoIfAnotherCrewHasTheNewestEvent(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Authenticate = callers })
	r.agent("a", "mine", "p")
	r.event("lock:acquired", "repository/repo", "mine", "p", `{"agentId":"a","filePath":"x"}`)
	r.event("lock:acquired", "repository/repo", "theirs", "p", `{"agentId":"b","filePath":"y"}`)
	answered := make(chan got, 1)
	go func() {
		answered <- r.do("DELETE", "/api/coordination/locks/x?repository=repo", "", "Authorization", "Bearer eve.read-write-answer-control.mine")
	}()
	require.Eventually(t, r.waits, waitLimit, time.Millisecond)
	r.index.setRepository("repo", locked(2, "x", "a", ""))
	a := <-answered
	require.Equal(t, http.StatusAccepted, a.status, a.body)
}

// announced returns the subjects of the rows that are expected.
func (r *rig) announced() map[string]string {
	return maps.Collect(r.index.announced.All(r.clock.Now()))
}

func TestExpectedRowsAreLimited(t *testing.T) {
	r := newRig(t)
	for n := range maxAnnounced + 10 {
		r.index.expect(fmt.Sprint("crew/", n), "c")
	}
	require.Len(t, r.announced(), maxAnnounced)
	r.clock.Advance(rowWait)
	r.index.expect("crew/c", "c")
	require.Len(t, r.announced(), 1)
}

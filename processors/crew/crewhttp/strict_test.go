package crewhttp

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
)

// Whoever may not use a crew must not learn, from the answer or from the time that it takes, that an agent exists. The tables are
// not connected here, so that an answer shows whether the door looked for newer rows.
func TestAgentOfAnotherCrewIsLookedForLikeAnUnknownOne(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Authenticate = callers })
	r.agent("secret", "theirs", "")
	r.index.catchUp, r.index.catchUpRows = r.index.tables.CatchUp, r.index.tables.CatchUp
	require.Error(t, r.index.catchUp(t.Context()))
	const mine = "Bearer eve.read-write-answer-control.mine"
	for _, path := range []string{"GET /api/agents/", "POST /api/agents/%/message", "POST /api/agents/%/permission", "DELETE /api/agents/"} {
		method, path, _ := strings.Cut(path, " ")
		body := map[string]string{"GET": "", "DELETE": ""}[method]
		if strings.HasSuffix(path, "message") {
			body = `{"text":"x"}`
		} else if method == "POST" {
			body = `{"approved":true,"requestId":"g"}`
		}
		at := func(id string) string {
			if strings.Contains(path, "%") {
				return strings.Replace(path, "%", id, 1)
			}
			return path + id
		}
		ask := func(id string) got { return r.do(method, at(id), body, "Authorization", mine) }
		unknown, hidden := ask("unknown"), ask("secret")
		require.Equal(t, unknown.status, hidden.status, path)
		require.Equal(t, unknown.body, hidden.body, path)
	}
}

// A page of an origin that is not named must not write, with or without authentication.
func TestPagesOfOtherOriginsCannotWrite(t *testing.T) {
	named := []string{"https://app.example"}
	for name, door := range map[string]auth.Door{
		"authenticated": {Authenticate: callers},
		"named":         {Authenticate: callers, Origins: named},
		"open, named":   {Origins: named},
		"open":          {},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Authenticate, c.Origins = door.Authenticate, door.Origins })
			r.agent("a", "c", "")
			for _, headers := range [][]string{
				{"Origin", "https://evil.example"},
				{"Origin", "null"},
				{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
				{"Sec-Fetch-Site", "cross-site"},
				{"Sec-Fetch-Site", "same-site"},
			} {
				headers = append(headers, "Cookie", "flightdeck-token=mira.read-write-answer-control.all")
				a := r.do("POST", "/api/agents/a/input", `{"text":"x"}`, headers...)
				require.Equal(t, http.StatusForbidden, a.status, "%v %s", headers, a.body)
				require.Equal(t, http.StatusForbidden, r.do("DELETE", "/api/agents/a", "", headers...).status)
				if headers[0] != "Origin" {
					continue // browsers name the origin of a socket
				}
				b, response, err := r.dial("/ws", headers...)
				require.Error(t, err)
				require.Nil(t, b)
				require.Equal(t, http.StatusForbidden, response.StatusCode)
			}
			require.Empty(t, r.sent.all())
			if strings.Contains(name, "named") {
				a := r.do("POST", "/api/agents/a/input", `{"text":"x"}`, "Origin", "https://app.example", "Sec-Fetch-Site", "cross-site",
					"Cookie", "flightdeck-token=mira.write.all")
				require.Equal(t, http.StatusAccepted, a.status, a.body)
			}
		})
	}
}

// The events of a repository are those of several crews: a client resumes with its own.
func TestClientResumesARepositoryThatCrewsShare(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Authenticate = callers })
	const lock = `{"filePath":"x","agentId":"a","agentRole":"developer"}`
	r.event("lock:acquired", "repository/r", "mine", "", lock)
	r.event("lock:released", "repository/r", "mine", "", lock)
	r.event("lock:acquired", "repository/r", "theirs", "", lock)
	r.event("lock:acquired", "repository/theirs", "theirs", "", lock)
	b, _ := r.open("Authorization", "Bearer mira.read.mine")
	b.send(`{"type":"resume","from":{"repository/r":1}}`)
	require.Equal(t, int64(2), b.next("lock:released").Seq)
	b.next("resumed")
	b.send(`{"type":"resume","from":{"repository/theirs":0,"repository/none":0}}`)
	require.Equal(t, "repository/none", b.next("resume_gap").Subject)
	require.Equal(t, "repository/theirs", b.next("resume_gap").Subject)
	b.next("resumed")
}

// An event is seen before the row that it comes from: a client that connects between them needs it.
func TestClientGetsTheEventsWhoseRowsAreNotSeenYet(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Authenticate = callers })
	r.index.setRepository("r", locked(1, "", "a", ""))
	r.seqs["repository/r"] = 1
	r.event("lock:acquired", "repository/r", "mine", "", `{"filePath":"x","agentId":"a","agentRole":"developer"}`)
	r.event("agent:spawned", "agent/new", "mine", "", `{"agent":{"id":"new"}}`)
	b, hello := r.open("Authorization", "Bearer mira.read.mine")
	require.Empty(t, hello.Agents)
	require.Equal(t, "agent/new", b.next("agent:spawned").Subject)
	require.Equal(t, "repository/r", b.next("lock:acquired").Subject)
	b.done()
	eve, hello := r.open("Authorization", "Bearer eve.read.theirs")
	eve.done()
	require.NotContains(t, hello.raw, "repository/r")
	require.NotContains(t, hello.raw, "new")

	r.clock.Advance(time.Hour) // the agent is gone
	late, _ := r.open("Authorization", "Bearer mira.read.mine")
	require.Equal(t, "repository/r", late.next("lock:acquired").Subject)
	late.done()
}

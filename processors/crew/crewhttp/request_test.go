package crewhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// bodyOf decodes the body of an input, which must be of the body's kind.
func bodyOf[T crewbody.Body](t *testing.T, in topics.CrewInput) T {
	t.Helper()
	body, err := crewbody.Decode[T](in.Body)
	require.NoError(t, err)
	require.Equal(t, body.Kind(), in.Kind)
	return body
}

func (g got) members(t *testing.T) (m map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(g.body), &m), g.body)
	return m
}

func TestSpawnIsWrittenOnceForAnIdempotencyKey(t *testing.T) {
	r := newRig(t)
	const body = `{"crewId":"c","roleId":"developer","task":"fix it","autopilot":true}`
	first := r.do("POST", "/api/agents", body, "Idempotency-Key", "1")
	require.Equal(t, 202, first.status, first.body)
	require.Equal(t, first.body, r.do("POST", "/api/agents", body, "Idempotency-Key", "1").body)
	require.NotEqual(t, first.body, r.do("POST", "/api/agents", body, "Idempotency-Key", "2").body)
	require.NotEqual(t, first.body, r.do("POST", "/api/agents", body).body)
	written := r.inputs(r.door.topics.CrewInputs)
	require.Len(t, written, 4)
	require.Equal(t, written[0], written[1], "the group knows the repeat by its ID")
	asked := bodyOf[crewbody.SpawnAsked](t, written[0])
	require.Equal(t, first.members(t)["id"], asked.AgentID)
	require.Len(t, asked.AgentID, 36)
	require.Equal(t, crewbody.SpawnAsked{
		AgentID: asked.AgentID, RoleID: "developer", Task: "fix it", Autopilot: true, By: "user",
	}, asked)
	require.Equal(t, "c", r.sent.all()[0].Key)
}

func TestRequestsAreWrittenToTheRowThatDecides(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "p")
	r.index.setCrew("c", crewFake{
		decisions: []view.Decision{{ID: "d1", Status: team.Recorded}, {ID: "d2", Status: "confirmed"}},
		groups:    []view.Group{{Name: "team"}},
	}.row())
	agents, crews, repositories := r.door.topics.CrewAgentInputs, r.door.topics.CrewInputs, r.door.topics.CrewRepositoryInputs
	for _, c := range []struct {
		method, path, body string
		topic              topics.Topic[topics.CrewInput]
		key                string
		want               crewbody.Body
	}{
		{"DELETE", "/agents/a", ``, crews, "c", crewbody.TerminateAsked{AgentID: "a", By: "user"}},
		{"POST", "/agents/a/restart", ``, crews, "c", crewbody.RestartAsked{AgentID: "a", By: "user"}},
		{"POST", "/agents/a/message", `{"text":"hi","mode":"interrupt"}`, crews, "c", crewbody.Say{To: "a", Text: "hi", Interrupt: true, By: "user"}},
		{
			"POST", "/agents/a/message", `{"text":"hi","attachments":[{"mimeType":"image/png","data":"AAAA"}]}`, crews, "c",
			crewbody.Say{To: "a", Text: "hi", By: "user", Blocks: topics.Raw(`[{"type":"image","mimeType":"image/png","data":"AAAA"}]`)},
		},
		{"POST", "/crews/c/message", `{"text":"hi"}`, crews, "c", crewbody.Say{To: "*", Text: "hi", By: "user"}},
		{"POST", "/agents/a/input", `{"text":"hi"}`, agents, "a", crewbody.Prompt{Text: "hi", Priority: true, FromID: "user"}},
		{"POST", "/agents/a/interrupt", `{"text":"stop"}`, agents, "a", crewbody.Interrupt{Text: "stop", FromID: "user"}},
		{"POST", "/agents/a/autopilot", `{"enabled":true}`, agents, "a", crewbody.Autopilot{On: true}},
		{"POST", "/coordination/locks", `{"agentId":"a","filePath":"x/*"}`, repositories, "repo", crewbody.LockAsked{
			Member: crewbody.Member{AgentID: "a", CrewID: "c", ProjectID: "p", RoleID: "developer", Repository: "repo"}, FilePath: "x/*", By: "user",
		}},
		{
			"DELETE", "/coordination/locks/x%2Fy.go?agentId=a&force=true", ``, repositories, "repo",
			crewbody.UnlockAsked{AgentID: "a", FilePath: "x/y.go", Force: true, By: "user"},
		},
		{"POST", "/crews", `{"crewId":"c","host":"h","cwd":"/w","projectId":"p"}`, crews, "c", crewbody.Configure{ProjectID: "p", Host: "h", Cwd: "/w"}},
		{"POST", "/decisions/d1/reject", ``, crews, "c", crewbody.Decide{DecisionIDs: []string{"d1"}, Action: "reject", By: "user"}},
		{"POST", "/decisions/batch", `{"action":"confirm","ids":["d1","d1","d2","d3"]}`, crews, "c", crewbody.Decide{DecisionIDs: []string{"d1"}, Action: "confirm", By: "user"}},
		{"POST", "/groups/team/messages", `{"content":"hi"}`, crews, "c", crewbody.GroupSay{Group: "team", Text: "hi", By: "user"}},
		{"POST", "/groups/team/messages/m1/reactions", `{"emoji":"👍"}`, crews, "c", crewbody.GroupSay{Group: "team", MessageID: "m1", Emoji: "👍", By: "user"}},
		{
			"DELETE", "/groups/team/messages/m1/reactions/%F0%9F%91%8D", ``, crews, "c",
			crewbody.GroupSay{Group: "team", MessageID: "m1", Emoji: "👍", Remove: true, By: "user"},
		},
		{"POST", "/system/pause", ``, crews, "c", crewbody.SystemPaused{Paused: true, By: "user"}},
	} {
		before := len(r.inputs(c.topic))
		a := r.do(c.method, "/api"+c.path, c.body)
		require.Equal(t, http.StatusAccepted, a.status, "%s %s: %s", c.method, c.path, a.body)
		written := r.inputs(c.topic)
		require.Len(t, written, before+1, c.path)
		last := written[len(written)-1]
		require.Equal(t, c.want.Kind(), last.Kind)
		require.JSONEq(t, string(crewbody.Encode(c.want)), string(last.Body), c.path)
		require.Equal(t, last.InputID, a.members(t)["inputId"])
		require.Equal(t, c.key, r.sent.all()[len(r.sent.all())-1].Key)
	}
	require.Equal(t, 200, r.do("POST", "/api/decisions/d2/confirm", "").status, "it is so already")
	require.Equal(t, 409, r.do("POST", "/api/decisions/d2/reject", "").status)
}

func TestUnusableRequestsAreRefused(t *testing.T) {
	r := newRig(t, func(c *Config) { c.BodyLimit = 2000 })
	r.agent("a", "c", "")
	r.agent("ended", "c", "", func(a *agentRow) { a.view.Status = view.Failed })
	many := `{"text":"x","attachments":[` + strings.Repeat(`{"mimeType":"image/png","data":"AAAA"},`, 10) + `{"mimeType":"image/png","data":"AAAA"}]}`
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/agents", `{"crewId":"c","roleId":"wizard"}`, 400},
		{"POST", "/agents", `{"roleId":"developer"}`, 400},
		{"POST", "/agents", `{"crewId":"c","roleId":"developer","tsak":"x"}`, 400},
		{"POST", "/agents", `{"crewId":"c","crewId":"d","roleId":"developer"}`, 400},
		{"POST", "/agents", `[]`, 400},
		{"POST", "/agents", `{`, 400},
		{"POST", "/agents", `{"task":"` + strings.Repeat("x", 2000) + `"}`, 413},
		{"POST", "/agents/a/message", `{"text":"  "}`, 400},
		{"POST", "/agents/a/message", `{"text":"x","mode":"shout"}`, 400},
		{"POST", "/agents/a/message", many, 400},
		{"POST", "/agents/a/message", `{"text":"x","attachments":[{"mimeType":"image/svg+xml","data":"AAAA"}]}`, 400},
		{"POST", "/agents/a/message", `{"text":"x","attachments":[{"mimeType":"image/png","data":"?"}]}`, 400},
		{"POST", "/agents/ended/message", `{"text":"x"}`, 409},
		{"POST", "/agents/none/message", `{"text":"x"}`, 404},
		{"POST", "/agents/a/autopilot", `{}`, 400},
		{"POST", "/agents/a/permission", `{"approved":true}`, 400},
		{"POST", "/agents/a/permission", `{"requestId":"g"}`, 400},
		{"POST", "/agents/a/permission", `{"approved":true,"requestId":"g"}`, 404},
		{"POST", "/coordination/locks", `{"agentId":"a"}`, 400},
		{"POST", "/coordination/locks", `{"agentId":"a","filePath":"../x"}`, 400},
		{"POST", "/coordination/locks", `{"agentId":"a","filePath":".git/config"}`, 400},
		{"DELETE", "/coordination/locks/..%2Fx?agentId=a", ``, 400},
		{"DELETE", "/coordination/locks/none", ``, 404},
		{"POST", "/decisions/none/confirm", ``, 404},
		{"POST", "/decisions/batch", `{"action":"shrug","ids":["d"]}`, 400},
		{"POST", "/groups/none/messages", `{"content":"x"}`, 404},
		{"POST", "/system/pause", `{"crewId":"none"}`, 404},
		{"GET", "/bus/messages?limit=-1", ``, 400},
		{"PUT", "/agents", ``, 405},
		{"GET", "/none", ``, 404},
		{"GET", "/agents/%00", ``, 404},
		{"GET", "/agents//message", ``, 404},
	} {
		a := r.do(c.method, "/api"+c.path, c.body)
		require.Equal(t, c.want, a.status, "%s %s %s: %s", c.method, c.path, c.body, a.body)
		require.NotEmpty(t, a.members(t)["error"], c.path)
	}
	require.Equal(t, 400, r.do("POST", "/api/agents", `{"crewId":"c","roleId":"developer"}`, "Idempotency-Key", strings.Repeat("x", 300)).status)
	require.Empty(t, r.sent.all())

	r.sent.err = errors.New("down")
	require.Equal(t, 500, r.do("POST", "/api/agents/a/restart", "").status)
	r.sent.err = fmt.Errorf("%w: x", processors.ErrTooLarge)
	require.Equal(t, 413, r.do("POST", "/api/agents/a/restart", "").status)
}

func TestMessagesAndSpawnsOfACallerAreLimited(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Authenticate = callers })
	r.agent("a", "c", "")
	mira := []string{"Authorization", "Bearer mira.all.all"}
	for range maxMessages {
		require.Equal(t, 202, r.do("POST", "/api/agents/a/message", `{"text":"x"}`, mira...).status)
	}
	refused := r.do("POST", "/api/agents/a/message", `{"text":"x"}`, mira...)
	require.Equal(t, 429, refused.status)
	require.NotEmpty(t, refused.header.Get("Retry-After"))
	require.Equal(t, 202, r.do("POST", "/api/agents/a/message", `{"text":"x"}`, "Authorization", "Bearer otto.all.all").status)
	for range maxSpawns {
		require.Equal(t, 202, r.do("POST", "/api/agents", `{"crewId":"d","roleId":"developer"}`, mira...).status)
	}
	require.Equal(t, 429, r.do("POST", "/api/agents", `{"crewId":"d","roleId":"developer"}`, mira...).status)
	r.clock.Advance(messagesWindow)
	require.Equal(t, 202, r.do("POST", "/api/agents/a/message", `{"text":"x"}`, mira...).status)
	require.Equal(t, 429, r.do("POST", "/api/agents", `{"crewId":"d","roleId":"developer"}`, mira...).status)
}

func TestCallersNeedTheRightAndTheCrew(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Authenticate = callers })
	r.agent("a", "mira-1", "")
	for _, c := range []struct{ method, path, body, rights string }{
		{"GET", "/agents", ``, "write-answer-control"},
		{"GET", "/agents/a", ``, "write-answer-control"},
		{"POST", "/agents/a/message", `{"text":"x"}`, "read-answer-control"},
		{"DELETE", "/agents/a", ``, "read-write-answer"},
		{"POST", "/agents/a/permission", `{"approved":true,"requestId":"g"}`, "read-write-control"},
		{"POST", "/system/pause", ``, "read-write-answer"},
		{"POST", "/tool-auto-allow/Bash", `{"roleId":"developer"}`, "read-write-answer"},
	} {
		require.Equal(t, 401, r.do(c.method, "/api"+c.path, c.body).status, c.path)
		require.Equal(t, 403, r.do(c.method, "/api"+c.path, c.body, "Authorization", "Bearer mira."+c.rights+".all").status, c.path)
	}
	otto := []string{"Authorization", "Bearer otto.all.otto-"}
	require.Equal(t, 404, r.do("GET", "/api/agents/a", "", otto...).status)
	require.Equal(t, r.do("GET", "/api/agents/none", "", otto...).body, r.do("GET", "/api/agents/a", "", otto...).body)
	require.Equal(t, "[]", r.do("GET", "/api/agents", "", otto...).body)
	require.Equal(t, 404, r.do("DELETE", "/api/agents/a", "", otto...).status)
	require.Equal(t, 403, r.do("POST", "/api/agents", `{"crewId":"mira-1","roleId":"developer"}`, otto...).status)
	require.Equal(t, 403, r.do("POST", "/api/tool-auto-allow/Bash", `{"roleId":"developer"}`, otto...).status)
	require.Equal(t, 202, r.do("POST", "/api/tool-auto-allow/Bash", `{"roleId":"developer"}`, "Authorization", "Bearer boss.control.all").status)
	require.Equal(t, 403, r.do("DELETE", "/api/agents/a", "", "Cookie", "flightdeck-token=mira.all.all", "Origin", "https://evil.example",
		"Sec-Fetch-Site", "cross-site").status)
	require.Equal(t, 415, r.do("POST", "/api/agents/a/message", `{"text":"x"}`, "Authorization", "Bearer mira.all.all", "Content-Type", "text/plain").status)
}

func TestRequestsAreAnsweredWith503BeforeTheIndexIsReady(t *testing.T) {
	r := newRig(t)
	r.index.follows.Ready = make(chan struct{})
	require.Equal(t, 503, r.do("GET", "/api/agents", "").status)
	_, response, err := r.dial("/ws")
	require.Error(t, err)
	require.Equal(t, 503, response.StatusCode)
}

func TestWindowForgetsAfterItsPeriod(t *testing.T) {
	w := newWindows(2, time.Second)
	require.Zero(t, w.take("a", noon))
	require.Zero(t, w.take("a", noon.Add(600*time.Millisecond)))
	require.Equal(t, 300*time.Millisecond, w.take("a", noon.Add(700*time.Millisecond)))
	require.Zero(t, w.take("a", noon.Add(time.Second)))
	require.Equal(t, 500*time.Millisecond, w.take("a", noon.Add(1100*time.Millisecond)))
	for i := range maxWindows + 10 {
		w.take(fmt.Sprint(i), noon)
	}
	require.Equal(t, maxWindows, w.byKey.Len())
}

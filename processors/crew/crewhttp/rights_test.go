package crewhttp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The members of a body must not do what another request does with a right that the caller does not have.
func TestBodiesNeedTheRightsOfWhatTheyAskFor(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Authenticate = callers })
	r.agent("a", "c", "")
	r.index.setCrew("c", crewFake{}.row())
	for _, c := range []struct{ path, plain, control string }{
		{"/agents", `{"crewId":"c","roleId":"developer"}`, `{"crewId":"c","roleId":"developer","autopilot":true}`},
		{"/agents", `{"crewId":"c","roleId":"developer","noRestart":true}`, `{"crewId":"c","roleId":"developer","cwd":"/other"}`},
		{"/agents", `{"crewId":"c","roleId":"developer","parentId":"p"}`, `{"crewId":"c","roleId":"developer","sessionId":"s"}`},
		{"/agents/a/message", `{"text":"x","mode":"queue"}`, `{"text":"x","mode":"interrupt"}`},
		{"/crews/c/message", `{"text":"x"}`, `{"text":"x","mode":"interrupt"}`},
	} {
		before := len(r.sent.all())
		a := r.do("POST", "/api"+c.path, c.control, "Authorization", "Bearer otto.read-write-answer.all")
		require.Equal(t, 403, a.status, "%s %s", c.path, c.control)
		require.Contains(t, a.body, "control", "the error names the right")
		require.Len(t, r.sent.all(), before)
		require.Equal(t, 202, r.do("POST", "/api"+c.path, c.plain, "Authorization", "Bearer otto.write.all").status, c.plain)
		require.Equal(t, 202, r.do("POST", "/api"+c.path, c.control, "Authorization", "Bearer mira.write-control.all").status, c.control)
	}
}

// Frames need the rights of the requests that do the same. A member that a frame does not have, such as the mode of input, has no
// effect.
func TestFramesNeedTheRightsOfTheirRequests(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Authenticate, c.DecisionWait = callers, -1 })
	r.agent("a", "c", "", asks("g"))
	r.agent("b", "theirs", "", asks("h"))
	for frame, missing := range map[string]string{
		`{"type":"input","agentId":"a","text":"x"}`:                                    "read-answer-control",
		`{"type":"permission_response","agentId":"a","approved":true}`:                 "read-write-control",
		`{"type":"permission_response","agentId":"a","approved":true,"requestId":"g"}`: "read-write-control",
		`{"type":"queue_open"}`: "read-write-control",
		`{"type":"permission_response","agentId":"a","approved":true,"alwaysAllow":true,` +
			`"requestId":"g","scope":"agent"}`: "read-write-answer",
	} {
		b, _ := r.open("Authorization", "Bearer otto."+missing+".c")
		b.send(frame)
		b.next("error")
		b.done()
		require.Empty(t, r.sent.all(), frame)
	}
	b, _ := r.open("Authorization", "Bearer otto.read-write-answer-control.c")
	b.send(`{"type":"input","agentId":"b","text":"x"}`)
	require.Equal(t, "unknown agent", b.next("error").Message)
	b.send(`{"type":"permission_response","agentId":"b","approved":true,"requestId":"h"}`)
	b.done()
	require.Empty(t, r.sent.all(), "the agent is of another crew")
	b.send(`{"type":"input","agentId":"a","text":"x","mode":"interrupt","interrupt":true}`)
	b.done()
	require.Equal(t, "prompt", r.inputs(r.door.topics.CrewAgentInputs)[0].Kind)
}

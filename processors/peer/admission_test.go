package peer_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/internal/admission"
)

func load(t *testing.T, peers string) *peer.Settings {
	t.Helper()
	s, err := peer.ParseSettings([]byte(`{"peers":`+peers+`}`), os.LookupEnv)
	require.NoError(t, err)
	return s
}

func TestChecksBeforeTheBodyInTheirOrder(t *testing.T) {
	const tokens = `"instanceId":"a-1","inboundTokens":[{"id":"partner-b","token":"T2"},{"id":"partner-b","token":"two words"}]}`
	on, off := load(t, `{"enabled":true,`+tokens), load(t, `{"enabled":false,`+tokens)
	for _, c := range []struct {
		name   string
		s      *peer.Settings
		header []string
		room   bool
		status int
		text   string
	}{
		{"disabled, without a token", off, nil, false, 503, "Peer delegation is disabled."},
		{"disabled, with a token", off, []string{"Bearer T2"}, true, 503, "Peer delegation is disabled."},
		{"no header", on, nil, false, 401, "Missing bearer token."},
		{"another scheme", on, []string{"Basic T2"}, true, 401, "Missing bearer token."},
		{"no token", on, []string{"Bearer  "}, true, 401, "Missing bearer token."},
		{"no space", on, []string{"BearerT2"}, true, 401, "Missing bearer token."},
		{"two headers", on, []string{"Bearer T2", "Bearer T2"}, true, 401, "Missing bearer token."},
		{"unknown token, and no room", on, []string{"Bearer T3"}, false, 401, "Unknown peer token."},
		{"no room", on, []string{"Bearer T2"}, false, 429, "Peer inbound concurrency limit reached."},
		{"admitted", on, []string{" bEARER   T2 "}, true, 0, ""},
		{"token with a space", on, []string{"Bearer two words"}, true, 0, ""},
	} {
		acquired := 0
		in, refusal := admission.Admit(c.s, c.header, func(in peer.Inbound) bool {
			acquired++
			require.Equal(t, "partner-b", in.ID, c.name)
			return c.room
		})
		if c.status == 0 {
			require.Nil(t, refusal, c.name)
			require.Equal(t, "partner-b", in.ID, c.name)
			require.Equal(t, 1, acquired, c.name)
			continue
		}
		require.Equal(t, c.status, refusal.Status, c.name)
		require.Equal(t, c.text, refusal.Text, c.name)
		require.NotEmpty(t, refusal.Code, c.name)
		if c.status != 429 {
			require.Zero(t, acquired, "%s: a place is taken only for a token that is accepted", c.name)
		}
	}
}

func TestChecksAfterTheBodyInTheirOrder(t *testing.T) {
	s := load(t, `{"enabled":true,"instanceId":"a-1","maxHops":2,"inboundTokens":[
		{"id":"any","token":"T1"},{"id":"listed","token":"T2","allowedAgentIds":["front","main","gone"]}]}`)
	anyAgent, listed := s.Inbound[0], s.Inbound[1]
	agents := admission.Agents{Default: "main", IDs: []string{"front", "back"}}
	loop := peerwire.Path{Hops: 9, Chain: []string{"hq-1", "a-1"}}
	for _, c := range []struct {
		name   string
		in     peer.Inbound
		agent  string
		path   peerwire.Path
		agents admission.Agents
		status int
		code   peerwire.Code
		want   string // the agent, or the text
	}{
		{"named", anyAgent, "back", peerwire.Path{Hops: 1}, agents, 0, "", "back"},
		{"default", anyAgent, "", peerwire.Path{Hops: 1}, agents, 0, "", "main"},
		{"default by name", anyAgent, "main", peerwire.Path{Hops: 1}, agents, 0, "", "main"},
		{"listed", listed, "front", peerwire.Path{Hops: 2, Chain: []string{"hq-1", "x"}}, agents, 0, "", "front"},
		{"not listed", listed, "back", loop, agents, 403, peerwire.CodeAgentForbidden, `Peer "listed" may not delegate to agent "back".`},
		{"not listed and unknown", listed, "x", loop, agents, 403, peerwire.CodeAgentForbidden, `Peer "listed" may not delegate to agent "x".`},
		{"another case", listed, "Front", loop, agents, 403, peerwire.CodeAgentForbidden, `Peer "listed" may not delegate to agent "Front".`},
		{"none named", listed, "", loop, agents, 403, peerwire.CodeAgentForbidden, `Peer "listed" must name an agent that it may delegate to.`},
		{"listed and unknown", listed, "gone", loop, agents, 404, peerwire.CodeUnknownAgent, `Unknown agent "gone".`},
		{"unknown", anyAgent, "x", loop, agents, 404, peerwire.CodeUnknownAgent, `Unknown agent "x".`},
		{"no default", anyAgent, "", loop, admission.Agents{}, 404, peerwire.CodeUnknownAgent, `Unknown agent "".`},
		{"loop", anyAgent, "", loop, agents, 409, peerwire.CodeLoop, `The task has passed this instance already: "a-1".`},
		{"too many hops", anyAgent, "", peerwire.Path{Hops: 3}, agents, 403, peerwire.CodeHopLimit, "The task was passed on 3 times; at most 2 are allowed."},
	} {
		agent, refusal := admission.Check(s, c.in, peerwire.Request{TaskID: "t-9", AgentID: c.agent, Path: c.path}, c.agents)
		if c.status == 0 {
			require.Nil(t, refusal, c.name)
			require.Equal(t, c.want, agent, c.name)
			continue
		}
		require.Empty(t, agent, c.name)
		require.Equal(t, &peerwire.Refusal{Status: c.status, Code: c.code, Text: c.want}, refusal, c.name)
	}
}

package crewhttp

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

func TestFramesHaveTheMembersOfTheCatalogOfEvents(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "p")
	b, _ := r.open()
	for _, c := range []struct{ kind, fields, want string }{
		{"agent:plan", `{"agentId":"a","plan":[{"content":"x"}]}`, `{"agentId":"a","entries":[{"content":"x"}],"plan":[{"content":"x"}]}`},
		{
			"agent:tool_call", `{"agentId":"a","toolCall":{"toolCallId":"t","title":"Run","kind":"execute","status":"pending","rawInput":{"a":1}}}`,
			`{"agentId":"a","toolCallId":"t","title":"Run","kind":"execute","status":"pending"}`,
		},
		{"lead:progress", `{"agentId":"a","dag":{"completed":["x"],"in_progress":[],"blocked":["y"]}}`, `{"summary":"","completed":["x"],"in_progress":[],"blocked":["y"]}`},
		{"lead:progress", `{"agentId":"a","summary":"s","completed":["mine"]}`, `{"summary":"s","completed":["mine"],"in_progress":[],"blocked":[]}`},
		{"group:created", `{"name":"g","leadId":"l","memberIds":["a"],"createdAt":"2026"}`, `{"leadId":"l","group":{"name":"g","leadId":"l","memberIds":["a"],"createdAt":"2026"}}`},
		{"group:archived", `{"name":"g","leadId":"l"}`, `{"leadId":"l","name":"g","group":{"name":"g","leadId":"l"}}`},
		{"group:member_added", `{"group":"g","leadId":"l","agentId":"a"}`, `{"group":"g","leadId":"l","agentId":"a"}`},
	} {
		r.event(c.kind, "crew/c", "c", "p", c.fields)
		var got, want map[string]any
		require.NoError(t, json.Unmarshal([]byte(b.next(c.kind).raw), &got))
		require.NoError(t, json.Unmarshal([]byte(c.want), &want))
		for name, value := range want {
			require.Equal(t, value, got[name], "%s %s", c.kind, name)
		}
	}
}

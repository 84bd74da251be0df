package gate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

func TestErrorNamesTheInvalidField(t *testing.T) {
	for want, c := range map[string]Config{
		"rule 1: tool: blank":                        {Policy: approval.Policy{Rules: []approval.Rule{{Effect: approval.Ask}}}},
		"has rule 1 with a schema":                   {Policy: approval.Policy{Rules: []approval.Rule{{Tool: "x", Effect: approval.Ask, Edit: true, Schema: topics.Raw(`{"type":"x"}`)}}}},
		"SessionGrant is -1ns":                       {SessionGrant: -1},
		"AgentGrant is -1ns":                         {AgentGrant: -1},
		"Hold is -1ns":                               {Hold: -1},
		"RememberFor is -1ns":                        {RememberFor: -1},
		"RememberCount is -1":                        {RememberCount: -1},
		"OpenLimit is -1":                            {OpenLimit: -1},
		"RecordLimit is 1000, want at least 131072":  {RecordLimit: 1000},
		"RowLimit is 2097152, want 65536 to 1048576": {RowLimit: 2 << 20},
	} {
		for _, graph := range []func() error{
			func() error { _, err := Graph("quay", c); return err },
			func() error { _, err := GrantsGraph("quay", c); return err },
		} {
			require.ErrorIs(t, graph(), ErrConfig, want)
			require.ErrorContains(t, graph(), want)
		}
	}
	_, err := Graph(" ", Config{})
	require.ErrorContains(t, err, "agent")
	_, err = GrantsGraph(" ", Config{})
	require.ErrorContains(t, err, "agent")
}

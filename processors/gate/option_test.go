package gate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

func TestErrorNamesTheInvalidOption(t *testing.T) {
	for want, opt := range map[string]Option{
		"rule 1: tool: blank":           WithPolicy(approval.Policy{Rules: []approval.Rule{{Effect: approval.Ask}}}),
		"rule 1: schema cannot be used": WithPolicy(approval.Policy{Rules: []approval.Rule{{Tool: "x", Effect: approval.Ask, Edit: true, Schema: topics.Raw(`{"type":"x"}`)}}}),
		"session's grant":               WithGrants(0, time.Hour),
		"agent's grant":                 WithGrants(time.Hour, -1),
		"hold time":                     WithHold(0),
		"remember time":                 WithRemembered(0, 1),
		"remember count":                WithRemembered(time.Hour, 0),
		"open limit":                    WithOpenLimit(0),
		"record limit":                  WithRecordLimit(1000),
		"row limit":                     WithRowLimit(2 << 20),
	} {
		for _, graph := range []func() error{
			func() error { _, err := Graph("quay", opt); return err },
			func() error { _, err := GrantsGraph("quay", opt); return err },
		} {
			require.ErrorIs(t, graph(), ErrOption, want)
			require.ErrorContains(t, graph(), want)
		}
	}
	_, err := Graph(" ")
	require.ErrorContains(t, err, "agent")
	_, err = GrantsGraph(" ")
	require.ErrorContains(t, err, "agent")
}

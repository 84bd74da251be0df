package team_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/team"
	"github.com/turntable-streams/turntable/processors/crew/view"
)

func TestErrorNamesTheInvalidOption(t *testing.T) {
	for want, opt := range map[string]team.Option{
		"maximum of agents 0":   team.WithMaxAgents(0),
		"maximum of agents 101": team.WithMaxAgents(101),
		"no roles":              team.WithRoles(nil),
		"role 1":                team.WithRoles([]view.Role{{ID: "lead"}}),
		"is repeated":           team.WithRoles([]view.Role{{ID: "lead", Name: "a"}, {ID: "lead", Name: "b"}}),
		"prompt is longer":      team.WithRoles([]view.Role{{ID: "lead", Name: "a", SystemPrompt: strings.Repeat("x", 70_000)}}),
	} {
		_, err := team.Graph("harbor", opt)
		require.ErrorIs(t, err, team.ErrOption, want)
		require.ErrorContains(t, err, want)
	}
	_, err := team.Graph(" ")
	require.ErrorContains(t, err, "agent")
	_, err = team.Graph("harbor")
	require.NoError(t, err)
}

func TestRolesAreThoseOfTheContract(t *testing.T) {
	var ids []string
	for _, r := range team.Roles() {
		ids = append(ids, r.ID)
		require.True(t, r.BuiltIn)
		require.NotEmpty(t, r.SystemPrompt)
	}
	require.Equal(t, []string{"lead", "architect", "developer", "reviewer", "tester", "secretary", "generalist"}, ids)
}

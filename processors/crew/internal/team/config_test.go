package team_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
	"github.com/turntable-streams/turntable/topics"
)

func TestErrorNamesTheInvalidOption(t *testing.T) {
	for want, c := range map[string]team.Config{
		"MaxAgents is -1":  {MaxAgents: -1},
		"MaxAgents is 101": {MaxAgents: 101},
		"role 1":           {Roles: []topics.CrewRole{{ID: "lead"}}},
		"twice":            {Roles: []topics.CrewRole{{ID: "lead", Name: "a"}, {ID: "lead", Name: "b"}}},
		"prompt of more":   {Roles: []topics.CrewRole{{ID: "lead", Name: "a", SystemPrompt: strings.Repeat("x", 70_000)}}},
	} {
		_, err := team.Group("harbor", c)
		require.ErrorIs(t, err, mailbox.ErrConfig, want)
		require.ErrorContains(t, err, want)
	}
	_, err := team.Group(" ", team.Config{})
	require.ErrorContains(t, err, "agent")
	_, err = team.Group("harbor", team.Config{})
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

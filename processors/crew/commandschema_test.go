package crew_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/topics"
)

func decode(t *testing.T, name, payload string) any {
	t.Helper()
	value, err := command.Decode(name, topics.Raw(payload))
	require.NoError(t, err, "%s %.200s", name, payload)
	return value
}

func TestX08_FieldsAreCheckedAndUnknownKeysDropped(t *testing.T) {
	text, name, item := strings.Repeat("é", 50_000), strings.Repeat("é", 200), strings.Repeat("é", 100)
	list := func(n int) string { return `["a"` + strings.Repeat(`,"a"`, n-1) + `]` }
	for _, test := range []struct{ name, payload, problem string }{
		{"CREATE_AGENT", `{"role": "developer", "surprise": {"a": [1]}}`, ""},
		{"CREATE_AGENT", `{"task": "x"}`, "role: must not be empty"},
		{"CREATE_AGENT", `{"role": "` + name + `"}`, ""},
		{"CREATE_AGENT", `{"role": "` + name + `x"}`, "role: at most 200 characters"},
		{"CREATE_AGENT", `{"role": "a", "dependsOn": ` + list(20) + `}`, ""},
		{"CREATE_AGENT", `{"role": "a", "dependsOn": ` + list(21) + `}`, "dependsOn: at most 20 elements"},
		{"CREATE_AGENT", `{"role": "a", "dependsOn": [1]}`, "dependsOn.0: must be a string"},
		{"CREATE_AGENT", `{"role": "a", "dependsOn": "b"}`, "dependsOn: must be an array"},
		{"DELEGATE", `{"to": "a"}`, "task: must not be empty"},
		{"DELEGATE", `{"to": "a", "task": "` + text + `"}`, ""},
		{"DELEGATE", `{"to": "a", "task": "` + text + `x"}`, "task: at most 50000 characters"},
		{"TERMINATE_AGENT", `{}`, "agentId: must not be empty"},
		{"CANCEL_DELEGATION", `{}`, "agentId or delegationId is needed"},
		{"AGENT_MESSAGE", `{"to": "a", "content": " \n"}`, "content: must not be empty"},
		{"AGENT_MESSAGE", `{"content": "a"}`, "to: must not be empty"},
		{"DIRECT_MESSAGE", `{"to": "a", "content": null}`, "content: must not be empty"},
		{"BROADCAST", `{"content": "` + text + `x"}`, "content: at most 50000 characters"},
		{"INTERRUPT", `{"to": ["a"], "content": "b"}`, "to: must be a string"},
		{"CREATE_GROUP", `{"name": "a"}`, "members or roles is needed"},
		{"CREATE_GROUP", `{"name": "a", "roles": ` + list(100) + `}`, ""},
		{"CREATE_GROUP", `{"name": "a", "members": ` + list(101) + `}`, "members: at most 100 elements"},
		{"CREATE_GROUP", `{"name": "` + name + `x", "members": ["a"]}`, "name: at most 200 characters"},
		{"ADD_TO_GROUP", `{"group": "a", "members": []}`, "members: must not be empty"},
		{"REMOVE_FROM_GROUP", `{"group": "a"}`, "members: must not be empty"},
		{"GROUP_MESSAGE", `{"content": "a"}`, "group: must not be empty"},
		{"REACT", `{"group": "a", "emoji": "123456789"}`, "emoji: at most 8 characters"},
		{"REACT", `{"group": "a", "emoji": "👍👍👍👍👍👍👍👍"}`, ""},
		{"LOCK_FILE", `{"filePath": "` + strings.Repeat("a", 500) + `"}`, ""},
		{"LOCK_FILE", `{"filePath": "` + strings.Repeat("a", 501) + `"}`, "filePath: at most 500 characters"},
		{"UNLOCK_FILE", `{}`, "filePath: must not be empty"},
		{"COMMIT", `{"files": ` + list(500) + `}`, ""},
		{"COMMIT", `{"files": ` + list(501) + `}`, "files: at most 500 elements"},
		{"COMMIT", `{"files": ["a", ""]}`, "files.1: must not be empty"},
		{"ACTIVITY", `{}`, ""},
		{"DECISION", `{"title": "` + name + `x"}`, "title: at most 200 characters"},
		{"DECISION", `{"title": "a", "needsConfirmation": "yes"}`, "needsConfirmation: must be true or false"},
		{"PROGRESS", `{"percent": 100.5}`, "percent: must be a number from 0 to 100"},
		{"PROGRESS", `{"percent": "NaN"}`, "percent: must be a number from 0 to 100"},
		{"PROGRESS", `{"percent": [1]}`, "percent: must be a number or a string"},
		{"DECLARE_TASKS", `{"tasks": []}`, "tasks: must not be empty"},
		{"DECLARE_TASKS", `{"tasks": [{"taskId": "a", "role": "b"}, {"role": "b"}]}`, "tasks.1.taskId: must not be empty"},
		{"DECLARE_TASKS", `{"tasks": [{"taskId": "a", "role": "b", "dependsOn": ["` + item + `x"]}]}`, "tasks.0.dependsOn.0: at most 100 characters"},
		{"DECLARE_TASKS", `{"tasks": [{"taskId": "a", "role": 1}]}`, "tasks.0.role: must be a string"},
		{"DECLARE_TASKS", `[]`, `the payload must be an object, with the array as "tasks"`},
		{"ADD_TASK", `{"taskId": "` + item + `x", "role": "a"}`, "taskId: at most 100 characters"},
		{"ADD_TASK", `{"taskId": "a", "role": "b", "dependsOn": ` + list(101) + `}`, "dependsOn: at most 100 elements"},
		{"COMPLETE_TASK", `{}`, ""},
		{"FORCE_READY", `{}`, "taskId: must not be empty"},
		{"ADD_DEPENDENCY", `{"taskId": "a", "dependsOn": ` + list(21) + `}`, "dependsOn: at most 20 elements"},
		{"ASSIGN_TASK", `{"taskId": "a"}`, "agentId: must not be empty"},
		{"REQUEST_LIMIT_CHANGE", `{}`, "limit: must be from 1 to 100"},
		{"REQUEST_LIMIT_CHANGE", `{"limit": 101}`, "limit: must be from 1 to 100"},
		{"REQUEST_LIMIT_CHANGE", `{"limit": 1.5}`, "limit: must be a number"},
		{"SET_TIMER", `{"label": "a", "delay": 4, "message": "b"}`, "delay: must be from 5 seconds to 24 hours"},
		{"SET_TIMER", `{"label": "a", "delay": "25h", "message": "b"}`, "delay: must be from 5 seconds to 24 hours"},
		{"SET_TIMER", `{"label": "a", "delay": 1e300, "message": "b"}`, "delay: must be from 5 seconds to 24 hours"},
		{"SET_TIMER", `{"label": "a", "delay": "soon", "message": "b"}`, "delay: must be a number of seconds"},
		{"CANCEL_TIMER", `{}`, "timerId or label is needed"},
		{"QUERY_CREW", `{"anything": {"b": 1}}`, ""},
		{"SPAWN_AGENT", `{}`, "Use CREATE_AGENT"},
		{"NOSUCH", `{}`, "NOSUCH error: unknown command"},
	} {
		value, err := command.Decode(test.name, topics.Raw(test.payload))
		if test.problem == "" {
			require.NoError(t, err, "%s %.100s", test.name, test.payload)
			require.NotNil(t, value)
			continue
		}
		require.ErrorContains(t, err, test.problem, "%s %.100s", test.name, test.payload)
		require.Less(t, len(err.Error()), 300, "the answer does not repeat the payload")
	}
}

func TestDecodeReturnsTheCommandsStruct(t *testing.T) {
	require.Equal(t, command.CreateAgent{Role: "a", Task: "b", DependsOn: []string{"c"}},
		decode(t, "CREATE_AGENT", `{"role":"a","task":"b","dependsOn":["c"],"x":1}`))
	require.Equal(t, command.Nothing{}, decode(t, "QUERY_GROUPS", ``))
	require.Equal(t, command.Activity{ActionType: "decision_made", Action: "decision_made"}, decode(t, "ACTIVITY", `{"action":"decision_made"}`))
	percent := command.Percent(62.5)
	require.Equal(t, command.Progress{Percent: &percent}, decode(t, "PROGRESS", `{"percent":" 62.5 "}`))
	require.Equal(t, command.Progress{}, decode(t, "PROGRESS", `{"percent":null}`))
	for text, want := range map[string]int64{`5`: 5, `"5m"`: 300, `"90"`: 90, `"2h"`: 7200, `"1h30m"`: 5400, `" 30S "`: 30} {
		got := decode(t, "SET_TIMER", `{"label":"a","message":"b","delay":`+text+`}`).(command.SetTimer)
		require.EqualValues(t, want*1e9, got.Delay, text)
	}
	summary := decode(t, "COMPLETE_TASK", `{"summary":"`+strings.Repeat("é", 20_000)+`"}`).(command.CompleteTask).Summary
	require.Equal(t, strings.Repeat("é", 10_000), summary)
	require.Equal(t, command.TargetRepository, command.For("COMMIT"))
	require.Equal(t, command.TargetCrew, command.For("BROADCAST"))
}

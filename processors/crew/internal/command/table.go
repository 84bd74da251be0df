package command

import (
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// spec is what is known of a command.
type spec struct {
	name string
	// payload says that a block without a payload is not executed: it is how people mention the command.
	payload bool
	example string
	decode  func(topics.Raw) (any, error)
	// refusal is the answer to a command that no agent may give.
	refusal string
}

// with is a command with a payload, and bare one without.
func with[T any](name, object string) spec {
	return spec{name: name, payload: true, example: "⟦⟦ " + name + " " + object + " ⟧⟧", decode: decodeAs[T]}
}

func bare(name string) spec {
	return spec{name: name, example: "⟦⟦ " + name + " ⟧⟧", decode: func(topics.Raw) (any, error) { return Nothing{}, nil }}
}

func unavailable(name, advice string) spec {
	return spec{name: name, refusal: name + " error: the command is not available." + advice}
}

// specs are all commands, in the order of the help text.
var specs = []spec{
	with[CreateAgent]("CREATE_AGENT", `{"role": "developer", "task": "Write the parser"}`),
	with[Delegate]("DELEGATE", `{"to": "<agent id>", "task": "Write the tests", "context": "The parser is in parse.go"}`),
	with[TerminateAgent]("TERMINATE_AGENT", `{"agentId": "<agent id>", "reason": "Its work is done"}`),
	with[CancelDelegation]("CANCEL_DELEGATION", `{"agentId": "<agent id>"}`),
	with[Message]("AGENT_MESSAGE", `{"to": "<agent id or role>", "content": "The interface has changed"}`),
	with[Message]("DIRECT_MESSAGE", `{"to": "<agent id or role>", "content": "Read this when you are idle"}`),
	with[Broadcast]("BROADCAST", `{"content": "The build is green"}`),
	with[Message]("INTERRUPT", `{"to": "<agent id>", "content": "Stop: the plan has changed"}`),
	bare("QUERY_PEERS"),
	with[CreateGroup]("CREATE_GROUP", `{"name": "parser-team", "members": ["<agent id>"]}`),
	with[Members]("ADD_TO_GROUP", `{"group": "parser-team", "members": ["<agent id>"]}`),
	with[Members]("REMOVE_FROM_GROUP", `{"group": "parser-team", "members": ["<agent id>"]}`),
	with[GroupMessage]("GROUP_MESSAGE", `{"group": "parser-team", "content": "The tests are in"}`),
	bare("LIST_GROUPS"),
	bare("QUERY_GROUPS"),
	with[React]("REACT", `{"group": "parser-team", "emoji": "👍"}`),
	with[LockFile]("LOCK_FILE", `{"filePath": "src/parse.go", "reason": "New grammar"}`),
	with[UnlockFile]("UNLOCK_FILE", `{"filePath": "src/parse.go"}`),
	with[Commit]("COMMIT", `{"message": "Parse nested blocks"}`),
	with[Activity]("ACTIVITY", `{"actionType": "decision_made", "summary": "Chose the state machine"}`),
	with[Decision]("DECISION", `{"title": "Use a state machine", "rationale": "Pieces may end anywhere", "needsConfirmation": true}`),
	with[Progress]("PROGRESS", `{"summary": "The parser is done", "percent": 60}`),
	with[DeclareTasks]("DECLARE_TASKS", `{"tasks": [{"taskId": "parser", "role": "developer", "description": "Write the parser"}]}`),
	with[Task]("ADD_TASK", `{"taskId": "docs", "role": "developer", "description": "Write the README", "dependsOn": ["parser"]}`),
	with[CompleteTask]("COMPLETE_TASK", `{"summary": "The parser is done and tested"}`),
	with[TaskID]("PAUSE_TASK", `{"taskId": "docs"}`),
	with[TaskID]("RESUME_TASK", `{"taskId": "docs"}`),
	with[TaskID]("RETRY_TASK", `{"taskId": "docs"}`),
	with[TaskID]("REOPEN_TASK", `{"taskId": "docs"}`),
	with[TaskID]("SKIP_TASK", `{"taskId": "docs"}`),
	with[TaskID]("CANCEL_TASK", `{"taskId": "docs"}`),
	with[TaskID]("FORCE_READY", `{"taskId": "docs"}`),
	with[AddDependency]("ADD_DEPENDENCY", `{"taskId": "docs", "dependsOn": ["parser"]}`),
	with[AssignTask]("ASSIGN_TASK", `{"taskId": "docs", "agentId": "<agent id>"}`),
	with[AssignTask]("REASSIGN_TASK", `{"taskId": "docs", "agentId": "<agent id>"}`),
	bare("TASK_STATUS"),
	bare("QUERY_TASKS"),
	bare("RESET_DAG"),
	bare("QUERY_CREW"),
	bare("HALT_HEARTBEAT"),
	bare("RESUME_HEARTBEAT"),
	with[RequestLimitChange]("REQUEST_LIMIT_CHANGE", `{"limit": 20, "reason": "Eight tasks are ready"}`),
	with[SetTimer]("SET_TIMER", `{"label": "build", "delay": "5m", "message": "Look at the build", "repeat": false}`),
	with[CancelTimer]("CANCEL_TIMER", `{"label": "build"}`),
	bare("LIST_TIMERS"),

	unavailable("SPAWN_AGENT", " Use CREATE_AGENT."),
	unavailable("QUERY_PROVIDERS", ""),
	unavailable("ACQUIRE_CAPABILITY", ""),
	unavailable("RELEASE_CAPABILITY", ""),
	unavailable("LIST_CAPABILITIES", ""),
	unavailable("APPLY_TEMPLATE", ""),
	unavailable("LIST_TEMPLATES", ""),
	unavailable("DECOMPOSE_TASK", ""),
	unavailable("TELEGRAM_REPLY", ""),
	unavailable("TELEGRAM_SEND", ""),
}

// table finds a command by its name.
var table = func() map[string]spec {
	found := map[string]spec{}
	for _, s := range specs {
		found[s.name] = s
	}
	return found
}()

// Help returns the text that shows agents all commands.
func Help() string {
	var b strings.Builder
	b.WriteString("Commands are text of your answer, each in a block of its own with a payload in JSON:\n")
	for _, s := range specs {
		if s.example != "" {
			b.WriteString(s.example + "\n")
		}
	}
	return b.String()
}

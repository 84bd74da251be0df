package command

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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
}

// unavailable are commands that no agent may give.
var unavailable = []string{
	"SPAWN_AGENT", "QUERY_PROVIDERS", "ACQUIRE_CAPABILITY", "RELEASE_CAPABILITY", "LIST_CAPABILITIES", "APPLY_TEMPLATE", "LIST_TEMPLATES",
	"DECOMPOSE_TASK", "TELEGRAM_REPLY", "TELEGRAM_SEND",
}

// table finds a command by its name.
var table = func() map[string]spec {
	found := map[string]spec{}
	for _, s := range specs {
		found[s.name] = s
	}
	for _, name := range unavailable {
		found[name] = spec{name: name, refusal: name + " error: the command is not available."}
	}
	found["SPAWN_AGENT"] = spec{name: "SPAWN_AGENT", refusal: found["SPAWN_AGENT"].refusal + " Use CREATE_AGENT."}
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

// finish ends a complete block.
func (w *writer) finish() {
	item := Item{Offset: w.Start, Name: w.Name}
	if item.Payload, item.Problem = judge(w.Name, w.Payload); item.Payload != nil || item.Problem != "" {
		w.items = append(w.items, item)
	}
	w.clear()
}

// judge returns the payload of a complete block, or what is wrong with the block, or neither for a block that is of the crew
// itself and that the agent repeats.
func judge(name string, text []byte) (topics.Raw, string) {
	if name == "CREW_UPDATE" || name == "CREW_ROSTER" {
		return nil, ""
	}
	spec, known := table[name]
	switch {
	case !known:
		return nil, unknown(name)
	case spec.refusal != "":
		return nil, spec.refusal
	case text == nil && spec.payload:
		return nil, fmt.Sprintf("%s error: the payload is missing.%s", name, example(name))
	case text == nil:
		return topics.Raw("{}"), ""
	}
	value := jsontext.Value(bytes.ToValidUTF8(text, []byte("\uFFFD")))
	if err := value.Compact(); err != nil {
		return nil, name + problemJSON + example(name)
	}
	payload := topics.Raw(value)
	if _, err := Decode(name, payload); err != nil {
		return nil, err.Error() + "." + example(name)
	}
	return payload, ""
}

// problem reports the block once.
func (w *writer) problem(text string) {
	if w.Reported {
		return
	}
	w.Reported = true
	w.items = append(w.items, Item{Offset: w.Start, Name: w.Name, Problem: text})
}

// What is wrong with blocks, behind their names.
const (
	problemJSON  = " error: invalid JSON payload. Write line breaks in strings as \\n and quotes as \\\"."
	problemEnd   = " error: ⟧⟧ must follow the payload. Nothing was executed."
	problemInner = " error: the block contains another block. Refer to commands by name only. Nothing was executed."
)

var problemLong = fmt.Sprintf(" error: the block is longer than %d characters or has no ⟧⟧. Nothing in it was executed.", MaxBlock)

func unknown(name string) string {
	return "Unknown command " + name + ". Nothing was executed.\n\n" + Help()
}

// example returns the sentence that shows a command, or nothing for a name that is no command.
func example(name string) string {
	if text := table[name].example; text != "" {
		return " Example: " + text
	}
	return ""
}

// Package crewbody has what the groups of crews, their hosts and their doors tell each other: the bodies of the records in
// crew-inputs, crew-agent-inputs, crew-repository-inputs and crew-actions. Each body has a kind, which its record names.
package crewbody

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/turntable-streams/turntable/topics"
)

// Body is the body of a topics.CrewInput or of a topics.CrewAction.
type Body interface{ Kind() string }

// Encode encodes a body as the member body of its record. What Decode takes can be encoded again. It panics for a
// body that JSON cannot represent, which none of this package is.
func Encode(b Body) topics.Raw {
	raw, err := json.Marshal(b, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		panic(fmt.Sprintf("crewbody: encode %s: %v", b.Kind(), err))
	}
	return raw
}

// Decode decodes a body. Unknown members are ignored. The error wraps ErrType.
func Decode[T Body](raw topics.Raw) (body T, err error) {
	if len(raw) == 0 {
		return body, nil
	}
	// Agents write what JSON libraries of other languages let pass: half a surrogate pair, a member twice.
	if err := json.Unmarshal(raw, &body, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return body, fmt.Errorf("%w: body is not that of %s", topics.ErrType, body.Kind())
	}
	return body, nil
}

// Member says who an agent is.
type Member struct {
	AgentID   string `json:"agent_id"`
	CrewID    string `json:"crew_id"`
	ProjectID string `json:"project_id,omitzero"`
	RoleID    string `json:"role_id"`
	RoleName  string `json:"role_name"`
	Model     string `json:"model,omitzero"`
	Provider  string `json:"provider,omitzero"`
	Host      string `json:"host,omitzero"`
	Cwd       string `json:"cwd,omitzero"`
	// Repository is the key of the repository whose files the agent locks and commits; empty if it may not.
	Repository string `json:"repository,omitzero"`
	// Root is the root of the work tree in which the agent's process works, and Below its directory below the root, with slashes.
	// Both are empty until the host has said them, and outside work trees.
	Root  string `json:"root,omitzero"`
	Below string `json:"below,omitzero"`
}

// Due tells a row that one of its deadlines has passed. The group writes it to its own input.
type Due struct {
	AtMS int64 `json:"at_ms"`
}

// HostStarted tells an agent or a repository that its host runs anew: nothing of its earlier run is left, and its action
// that has no receipt was not done, or nobody knows.
type HostStarted struct {
	Host  string `json:"host"`
	Epoch int64  `json:"epoch"`
}

// Receipt is the answer of a host to a topics.CrewAction.
type Receipt struct {
	ActionID string `json:"action_id"`
	// Failed says that the action was not done, for the reason Error.
	Failed bool   `json:"failed,omitzero"`
	Error  string `json:"error,omitzero"`
	// Commit is the ID of the commit, and Files are the paths in it.
	Commit string   `json:"commit,omitzero"`
	Files  []string `json:"files,omitzero"`
	// Missing are paths that the commit should have and has not, and Others are changed paths that are not part of it.
	Missing []string `json:"missing,omitzero"`
	Others  []string `json:"others,omitzero"`
	// Dirty are the paths with changes that are in no commit.
	Dirty []string `json:"dirty,omitzero"`
	// Summary is the first line of git's answer.
	Summary string `json:"summary,omitzero"`
}

// Command is a command in the text of an agent. Its input_id is derived from the agent, the session and the offset.
type Command struct {
	Member    Member `json:"member"`
	SessionID string `json:"session_id"`
	// Offset is where the command begins in the text of the session, in bytes.
	Offset int64  `json:"offset"`
	Name   string `json:"name"`
	// Payload is the command's JSON, as it was written, or nil.
	Payload topics.Raw `json:"payload,omitzero"`
	// Heard is the number of the last input of the crew that the agent knew when the turn began, 0 if unknown.
	Heard int64 `json:"heard,omitzero"`
}

// The kinds of the bodies, in the order of the files.
func (Start) Kind() string          { return "start" }
func (Send) Kind() string           { return "send" }
func (Cancel) Kind() string         { return "cancel" }
func (Answer) Kind() string         { return "answer" }
func (Stop) Kind() string           { return "stop" }
func (Commit) Kind() string         { return "commit" }
func (Dirty) Kind() string          { return "dirty" }
func (HostClaim) Kind() string      { return "host_claim" }
func (Spawn) Kind() string          { return "spawn" }
func (Prompt) Kind() string         { return "prompt" }
func (Note) Kind() string           { return "note" }
func (Refresh) Kind() string        { return "refresh" }
func (Interrupt) Kind() string      { return "interrupt" }
func (Terminate) Kind() string      { return "terminate" }
func (Pause) Kind() string          { return "pause" }
func (Autopilot) Kind() string      { return "autopilot" }
func (Task) Kind() string           { return "task" }
func (ClearQueue) Kind() string     { return "clear_queue" }
func (Restart) Kind() string        { return "restart" }
func (HostBeat) Kind() string       { return "host_beat" }
func (Started) Kind() string        { return "started" }
func (SessionReady) Kind() string   { return "session_ready" }
func (StartFailed) Kind() string    { return "start_failed" }
func (Updates) Kind() string        { return "updates" }
func (Permission) Kind() string     { return "permission" }
func (TurnEnded) Kind() string      { return "turn_ended" }
func (Exited) Kind() string         { return "exited" }
func (Problem) Kind() string        { return "problem" }
func (GateEnded) Kind() string      { return "gate_ended" }
func (LockAsked) Kind() string      { return "lock_asked" }
func (UnlockAsked) Kind() string    { return "unlock_asked" }
func (AgentActive) Kind() string    { return "agent_active" }
func (AgentEnded) Kind() string     { return "agent_ended" }
func (ReleaseLocks) Kind() string   { return "release_locks" }
func (Configure) Kind() string      { return "configure" }
func (SpawnAsked) Kind() string     { return "spawn_asked" }
func (TerminateAsked) Kind() string { return "terminate_asked" }
func (RestartAsked) Kind() string   { return "restart_asked" }
func (Say) Kind() string            { return "say" }
func (GroupSay) Kind() string       { return "group_say" }
func (Decide) Kind() string         { return "decide" }
func (QueueHeld) Kind() string      { return "queue_held" }
func (SystemPaused) Kind() string   { return "system_paused" }
func (AgentChanged) Kind() string   { return "agent_changed" }
func (AgentExited) Kind() string    { return "agent_exited" }
func (AgentIdle) Kind() string      { return "agent_idle" }
func (Compacted) Kind() string      { return "compacted" }
func (RestartDue) Kind() string     { return "restart_due" }
func (Dropped) Kind() string        { return "dropped" }
func (LockChanged) Kind() string    { return "lock_changed" }
func (Committed) Kind() string      { return "committed" }
func (Due) Kind() string            { return "due" }
func (HostStarted) Kind() string    { return "host_started" }
func (Receipt) Kind() string        { return "receipt" }
func (Command) Kind() string        { return "command" }

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

func (Due) Kind() string { return "due" }

// HostStarted tells an agent or a repository that its host runs anew: nothing of its earlier run is left, and its action
// that has no receipt was not done, or nobody knows.
type HostStarted struct {
	Host  string `json:"host"`
	Epoch int64  `json:"epoch"`
}

func (HostStarted) Kind() string { return "host_started" }

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

func (Receipt) Kind() string { return "receipt" }

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

func (Command) Kind() string { return "command" }

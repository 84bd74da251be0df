package topics

// CrewInput is the value of {agent}-crew-agent-inputs, {agent}-crew-inputs and {agent}-crew-repository-inputs: something
// that a coding agent, a crew or a repository is told. Each of the three groups of processors/crew reads one of the topics and
// nothing else, so the order of a key's records decides what happens.
type CrewInput struct {
	// InputID identifies the input: a repeat with the same ID has no effect. It is the record's turntable.id.
	InputID string `json:"input_id"`
	// Kind says what Body is, for example "updates": what an agent has said and done. The kinds are those of processors/crew
	// and its host; programs do not write them themselves.
	Kind string `json:"kind"`
	// From is the row or the host that wrote the input: "agent/", "crew/", "repository/" or "host/" and an ID. It is empty for
	// inputs of doors and of users' programs.
	From string `json:"from,omitzero"`
	// Number rises with every input of From, so that one with a lower number is a repeat. It is 0 without From.
	Number int64 `json:"number" with:"From"`
	// Body is the object that Kind stands for.
	Body Raw `json:"body,omitzero" as:"object"`
}

// CrewAction is the value of {agent}-crew-actions: something that a host does outside Kafka, such as to start an agent or to
// run git. The host answers with a CrewInput of the kind "receipt".
type CrewAction struct {
	// ActionID identifies the action: a repeat with the same ID is the same action.
	ActionID string `json:"action_id"`
	Kind     string `json:"kind"`
	// Host is the name of the host that does it, and Epoch the run of the host that the action is for: another run does not
	// do it. Epoch is 0 for actions that any run does.
	Host  string `json:"host"`
	Epoch int64  `json:"epoch,omitzero"`
	// Subject is the row that waits for the receipt: "agent/" or "repository/" and an ID. An action of the
	// kind "host_claim" has "host/" and the name.
	Subject string `json:"subject"`
	Body    Raw    `json:"body,omitzero" as:"object"`
}

// CrewEvent is the value of {agent}-crew-events: something that happened, as the frame of the WebSocket that shows it. It has
// more members, by its type.
type CrewEvent struct {
	// Type is the name of the event, such as agent:status.
	Type string `json:"type"`
	// Subject is the key: "agent/", "crew/" or "repository/" and an ID. Seq rises by one with every event of a subject.
	Subject string `json:"subject"`
	Seq     int64  `json:"seq"`
	// Version is that of the event's fields: 1.
	Version int64 `json:"version"`
	// Cause is the turntable.id or the input_id of the record that caused the event.
	Cause string `json:"cause"`
	// CrewID and ProjectID are empty for events that belong to none.
	CrewID    string `json:"crewId,omitzero"`
	ProjectID string `json:"projectId,omitzero"`
	AtMS      int64  `json:"timestamp" as:"time"` // when it happened, in milliseconds since the epoch
	// Fields is an object with the members beside those above, or nil.
	Fields Raw `json:"-"`
}

var (
	crewInputWire  = tagged(checkCrewInput)
	crewActionWire = tagged(checkCrewAction)
)

func checkCrewInput(in *CrewInput) error {
	switch {
	case in.InputID == "":
		return missing("input_id")
	case in.Kind == "":
		return missing("kind")
	case (in.From == "") != (in.Number == 0) || in.Number < 0:
		return wrongType("number", "not a positive number with from, or 0 without")
	}
	return nil
}

func checkCrewAction(a *CrewAction) error {
	switch {
	case a.ActionID == "":
		return missing("action_id")
	case a.Kind == "":
		return missing("kind")
	case a.Subject == "":
		return missing("subject")
	}
	return nil
}

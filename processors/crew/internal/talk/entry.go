package talk

// Entry is what the crew's ledger says about a command that took effect. The agent is the one that wrote the command.
type Entry struct {
	// ActionType is message_sent, group_message or agent_interrupted.
	ActionType string
	Summary    string
	Details    Details
}

// Details are the details of an Entry, an object in JSON.
type Details struct {
	// Type is direct_message, broadcast or empty.
	Type           string `json:"type,omitzero"`
	To             string `json:"to,omitzero"`
	GroupName      string `json:"groupName,omitzero"`
	RecipientCount int    `json:"recipientCount,omitzero"`
}

// summaryRunes is the length of the text that a summary quotes.
const summaryRunes = 120

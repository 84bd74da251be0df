package delegation

// The reasons of dead letters.
const (
	reasonBroken  = "channel: the session's row cannot be decoded; a purge of the session deletes it"
	reasonCall    = "channel: the call has no tool_use_id"
	reasonTask    = "channel: the output's reply_to names no delegation that can be read"
	reasonCaller  = "channel: the output answers an agent that is not given to Config.Agents"
	reasonNoRoom  = "channel: the reply came before its call, and the session's row has no room for it"
	reasonForeign = "channel: the reply is about the delegation of another session"
)

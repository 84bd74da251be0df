// Package bridge takes what the adapters of platforms receive and writes the records that follow from it: a message to the
// agent, a decision about a request for approval, or a command. It implements adapter.Receiver.
//
//	platform -> adapter -> Bridge -> {agent}-message-input         a message, keyed by the session of its origin
//	                              -> {agent}-session-control       /stop and /new
//	                              -> {agent}-think-request-response  the tombstone of /new
//	                              -> {agent}-gate-decisions        /approve, /deny and buttons
//	                              -> {agent}-channel-messages      what the bridge answers itself
//
// # Rules
//
// Which events are passed on, and to which agent, is decided by Decide from the settings at that moment. It is pure: it has no
// clock, no I/O and no state of its own. The checks, in their order:
//
//	account     the origin's account must be in the settings
//	policy      dm for direct messages, group for the others; pressed buttons need no mention
//	rate limit  of the person at the account, in a sliding window of 60 seconds; what it rejects is not counted
//	threading   a message of a group outside of a thread starts the one that is named after it
//	size        of the text
//	command     /agents, /new, /stop, /status, /approve and /deny, see ParseCommand
//	routing     the most specific binding, else the account's agent, else the default agent
//
// A mention-only account answers direct messages, and commands without a mention.
//
// # Messages
//
// The metadata of a message has its origin, to which the answer goes, and the prompt of the account, which the model gets in
// that turn only. In a group the text begins with "[From: name] ". Names are cut and lose brackets, line breaks, invisible
// characters and a beginning that looks like that of a delegation's result ("hand:"); lines of the text that look like such a
// beginning are changed: a bracket becomes a parenthesis. Invalid UTF-8 is replaced.
//
// # Commands
//
//	/agents                   lists the agents of the settings
//	/new                      stops the open turn and forgets the conversation; delegations continue
//	/stop                     stops the open turn
//	/status                   says which agent answers in which session, and what Config.Status adds
//	/approve [code] [reason]  approves the request with the code, or the only open one
//	/deny [code] [reason]     denies it
//
// Any other text is a message, also one that begins with a slash. Commands are read only from what a person typed.
//
// # Delivery
//
// Receive returns nil when all records of an event are acknowledged. After an error, the adapter lets the platform send the
// event again. The repeat writes the same records with the same turntable.id, which readers recognize. The bridge has no
// other state: it remembers recent events to save this work, and who wrote how often in the last minute, per process.
package bridge

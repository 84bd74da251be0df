// Package bridge takes what the adapters of platforms receive and writes the records that follow from it: a message to the
// agent, a decision about a request for approval, or a command. It implements adapter.Receiver.
//
//	platform -> adapter -> Bridge -> {agent}-message-input         a message, keyed by the session of its origin
//	                              -> {agent}-session-control       /stop and /new
//	                              -> {agent}-think-request-response  the tombstone of /new
//	                              -> {agent}-gate-decisions        /approve, /deny and buttons
//	                              -> {agent}-channel-messages      what the bridge answers itself
//
// Which events are passed on, and to which agent, is decided by package policy from the settings at that moment.
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
//	/status                   says which agent answers in which session, and what WithStatus adds
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

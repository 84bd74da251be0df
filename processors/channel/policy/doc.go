// Package policy decides what becomes of an event of a platform: Decide. It is pure: it has no clock, no I/O and no state of
// its own.
//
// The checks, in their order:
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
package policy

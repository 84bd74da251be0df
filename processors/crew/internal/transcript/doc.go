// Package transcript merges the updates of an ACP session into what the row of a coding agent keeps of it: tool calls, the
// plan, the fill level of the context, tokens, modes, commands, options and the title. What is said is not kept: it is only
// in the changes that the functions return, which are the events to write. An update of the kind user_message_chunk has no effect: it
// repeats a prompt. The functions are pure.
package transcript

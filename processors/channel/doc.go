// Package channel connects agents with platforms on which people write: what the adapters of platforms receive becomes messages to
// an agent, decisions and commands (Bridge), and answers go back to where their questions came from (Transport). The settings, a YAML
// file that is read again when it changes, say which accounts are answered, whom they answer, and by which agent.
//
// # Settings
//
//	accounts:
//	  - channel: slack            # the type of the platform, see adapter.Adapter
//	    name: main                # the name of the account on it, as the program calls it
//	    agent: front              # who answers without a binding; without it, default_agent
//	    prompt: Answer briefly.   # a further section of the system prompt of every message of the account
//	    dm: respond               # respond, allowed_only or ignore
//	    group: mention_only       # all, mention_only, commands_only or ignore
//	    allowed: [U1, U2]         # whom dm: allowed_only answers, by the platform's IDs
//	    approvers: [U1]           # who may decide about requests for approval of others in the same conversation
//	    rate_limit: 20            # messages of a person in 60 seconds
//	    threading: true           # a message of a group outside of a thread starts one
//	    format: slack_mrkdwn      # markdown, discord_markdown, telegram_html, slack_mrkdwn or plain_text; without it, that of the adapter
//	    prefix: bracket           # off, bracket or bold_bracket: the agent's name before its answers
//	    quiet_errors: false       # send no error texts
//	bindings:                     # of those that match a message, the most specific one counts
//	  - {agent: ops, channel: slack, account: main, channel_id: C7}
//	  - {agent: ops, guild: T1, roles: [admin, oncall]}
//	agents:
//	  - {name: front, description: Answers first.}
//	  - {name: ops}
//	default_agent: front
//
// The defaults are dm: respond, group: mention_only, no rate limit, no threading and prefix: off.
//
// # Approvers
//
// A decision goes to the agent that answers the person who decides. If bindings with peer or roles give an approver another agent
// than the people who ask, the approver cannot decide about their requests on the channel.
//
// # Secrets
//
// The file has none. Tokens and addresses of platforms are options of the adapters.
//
// # What is rejected
//
// Unknown and repeated members, members without a value, and agents and accounts that are not listed. A binding with a blank
// condition is rejected too: it would match every message. Errors name the line. A file that is changed and has a
// mistake, or is emptied, changes nothing: the former settings stay in use, and the reason is logged once. Replace the file by
// renaming another one over it: the first half of a file may be usable, and its other accounts would be missing for a moment.
//
// # Bridge
//
// A Bridge takes what the adapters of platforms receive and writes the records that follow from it: a message to the agent, a
// decision about a request for approval, or a command. It implements adapter.Receiver.
//
//	platform -> adapter -> Bridge -> {agent}-message-input         a message, keyed by the session of its origin
//	                              -> {agent}-session-control       /stop and /new
//	                              -> {agent}-think-request-response  the tombstone of /new
//	                              -> {agent}-gate-decisions        /approve, /deny and buttons
//	                              -> {agent}-channel-messages      what the bridge answers itself
//
// # rules
//
// Which events are passed on, and to which agent, is decided by a pure function of the settings at that moment. The checks, in their order:
//
//	account     the origin's account must be in the settings
//	policy      dm for direct messages, group for the others; pressed buttons need no mention
//	rate limit  of the person at the account, in a sliding window of 60 seconds; what it rejects is not counted
//	threading   a message of a group outside of a thread starts the one that is named after it
//	size        of the text
//	command     /agents, /new, /stop, /status, /approve and /deny, see Commands
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
//	/status                   says which agent answers in which session, and what BridgeConfig.Status adds
//	/approve [code] [reason]  approves the request with the code, or the only open one
//	/deny [code] [reason]     denies it
//
// Any other text is a message, also one that begins with a slash. Commands are read only from what a person typed. Messages and
// commands are on different topics: a message that follows /new or /stop within moments can be read first, and be answered from
// the old conversation or stopped.
//
// # Delivery
//
// Receive returns nil when all records of an event are acknowledged. After an error, the adapter lets the platform send the
// event again. The repeat writes the same records with the same turntable.id, which readers recognize. The bridge has no
// other state: it remembers recent events to save this work, and who wrote how often in the last minute, per process.
//
// # Transport
//
// A Transport sends the answers of an agent to the channels that their questions came from. It is a transport of the sink: the sink
// reads the deliveries, and writes a receipt for each attempt, with what was sent.
//
//	{agent}-deliveries --> sink.Sink --> Transport --> adapter.Adapter --> platform
//	                          |
//	                          +--> {agent}-delivery-receipts  (Report)
//
// An answer goes to the origin in its delivery and nowhere else. An account that is not in the settings any more, or has no
// adapter, refuses it: the delivery is dead and says why.
//
// # Rendering
//
// A text gets the prefix that the account's settings ask for, is rendered in the format of the account or of the platform, and
// is split into chunks within the platform's limit. A text of which nothing is visible is not sent, and neither are errors if the
// account or the platform wants none: the receipt says that it was suppressed, and why. An output that is an error is sent as a
// short text for its code, which has nothing of the error's own message. Spoken texts are not split: one over the limit is refused.
//
// # Chunks
//
// Chunks are sent one after the other, and messages of one conversation too. If a chunk fails, the report of the attempt says what was
// sent, and the next attempt continues with that chunk. It renders the text with the format, prefix and limit of the
// first attempt, whatever the settings say by then. If the result is not the same text, because another build renders it, the
// message is sent again from its first chunk, with other keys. An attempt whose lease ends soon stops after a chunk, and the next
// one continues.
//
// Every chunk is sent at least once. It has the same key in every attempt, by which platforms that support it deduplicate. Without
// that, a chunk can be repeated if the platform's response was lost, and all chunks of an attempt if the process died before
// its receipt was written. A process remembers what it sent of the last 4096 messages, so a record that is read twice, or
// a receipt that was late, repeats nothing in the same process.
//
// A report never says that a person got a message, only that the platform accepted it: StatusSent.
package channel

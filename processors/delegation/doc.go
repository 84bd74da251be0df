// Package delegation delegates tasks that an agent does not wait for, and announces their results where the task was asked for: an
// agent hands off a task in the middle of a conversation, answers the user at once, and the user gets the result later in the
// same conversation, whatever happened in other conversations of the agent meanwhile.
//
//	turn  -- tool-use ---> Graph of the caller, one row per session -- message-input of the target --> turn of the target
//	                         ^                                |                                             |
//	                         | delegation-replies             |  message-input                              | message-output
//	                         |                                v                                             v
//	                         |                              turn of the caller -- message-output -->  Graph of the target
//	                         |                                                        |                     |
//	                         +--------------------------------------------------------|---------------------+
//	                                                                                  v
//	                                                                  deliveries to the origin
//
// Graph answers the calls on tool-use-result. It reads purges of sessions from session-control, and cancels the turns of targets
// there. With Config.Peers, tasks for other instances go to peer-commands, and their results come from peer-replies.
//
// Topics are named "{agent}-..." and keyed by session. Every agent that delegates, or is delegated to, has a Graph. The turns
// need turn.Config.Channels. Package processors/delegation/delegationhttp shows delegations and their results over HTTP.
//
// # Where the result goes
//
// The message of a conversation has an origin (topics.Origin). The turn copies it to the tool calls of that turn, and Graph stores
// it with the delegation. The message that announces the result has this origin again, so the answer goes there, and nowhere
// else. Nothing is looked up by agent, session or "last used": a second user of the agent, or a call from a program meanwhile,
// changes nothing. Without an origin, as after a request of /invoke, the result is announced in the session itself with Config.Sessions:
// no request waits for it, so its turn is seen on the WebSocket, in agent-events and in the history. Otherwise, and for the calls of a
// delegated task, whose output goes to the agent that delegated it, nothing is announced: the tool's answer says so, and the result
// can be read.
//
// A purge of the session ends its open delegations, and nothing is announced any more. IDs of delegations stay in the row for an
// hour after their ends, without texts and origins, so that late results are recognised.
//
// # The life of a delegation
//
// The model calls agent_send_async (Tools returns the definitions). Graph answers the call at once, stores the delegation in the
// row of the session, and writes two records: the task, to the target's message-input in a session of its own, and a
// topics.Delegation, to delegation-status. A delegation ends when its first reply is read from delegation-replies: the output of
// the target's turn, the deadline (Config.Deadline), a call of agent_cancel by the same session, or a purge of the session. It ends
// in exactly one way, also if processes are killed meanwhile, because the order of one topic decides.
//
// Then the result is written to delegation-status, the target is cancelled if it still runs, and one message to the caller's
// message-input announces the result, whether the task completed or not. It is marked as not written by the user, contains the
// first 32 KiB of the result, and is never parsed for commands. Its turn has the prompt of the account (Config.Prompts) and the
// callback prompt, and only this turn. The results of a session are announced one after the other, in the order in which they
// came.
//
// # Peers
//
// With Config.Peers a task can go to another instance: the agent_id is "peer:" and the ID of the peer, optionally followed by "/" and
// the agent there. Package peer sends it.
//
// # Guarantees
//
//	                        what can be repeated                          what cannot happen
//	delegation              -                                             no end, or two different ones (full rows: see below)
//	answer of the call      the record, with the same ID                  -
//	task of the target      the record, with the same ID                  a second turn
//	announcement            the record, with the same ID                  a second turn, or one in another conversation
//	result                  the record, with the same ID                  a result of another delegation
//
// The limits of open delegations and of the row are checked when a record is read. After a crash at least once, a session that is
// at a limit may read its records in another order, so a call that was refused may be accepted, or the other way round: it then has
// no announcement. An end that is read before its call, and for which the row has no room, is dead-lettered; the delegation then
// ends at its deadline, and delegation-status may have an end from before the crash beside it. Rows fill up with hundreds of open
// delegations of one session, or with fewer that have much data of an adapter (Config.RowLimit).
//
// The callback ID of a call whose tool_use_id is that of an earlier call has a suffix. If the earlier delegation is forgotten before
// a crash lets the group read the call again, the suffix may be missing: it is the same delegation under another callback ID.
//
// # Who decides
//
// A person who is asked for approval on a channel decides with a button or with /approve and /deny. In every place the person must be
// the one whose message led to the request, or an approver of the account, in the same conversation (package gate). A person whom the
// platform does not name decides nothing, in groups and in direct chats. A text that another one wrote, such as a forwarded one
// (adapter.Inbound.Foreign), has no commands. What proves that it is this person differs (topics.Proof):
//
//	channel      proof of the person                                                  decides with
//	slack        signed request, user ID of the workspace                             button, command
//	teams        token of the Bot Framework, object ID of the directory               button, command
//	telegram     secret of the webhook, user ID; anonymous admins count as bots       button, command
//	discord      own connection, user ID                                              button, command
//	mattermost   own connection or token, user ID; signed context of buttons          button, command
//	matrix       own homeserver, which has it from the user's                         command
//	webhook      signed request: the program vouches for the ID that it names         decision, command
//	webchat      credential of the door with the right auth.Answer                    decision, command
//	email        with AuthServID: DMARC for the domain, and the code of the question  command with the code
//	             without: nothing                                                     nothing
//	voice        nothing: numbers can be forged                                       nothing
//
// Where nothing proves the person, the question says so and names the gate at the gate door. A code in a mail is compared in constant
// time, and after 5 wrong ones the gate cannot be decided by mail.
//
// # Beside other tools
//
// The group answers the calls of agent_send_async and agent_cancel. A worker for other tools must leave them
// (tools.Config.IgnoreUnknown), or it answers that there is no such tool.
package delegation

// Package settings says which accounts of platforms are answered, whom they answer, and by which agent. The settings are a
// YAML file that is read again when it changes.
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
package settings

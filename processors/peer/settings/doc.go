// Package settings reads which peers an instance delegates work to, and which tokens of other instances it accepts. The
// configuration is the member peers of a JSON file; other members of the file are ignored.
//
//	{"peers": {
//	  "enabled": true,
//	  "instanceId": "hq-1",
//	  "instanceName": "Headquarters",
//	  "outbound": [
//	    {"id": "tenant-a", "baseUrl": "https://a.example", "tokenEnv": "TENANT_A_TOKEN", "allowedAgentIds": ["front"], "timeoutMs": 30000}
//	  ],
//	  "inboundTokens": [
//	    {"id": "partner-b", "tokenSha256": "<64 hexadecimal digits>", "allowedAgentIds": ["front"], "maxConcurrent": 2,
//	     "allowedTools": ["delegate_to_peer"], "callbackService": "partner-b-callback"}
//	  ],
//	  "defaultOutboundTimeoutMs": 60000,
//	  "inboundMaxConcurrent": 4,
//	  "maxHops": 4
//	}}
//
//	member                     default    bounds
//	enabled                    false      true or false
//	instanceId                            required if enabled
//	instanceName
//	outbound                   []         at most 1000 entries; of entries with the same id the last one counts
//	inboundTokens              []         at most 1000 entries; of entries with the same token the last one counts
//	defaultOutboundTimeoutMs   60000      1000 to 600000
//	inboundMaxConcurrent       4          1 to 64
//	maxHops                    4          1 to 32: how many instances a task may pass before this one
//
//	of an outbound entry
//	id                                    required: the label of the peer in tool calls and in the audit
//	baseUrl                               required: http or https, without user, query and fragment
//	token or tokenEnv                     one is required: the token that is sent, or the environment variable that has it
//	description
//	allowedAgentIds                       the agents that a task may name; without it, or empty, any
//	timeoutMs                  the above  1000 to 600000
//
//	of an inbound entry
//	id                                    required: the label of the token in the audit
//	token or tokenSha256                  one is required: the token that is accepted, or its SHA-256 in hexadecimal
//	allowedAgentIds                       as above
//	maxConcurrent              the above  1 to 64
//	allowedTools               []         the tools that a task with the token may use although it comes from a peer; only
//	                                      delegate_to_peer has an effect
//	callbackService                       the name of a service of the delivery sink that gets the replies of tasks with a
//	                                      callback; without it, such tasks are refused
//
// Several inbound entries may have the same id, so that a token can be replaced while both are in use. Store the hash of a
// token instead of the token:
//
//	printf %s "$TOKEN" | openssl dgst -sha256 -r | cut -d ' ' -f 1
//
// A hash does not protect a token that can be guessed: make it of at least 16 random bytes. A token in the file is hashed when
// it is loaded and is not kept.
//
// # What is rejected
//
// Texts are trimmed. Numbers may be texts, are truncated, and are cut to their bounds; a number below 1 is rejected, because
// a timeout of 0 is not an absent one. A list that is no array, or that has a blank element or one that is not a
// text, is rejected: if a list of agents were ignored, every agent would be allowed. So are unknown members of peers and of entries, which
// may be a misspelled allowedAgentIds. Errors name the entry and the member and never contain values, because a value may be
// a token at the wrong place.
//
// # Changes
//
// File.Settings reads the file in each call: a token that was removed is refused in the next request. A file that cannot be
// read, or has a mistake, changes nothing: the former configuration stays in use, and the reason is logged once. Write a new
// file and rename it. Environment variables, see EnvironmentNames, take precedence over the file. They are read when the file is
// opened, and again when its content has changed.
package settings

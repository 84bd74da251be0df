package peer

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"
	"time"
)

// ErrSettings is wrapped by the errors about the content of settings.
var ErrSettings = errors.New("peer: bad settings")

// The bounds of settings.
const (
	// maxSettingsSize is the largest file, in bytes.
	maxSettingsSize = 1 << 20
	// MaxEntries is the largest number of outbound entries, of inbound entries, and of agents or tools in a list.
	MaxEntries = 1000
	// maxName is the largest length of an ID or a label, in bytes, and maxToken that of a token.
	maxName  = 256
	maxToken = 4 << 10

	MinTimeout    = time.Second
	MaxTimeout    = 10 * time.Minute
	MaxConcurrent = 64
	MaxHops       = 32
)

// The defaults of settings.
const (
	DefaultTimeout       = time.Minute
	defaultMaxConcurrent = 4
	defaultMaxHops       = 4
)

// Settings says which peers an instance delegates work to, and which tokens of other instances it accepts. It is the member peers of
// a JSON file; other members of the file are ignored. Settings that were loaded are immutable: they can be used concurrently, and must
// not be changed.
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
// SettingsFile.Settings reads the file in each call: a token that was removed is refused in the next request. A file that cannot be
// read, or has a mistake, changes nothing: the former configuration stays in use, and the reason is logged once. Write a new
// file and rename it. Environment variables, see SettingsEnvironment, take precedence over the file. They are read when the file is
// opened, and again when its content has changed.
type Settings struct {
	// Enabled says whether this instance sends and accepts tasks.
	Enabled bool
	// InstanceID identifies this instance to its peers. It is not empty if Enabled is set.
	InstanceID   string
	InstanceName string
	// Outbound are the peers that this instance sends tasks to, with different IDs.
	Outbound []Outbound
	// Inbound are the tokens that this instance accepts, with different hashes.
	Inbound []Inbound
	// InboundMaxConcurrent is how many tasks of peers one process runs at the same time.
	InboundMaxConcurrent int
	// MaxHops is how many instances a task may have passed when it arrives here.
	MaxHops int
}

// Outbound is a peer that this instance sends tasks to.
type Outbound struct {
	ID string
	// BaseURL is an http or https URL without a slash at its end, to which the paths of the endpoints are appended.
	BaseURL     string
	Token       Secret
	Description string
	// AllowedAgents are the agents that a task may name. Empty means any. See MayUse.
	AllowedAgents []string
	// Timeout is the entry's, or the configuration's default.
	Timeout time.Duration
}

// Inbound is a token that this instance accepts.
type Inbound struct {
	// ID is the label of the token. Several tokens may have the same one.
	ID          string
	TokenSHA256 [sha256.Size]byte
	// AllowedAgents are the agents that a task may name. Empty means any. See MayUse.
	AllowedAgents []string
	// MaxConcurrent is how many tasks with this token one process runs at the same time. It is the entry's, or
	// InboundMaxConcurrent.
	MaxConcurrent int
	// AllowedTools are tools that tasks with the token may use although they come from a peer. See Settings.MayDelegate.
	AllowedTools []string
	// CallbackService names the service of the delivery sink that gets the replies of tasks with a callback. It is empty if
	// such tasks are refused.
	CallbackService string
}

// Peer returns the peer with an ID, which is trimmed. There is none if the configuration is not enabled.
func (s *Settings) Peer(id string) (Outbound, bool) {
	id = strings.TrimSpace(id)
	if !s.Enabled {
		return Outbound{}, false
	}
	i := slices.IndexFunc(s.Outbound, func(o Outbound) bool { return o.ID == id })
	if i < 0 {
		return Outbound{}, false
	}
	return s.Outbound[i], true
}

// Accept returns the inbound entry of a token. An empty token has none, and neither has any token if the configuration is
// not enabled. The hash of the token is compared with the hashes of all entries, each in constant time, so the duration does
// not tell how much of a token is right, or where it is in the list.
func (s *Settings) Accept(token string) (Inbound, bool) {
	if !s.Enabled || token == "" || len(token) > maxToken {
		return Inbound{}, false
	}
	i := match(s.Inbound, sha256.Sum256([]byte(token)), subtle.ConstantTimeCompare)
	if i < 0 {
		return Inbound{}, false
	}
	return s.Inbound[i], true
}

// match returns the index of the entry with a hash, or -1. It compares all entries. equal returns 1 for equal hashes, else 0.
func match(entries []Inbound, sum [sha256.Size]byte, equal func(a, b []byte) int) int {
	found := -1
	for i := range entries {
		found = subtle.ConstantTimeSelect(equal(entries[i].TokenSHA256[:], sum[:]), i, found)
	}
	return found
}

// MayUse reports whether a task for the peer may name the agent. The ID is trimmed. With a list of agents, a task must name
// one of them: it may not leave the choice to the peer.
func (o Outbound) MayUse(agentID string) bool { return mayUse(o.AllowedAgents, agentID) }

// MayUse reports whether a task with the token may name the agent. The ID is trimmed. With a list of agents, a task must name
// one of them: a blank ID is refused also if the default agent is in the list.
func (in Inbound) MayUse(agentID string) bool { return mayUse(in.AllowedAgents, agentID) }

func mayUse(allowed []string, agentID string) bool {
	return len(allowed) == 0 || slices.Contains(allowed, strings.TrimSpace(agentID))
}

// delegateTool is the name of the tool with which a model delegates a task to a peer.
const delegateTool = "delegate_to_peer"

// MayDelegate reports whether tasks that came with the inbound label may be delegated further with the tool delegate_to_peer.
// AllowedTools of every entry with the label must have it, because a session keeps the label and not the token. It is false for
// a label without entries.
func (s *Settings) MayDelegate(label string) bool {
	allowed := false
	for _, in := range s.Inbound {
		if in.ID != label {
			continue
		}
		if !slices.Contains(in.AllowedTools, delegateTool) {
			return false
		}
		allowed = true
	}
	return allowed
}

// Secret is a token that is not printed: formatted and encoded it is "[secret]".
type Secret struct{ value *string } // a pointer, because fmt prints unexported fields by reflection

// NewSecret returns a secret.
func NewSecret(value string) Secret { return Secret{value: &value} }

// Reveal returns the token; the zero value has none.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

const hidden = "[secret]"

// String returns "[secret]".
func (s Secret) String() string { return hidden }

// GoString returns "[secret]".
func (s Secret) GoString() string { return hidden }

// MarshalText returns "[secret]".
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

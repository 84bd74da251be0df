package settings

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"
	"time"
)

// ErrSettings is wrapped by the errors about the content of a configuration.
var ErrSettings = errors.New("settings: bad configuration")

// The bounds of a configuration.
const (
	// MaxSize is the largest file, in bytes.
	MaxSize = 1 << 20
	// MaxEntries is the largest number of outbound entries, of inbound entries, and of agents or tools in a list.
	MaxEntries = 1000
	// MaxName is the largest length of an ID or a label, in bytes, and MaxToken that of a token.
	MaxName  = 256
	MaxToken = 4 << 10

	MinTimeout    = time.Second
	MaxTimeout    = 10 * time.Minute
	MaxConcurrent = 64
	MaxHops       = 32
)

// The defaults of a configuration.
const (
	DefaultTimeout       = time.Minute
	DefaultMaxConcurrent = 4
	DefaultMaxHops       = 4
)

// Settings is a configuration that was loaded. It is immutable: it can be used concurrently, and must not be changed.
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
	if !s.Enabled || token == "" || len(token) > MaxToken {
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
